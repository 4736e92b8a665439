"""Neutral span and log snapshots and their readers."""
