"""From a sampled session to evaluations: transcript, one question, an answer that is checked."""
