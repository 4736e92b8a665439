"""Attaching without code: the entry point that `opentelemetry-instrument` runs in every Python process it starts.

Most of those processes have nothing to do with us, so nothing is imported before a variable asks for it.
"""

from __future__ import annotations

import logging
import os

__all__ = ["attach_from_environment"]


def attach_from_environment() -> None:
    """Attach to the global providers if an `OTEL_EVALS_*` variable is set; never raises."""
    if not any(name.startswith("OTEL_EVALS_") for name in os.environ):
        return
    logger = logging.getLogger(__name__)
    try:
        from otel_evals.handle import attach
        from otel_evals.settings import SettingsError
    except Exception as error:  # a broken installation must not keep the application from starting
        logger.error("otel-evals is not attached: it cannot be imported (%s)", type(error).__name__)
        return
    try:
        attach()
    except SettingsError as error:
        logger.error("otel-evals is not attached: %s", error)
    except Exception as error:  # likewise
        logger.error("otel-evals is not attached (%s)", type(error).__name__)
