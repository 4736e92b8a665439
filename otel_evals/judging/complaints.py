"""Warnings that are worth one line each, however many sessions meet their cause: the log is the host's."""

from __future__ import annotations

import logging

__all__ = ["Complaints"]

_MOST = 100
"""Different lines; more would be noise, and the set must not grow for ever."""


class Complaints:
    """Makes each complaint once."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._made: set[tuple[str, ...]] = set()

    def warn(self, message: str, *args: str) -> None:
        """Log a warning unless the same was logged before. No content may be in the arguments."""
        complaint = (message, *args)
        if complaint not in self._made and len(self._made) < _MOST:
            self._made.add(complaint)
            self._logger.warning(message, *args)
