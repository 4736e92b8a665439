"""litellm inside somebody else's process: loaded late, called past the host's callbacks, silent.

litellm keeps callbacks, caches and switches in globals that belong to the host. A judge call must reach none of
them, and must change none of them; what is special here was checked against litellm 1.110.
"""

from __future__ import annotations

import asyncio
import builtins
import contextvars
import datetime
import functools
import inspect
import logging
import os
import sys
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from otel_evals.suppression import is_internal

__all__ = ["load_litellm", "quiet_completion"]

# Our calls must not fetch the price list, nor read a `.env` file into the host's environment.
_IMPORT_ENVIRONMENT = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}

# Modules that print to the terminal when a call fails or the host has asked for debug output.
_PRINTING_MODULES = (
    "litellm._logging",
    "litellm.utils",
    "litellm.litellm_core_utils.exception_mapping_utils",
    "litellm.litellm_core_utils.get_llm_provider_logic",
)

# Loggers that write prompts or replies where the host logs at DEBUG.
_TALKATIVE_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai._base_client", "httpx")

_lock = threading.Lock()
_loaded: ModuleType | None = None


def load_litellm() -> ModuleType:
    """litellm, with its output silenced for our calls only. Takes seconds the first time: not for the app's threads.

    Raises:
        ImportError: it is not installed.
    """
    global _loaded
    with _lock:
        if _loaded is None:
            with _environment(_IMPORT_ENVIRONMENT), _loggers_restored():
                import litellm
                import litellm.litellm_core_utils.litellm_logging
            _silence_our_calls()
            _loaded = litellm
        return _loaded


def quiet_completion(litellm: ModuleType) -> Callable[..., Awaitable[Any]]:
    """A chat completion through litellm, without what is wrapped around `litellm.acompletion`.

    The wrappers run the host's hooks and callbacks, use its response cache and start its logging worker on the
    calling loop; instrumentors wrap the functions as well. The innermost `completion` finds the provider and
    translates the request; what it returns for `acompletion=True` makes the call.
    """
    completion: Callable[..., Any] = inspect.unwrap(litellm.completion)
    logging_class = _quiet_logging_class(litellm)

    async def complete(**arguments: Any) -> Any:
        call_id = str(uuid.uuid4())
        record = logging_class(
            model=arguments["model"],
            messages=arguments["messages"],
            stream=False,
            call_type="acompletion",
            start_time=datetime.datetime.now(),
            litellm_call_id=call_id,
            function_id="",
        )
        begin = functools.partial(
            completion, **arguments, acompletion=True, litellm_call_id=call_id, litellm_logging_obj=record
        )
        # Some providers fetch credentials here, blocking; litellm itself goes through the executor as well.
        context = contextvars.copy_context()
        reply = await asyncio.get_running_loop().run_in_executor(None, context.run, begin)
        return await reply if inspect.isawaitable(reply) else reply

    return complete


def _quiet_logging_class(litellm: ModuleType) -> Any:
    """litellm's per-call record, with all that leads from it to callbacks taken out."""
    base = litellm.litellm_core_utils.litellm_logging.Logging

    def nothing(self: Any, *args: Any, **kwargs: Any) -> None: ...

    async def nothing_later(self: Any, *args: Any, **kwargs: Any) -> None: ...

    def never(self: Any, *args: Any, **kwargs: Any) -> bool:
        return False

    silent: dict[str, Any] = {}
    for name in ("pre_call", "post_call", "success_handler", "failure_handler"):
        silent[name] = nothing
    silent["handle_sync_success_callbacks_for_async_calls"] = nothing
    for name in ("async_success_handler", "async_failure_handler"):
        silent[name] = nothing_later
    for name in ("dispatch_success_handlers", "dispatch_failure_handlers"):
        silent[name] = nothing_later
    for name in ("should_run_callback", "should_run_logging", "should_run_prompt_management_hooks"):
        silent[name] = never
    return type("QuietLogging", (base,), silent)


def _silence_our_calls() -> None:
    for name in _PRINTING_MODULES:
        module = sys.modules.get(name)
        if module is not None:
            module.print = _print_for_the_host  # type: ignore[attr-defined]
    for name in _TALKATIVE_LOGGERS:
        logging.getLogger(name).addFilter(_is_the_hosts)
    _hide_the_hosts_hooks()


def _hide_the_hosts_hooks() -> None:
    """Providers' handlers offer every reply to the host's hooks for a further round; ours are not offered."""
    module = sys.modules.get("litellm.litellm_core_utils.chat_completion_agentic_loop")
    hooks_of: Callable[[object], tuple[Any, ...]] | None = getattr(module, "_custom_loggers", None)
    if module is not None and hooks_of is not None:
        everyones = hooks_of
        module._custom_loggers = lambda record: () if is_internal() else everyones(record)  # type: ignore[attr-defined]


def _print_for_the_host(*values: Any, **options: Any) -> None:
    if not is_internal():
        builtins.print(*values, **options)  # noqa: T201 - the host's own litellm output


def _is_the_hosts(record: logging.LogRecord) -> bool:
    return not is_internal()


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Variables for the duration of the import; the host's own settings win."""
    ours = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)


@contextmanager
def _loggers_restored() -> Iterator[None]:
    """The import sets levels and filters on loggers that are not litellm's own (`httpx`, `asyncio`); this undoes it."""
    before = {name: (logger.level, list(logger.filters)) for name, logger in _loggers()}
    root_level = logging.root.level
    try:
        yield
    finally:
        logging.root.setLevel(root_level)
        for name, logger in _loggers():
            if not name.startswith("LiteLLM"):
                level, filters = before.get(name, (logging.NOTSET, []))
                logger.setLevel(level)
                logger.filters[:] = filters


def _loggers() -> list[tuple[str, logging.Logger]]:
    known = list(logging.root.manager.loggerDict.items())
    return [(name, logger) for name, logger in known if isinstance(logger, logging.Logger)]
