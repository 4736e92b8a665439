"""Any endpoint that speaks OpenAI's chat completions (OpenAI, vLLM, Ollama, gateways), over aiohttp."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from otel_evals.judging.models.failures import Failure, from_status, retry_after_seconds
from otel_evals.judging.models.http_session import HttpSession
from otel_evals.judging.models.ladder import AnswerLadder
from otel_evals.judging.models.price import Price
from otel_evals.judging.models.protocol import ChatReply, ChatRequest
from otel_evals.suppression import internal_work

if TYPE_CHECKING:
    import aiohttp

__all__ = ["OpenAICompatibleModel"]

MAX_REPLY_BYTES = 4 * 2**20
"""No judge's answer is longer; what sends more is not a model."""

CONNECT_SECONDS = 15.0

_PATH = "/chat/completions"


class OpenAICompatibleModel:
    """A judge model behind an OpenAI-compatible endpoint."""

    def __init__(
        self,
        model: str,
        base_url: str,
        api_key: str | None = None,
        input_price: float | None = None,
        output_price: float | None = None,
    ) -> None:
        """
        Args:
            model: as the endpoint knows it.
            base_url: up to and including the version, e.g. `https://api.openai.com/v1`.
            api_key: sent as a bearer token; None: no authorisation header.
            input_price: USD per million input tokens; both prices are needed to compute a cost.
            output_price: USD per million output tokens.

        Raises:
            ValueError: the base URL is no HTTP URL.
        """
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("base_url: give an http or https URL, e.g. https://api.openai.com/v1")
        self._model = model
        path = parts.path.rstrip("/").removesuffix(_PATH)
        self._url = parts._replace(path=path + _PATH).geturl()  # keeps a query, e.g. Azure's api-version
        self._headers = {"Content-Type": "application/json", "User-Agent": "otel-evals"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._price = Price(input_price, output_price)
        # OpenAI's own newer models know only the newer name; most compatible servers only the older one.
        is_openai = parts.hostname == "api.openai.com"
        self._ladder = AnswerLadder(
            base_url, model, token_parameter="max_completion_tokens" if is_openai else "max_tokens"
        )
        self._http = HttpSession(self._url)

    @property
    def name(self) -> str:
        return self._model

    async def complete(self, request: ChatRequest) -> ChatReply:
        """One answer; see `JudgeModel.complete`."""
        with internal_work():
            return self._price.applied_to(await self._ladder.ask(request, self._send))

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        await self._http.close()

    async def _send(self, body: dict[str, Any], timeout_s: float) -> Mapping[str, Any] | Failure:
        import aiohttp

        try:
            session = await self._http.get()
            limits = aiohttp.ClientTimeout(total=max(timeout_s, 0.001), sock_connect=CONNECT_SECONDS)
            async with session.post(
                self._url,
                data=_encoded(body),
                headers=self._headers,
                timeout=limits,
                allow_redirects=False,  # a redirect would carry the key and the transcript elsewhere
            ) as response:
                payload = await _parsed_body(response)
                if response.status >= 300:
                    retry_after = retry_after_seconds(response.headers)
                    return from_status(response.status, payload, retry_after_s=retry_after)
        except (asyncio.TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            return _failure_of(error)
        return _completion_or_failure(payload)


def _encoded(body: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:  # lone surrogates, which occur in real conversations; json escapes them
        return json.dumps(body).encode("ascii")


async def _parsed_body(response: aiohttp.ClientResponse) -> Any:
    """The JSON in the body; None: none, or more than the limit."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_REPLY_BYTES:
            return None
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _completion_or_failure(payload: Any) -> Mapping[str, Any] | Failure:
    """Gateways report errors of the model behind them with status 200 and an `error` object."""
    if not isinstance(payload, Mapping):
        return Failure("bad_response", retryable=True)
    error = payload.get("error")
    if error and not payload.get("choices"):
        code = error.get("code") if isinstance(error, Mapping) else None
        return from_status(code if isinstance(code, int) and 300 <= code < 600 else 500, payload)
    return payload


def _failure_of(error: BaseException) -> Failure:
    import aiohttp

    if isinstance(error, asyncio.TimeoutError):  # aiohttp's timeouts are of this class as well
        return Failure("timeout", retryable=True)
    if isinstance(error, (aiohttp.ClientSSLError, ssl.SSLError, aiohttp.InvalidURL)):
        return Failure("unavailable")
    if isinstance(error, ConnectionRefusedError) or (
        isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, ConnectionRefusedError)
    ):
        return Failure("refused", retryable=True)
    if isinstance(error, (aiohttp.ClientError, OSError)):
        return Failure("unavailable", retryable=True)
    return Failure("bad_request")  # a header or URL that cannot be sent
