"""Scores as span, events and metrics."""
