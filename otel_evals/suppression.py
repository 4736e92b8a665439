"""The recursion guard: what happens inside `internal_work()` is ours, and no instrumentation may record it.

Suppression is local to the context (task or thread) that enters the block: the application's own traces are
never lost. It is the first of three layers: our spans also carry `otel_evals.internal`, and spans of our
threads are refused.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from opentelemetry.context import (
    _SUPPRESS_HTTP_INSTRUMENTATION_KEY,
    _SUPPRESS_INSTRUMENTATION_KEY,
    attach,
    detach,
    get_current,
)
from opentelemetry.context.context import Context

__all__ = ["internal_work", "is_internal", "mark_context"]

# The plain string is the older key, which several vendors' instrumentors still look at.
_SUPPRESSED = {
    _SUPPRESS_INSTRUMENTATION_KEY: True,
    _SUPPRESS_HTTP_INSTRUMENTATION_KEY: True,
    "suppress_instrumentation": True,
}

_internal: ContextVar[bool] = ContextVar("otel_evals_internal", default=False)


is_internal = _internal.get
"""Whether the caller runs inside `internal_work()`. The bound method itself: hooks ask it for every span they keep."""


def mark_context() -> None:
    """Whatever runs in the current context from now on is ours. For the base context of a thread of our own."""
    _internal.set(True)


@contextmanager
def internal_work() -> Iterator[None]:
    """Mark the block as ours: instrumentors record nothing, litellm logs to none of the host's callbacks."""
    mark = _internal.set(True)
    token = attach(Context({**get_current(), **_SUPPRESSED}))
    litellm_flag = _litellm_internal_call()
    litellm_mark = litellm_flag.set(True) if litellm_flag is not None else None
    try:
        yield
    finally:
        if litellm_flag is not None and litellm_mark is not None:
            litellm_flag.reset(litellm_mark)
        detach(token)
        _internal.reset(mark)


def _litellm_internal_call() -> ContextVar[bool] | None:
    """litellm's own mark for calls that nobody logs or bills; None while litellm is not loaded."""
    module = sys.modules.get("litellm._internal_context")
    flag = getattr(module, "is_internal_call", None)
    return flag if isinstance(flag, ContextVar) else None
