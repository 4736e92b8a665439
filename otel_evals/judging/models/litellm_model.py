"""Any provider that litellm knows (`anthropic/…`, `gemini/…`, `bedrock/…`), loaded on the first call only."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import orjson

from otel_evals.judging.models.failures import Failure, from_status, retry_after_seconds
from otel_evals.judging.models.http_session import HttpSession
from otel_evals.judging.models.ladder import AnswerLadder
from otel_evals.judging.models.litellm_quiet import load_litellm, quiet_completion
from otel_evals.judging.models.price import Price
from otel_evals.judging.models.protocol import ChatReply, ChatRequest, ModelError
from otel_evals.suppression import internal_work

__all__ = ["LiteLLMModel"]

logger = logging.getLogger(__name__)

# The host's switches do not apply to our calls: no retries, no cache, nothing dropped silently.
_OPTIONS: dict[str, Any] = {
    "num_retries": 0,
    "max_retries": 0,
    "caching": False,
    "drop_params": False,
    "no-log": True,
    "enable_json_schema_validation": False,
}


class LiteLLMModel:
    """A judge model behind litellm."""

    def __init__(
        self,
        model: str,
        api_key: str | None = None,
        base_url: str | None = None,
        input_price: float | None = None,
        output_price: float | None = None,
    ) -> None:
        """
        Args:
            model: litellm's `provider/model`.
            api_key: None: litellm reads the provider's own environment variable.
            base_url: None: the provider's own.
            input_price: USD per million input tokens; without both prices, litellm's price list is used.
            output_price: USD per million output tokens.

        Raises:
            ImportError: litellm is not installed.
        """
        if importlib.util.find_spec("litellm") is None:
            raise ImportError(f"model {model!r} needs litellm: pip install 'otel-evals[litellm]'")
        self._model = model
        self._options = {**_OPTIONS, "api_key": api_key, "api_base": base_url}
        self._price = Price(input_price, output_price)
        self._ladder = AnswerLadder(base_url or "litellm", model)
        self._http = HttpSession()
        self._completion: Callable[..., Awaitable[Any]] | None = None
        self._cost: Callable[..., Any] | None = None

    @property
    def name(self) -> str:
        return self._model

    async def complete(self, request: ChatRequest) -> ChatReply:
        """One answer; see `JudgeModel.complete`."""
        if self._completion is None and not await self._load():
            raise ModelError("unavailable", retryable=False, calls=0)
        with internal_work():  # after the load: only then does litellm's own mark exist
            return self._price.applied_to(await self._ladder.ask(request, self._send))

    async def close(self) -> None:
        """Close our connections; litellm's clients belong to the host as well and stay."""
        await self._http.close()

    async def _load(self) -> bool:
        """Import litellm in another thread, because that takes seconds; False: this litellm cannot be used."""
        try:
            litellm = await asyncio.get_running_loop().run_in_executor(None, load_litellm)
            self._completion, self._cost = quiet_completion(litellm), litellm.completion_cost
        except Exception as error:  # whatever its import raises, or a version whose inside is another
            logger.warning("litellm could not be loaded: %s", type(error).__name__)
            return False
        return True

    async def _send(self, body: dict[str, Any], timeout_s: float) -> Mapping[str, Any] | Failure:
        assert self._completion is not None
        try:
            session = await self._http.get()
            call = self._completion(**body, **self._options, timeout=timeout_s, shared_session=session)
            response = await asyncio.wait_for(call, timeout_s)
            completion: dict[str, Any] = response.model_dump()
        except Exception as error:  # litellm lets every kind of error through, from 100 providers' code
            return _failure_of(error)
        if completion.get("usage") and completion["usage"].get("cost") is None:
            completion["usage"]["cost"] = self._listed_cost(response)
        return completion

    def _listed_cost(self, response: Any) -> float | None:
        """USD by litellm's price list; None: the model is not on it."""
        assert self._cost is not None
        try:
            cost = self._cost(completion_response=response, model=self._model)
        except Exception:  # raised for every model that is not on the list
            return None
        # Models without a price are on the list as well, with 0.
        return float(cost) if cost else None


def _failure_of(error: Exception) -> Failure:
    """By the error's own status, unless a connection or a clock failed below it."""
    below = _transport_failure(error)
    if below is not None:
        return below
    status = getattr(error, "status_code", None)
    if not isinstance(status, int) or not 300 <= status < 600:
        return Failure("bad_response")
    return from_status(status, _error_body(error), retry_after_s=retry_after_seconds(_headers(error)))


def _transport_failure(error: BaseException) -> Failure | None:
    for cause in _chain(error):
        names = {parent.__name__ for parent in type(cause).__mro__}
        if names & {"TimeoutError", "TimeoutException", "APITimeoutError"}:
            return Failure("timeout", retryable=True)
        if isinstance(cause, ConnectionRefusedError):
            return Failure("refused", retryable=True)
        if names & {"ClientSSLError", "SSLError"}:
            return Failure("unavailable")
    if any(_is_transport_error(cause) for cause in _chain(error)):
        return Failure("unavailable", retryable=True)
    return None


def _is_transport_error(cause: BaseException) -> bool:
    return any(
        parent.__name__ in ("TransportError", "ClientConnectionError", "ClientPayloadError", "ConnectionError")
        for parent in type(cause).__mro__
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was raised from, at most ten deep."""
    current: BaseException | None = error
    for _ in range(10):
        if current is None:
            return
        yield current
        current = current.__cause__ or current.__context__ or getattr(current, "os_error", None)


def _error_body(error: Exception) -> Any:
    """The provider's error object, where it can be found; else its text."""
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        return {"error": body} if "error" not in body else body
    text = str(getattr(error, "message", None) or error)
    start = text.find("{")
    if start >= 0:
        try:
            return orjson.loads(text[start:])
        except orjson.JSONDecodeError:
            pass
    return {"message": text}


def _headers(error: Exception) -> Mapping[str, str]:
    headers = getattr(error, "headers", None) or getattr(getattr(error, "response", None), "headers", None)
    if not isinstance(headers, Mapping):
        return {}
    return {str(name).lower(): str(value) for name, value in headers.items()}
