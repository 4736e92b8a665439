"""What is asked about a session, and the pure functions that turn answers into scores."""
