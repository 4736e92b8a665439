"""Where sampled sessions wait for a judge."""
