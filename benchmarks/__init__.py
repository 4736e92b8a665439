"""Benchmarks: `python -m benchmarks.NAME`; the last line of each is one JSON object with figures and goals."""
