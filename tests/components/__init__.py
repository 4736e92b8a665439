"""Real components for the tests: each starts as its own process on free ports and is stopped whatever happens."""
