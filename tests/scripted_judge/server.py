"""The server: an aiohttp application on its own loop in its own thread, driven from the test's thread."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.scripted_judge.answers import SPOILERS, schema_of, valid_answer
from tests.scripted_judge.faults import CONNECTION_FAULTS, HTTP_FAULTS, Fault, HttpError, http_error
from tests.scripted_judge.steps import Step
from tests.scripted_judge.wire import Completion, completion_events, completion_json

__all__ = ["RecordedRequest", "ScriptedJudge"]


@dataclass(frozen=True)
class RecordedRequest:
    """One call as it arrived."""

    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: dict[str, Any]

    @property
    def answer_format(self) -> str:
        """`json_schema`, `tool`, `json_object` or `plain`."""
        if self.body.get("tools"):
            return "tool"
        return str((self.body.get("response_format") or {}).get("type", "plain"))


@dataclass
class _Script:
    steps: tuple[Step | Callable[[dict[str, Any]], Step], ...]
    model: str | None = None
    when: Callable[[dict[str, Any]], bool] | None = None
    by: str = "history"
    position: int = 0

    def step(self, body: dict[str, Any]) -> Step | None:
        """The step for this call; None: the script is for other calls."""
        if self.model is not None and body.get("model") != self.model:
            return None
        if self.when is not None and not self.when(body):
            return None
        if self.by == "history":
            index = sum(message.get("role") == "assistant" for message in body.get("messages", ()))
        else:
            index, self.position = self.position, self.position + 1
        step = self.steps[min(index, len(self.steps) - 1)]
        return step(body) if callable(step) else step


@dataclass
class ScriptedJudge:
    """See the package's docstring. All methods may be called from any thread while the server runs."""

    port: int = 0
    """0: a free one, chosen once and kept over `stop` and `start`."""
    delay_s: float = 0.0
    """Every answer takes at least this long."""
    cached_tokens: int = 0
    """Reported as the cached part of the prompt."""
    requests: list[RecordedRequest] = field(default_factory=list)
    max_in_flight: int = 0
    """Most calls that were open at one moment."""

    def __post_init__(self) -> None:
        self._faults: list[Fault] = []
        self._scripts: list[_Script] = []
        self._overrides: dict[str, Any] = {}
        self._in_flight = 0
        self._arrived = threading.Condition()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._release: asyncio.Event | None = None

    # What it says

    def script(
        self,
        *steps: Step | Callable[[dict[str, Any]], Step],
        model: str | None = None,
        when: Callable[[dict[str, Any]], bool] | None = None,
        by: str = "history",
    ) -> None:
        """Answer calls with these steps; the latest matching script wins.

        Args:
            steps: in order; the last one repeats.
            model: only calls to this model.
            when: only calls whose body satisfies this.
            by: `history` picks the step by the number of assistant messages that the client sends back, so that any
                number of conversations may run at once; `calls` goes one step further with each call.
        """
        if not steps or by not in ("history", "calls"):
            raise ValueError("give at least one step, and by='history' or by='calls'")
        self._scripts.insert(0, _Script(steps, model, when, by))

    def answer(self, **values: Any) -> None:
        """Fix properties of the judge's answer by name; a value may be a function of the request body."""
        self._overrides.update(values)

    def label(self, path: str, value: Any) -> None:
        """Fix one property of the judge's answer by its dotted path, e.g. `failure_rate.label`."""
        self._overrides[path] = value

    def fault(
        self,
        kind: str,
        *,
        times: int | None = 1,
        probability: float = 1.0,
        seed: int = 0,
        model: str | None = None,
        when: Callable[[dict[str, Any]], bool] | None = None,
        **options: Any,
    ) -> None:
        """Fail the next `times` calls (None: all of them), each with this probability.

        Options: `retry_after` (seconds) and `as_date` for `rate_limited` and `overloaded`; `parameter` and `named` for
        `parameter_rejected`; `seconds` for `slow`.
        """
        self._faults.append(Fault(kind, times, probability, seed, model, when, options))

    def clear(self) -> None:
        """Forget scripts, faults, fixed answers and recorded calls."""
        self._faults.clear()
        self._scripts.clear()
        self._overrides.clear()
        self.requests.clear()

    # Where it is

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def wait_for_requests(self, count: int, timeout_s: float = 10.0) -> None:
        """Return as soon as `count` calls have arrived.

        Raises:
            TimeoutError: they did not.
        """
        with self._arrived:
            if not self._arrived.wait_for(lambda: len(self.requests) >= count, timeout_s):
                raise TimeoutError(f"{len(self.requests)} of {count} calls arrived within {timeout_s} s")

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Connections are refused inside the block."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def release(self) -> None:
        """Drop every call that hangs."""
        if self._loop is not None and self._release is not None:
            self._loop.call_soon_threadsafe(self._release.set)

    # Its life

    def __enter__(self) -> ScriptedJudge:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(listener, ready), name="scripted-judge", daemon=True)
        self._thread.start()
        if not ready.wait(10):
            raise RuntimeError("the scripted judge did not start")

    def stop(self) -> None:
        if self._loop is None or self._thread is None:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop = self._thread = None

    def _run(self, listener: socket.socket, ready: threading.Event) -> None:
        loop = self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        self._release = asyncio.Event()
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        loop.run_until_complete(runner.setup())
        loop.run_until_complete(web.SockSite(runner, listener, backlog=1024).start())
        loop.call_soon(ready.set)
        loop.run_forever()
        self._release.set()
        loop.run_until_complete(runner.cleanup())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    # One call

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        headers = {name.lower(): value for name, value in request.headers.items()}
        with self._arrived:
            self.requests.append(RecordedRequest(request.path, headers, body))
            self._in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self._in_flight)
            self._arrived.notify_all()
        try:
            return await self._reply(request, body)
        finally:
            self._in_flight -= 1

    async def _reply(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        step = next((step for script in self._scripts if (step := script.step(body)) is not None), None)
        fault = next((fault for fault in self._faults if fault.strikes(body)), None)
        kind, options = (fault.kind, fault.options) if fault else (step.fault, step.options) if step else (None, {})
        await asyncio.sleep(self.delay_s + (options.get("seconds", 0.2) if kind == "slow" else 0.0))
        if kind in HTTP_FAULTS:
            return _error_response(http_error(kind, options, body))
        if kind == "hang":
            assert self._release is not None
            await self._release.wait()
        completion = _spoilt(kind, self._completion(step, body), body)
        if kind in CONNECTION_FAULTS - {"slow"}:
            return await _dropped(request, body, completion)
        if body.get("stream"):
            return await _streamed(request, body, completion, self.cached_tokens)
        return web.json_response(completion_json(body, completion, self.cached_tokens))

    def _completion(self, step: Step | None, body: dict[str, Any]) -> Completion:
        if step is not None and step.fault is None:
            default = "tool_calls" if step.tool_calls else "stop"
            return Completion(step.text, step.tool_calls, step.finish_reason or default)
        schema = schema_of(body)
        if schema is None:
            return Completion("As scripted.")
        answer = valid_answer(schema, self._overrides, body)
        if tool := _forced_tool(body):
            return Completion(None, ((tool, answer),), "stop")
        return Completion(json.dumps(answer))


def _forced_tool(body: Mapping[str, Any]) -> str | None:
    """The tool that a judge's request forces; agents leave the choice to the model."""
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        return str(choice["function"]["name"])
    if choice == "required":
        return str(body["tools"][0]["function"]["name"])
    return None


def _spoilt(kind: str | None, completion: Completion, body: Mapping[str, Any]) -> Completion:
    """The completion with a reply-level fault acted out on it."""
    tool = completion.tool_calls[0][0] if completion.tool_calls else None
    text = json.dumps(completion.tool_calls[0][1]) if tool else completion.text or ""

    def with_text(spoilt: str, finish_reason: str) -> Completion:
        if tool:
            return Completion(None, ((tool, spoilt),), finish_reason)
        return Completion(spoilt, (), finish_reason)

    if kind == "truncated":
        return with_text(text[: len(text) // 2], "length")
    if kind == "empty":
        return Completion("", (), "stop")
    if kind == "refusal":
        return Completion(None, (), "stop", refusal="I cannot help with that request.")
    if kind == "content_filter":
        return Completion("", (), "content_filter")
    if kind in SPOILERS:
        schema = schema_of(body) or {}
        return with_text(SPOILERS[kind](schema, json.loads(text)), completion.finish_reason)
    return completion


def _error_response(error: HttpError) -> web.Response:
    text = error.body if isinstance(error.body, str) else json.dumps(error.body)
    return web.Response(text=text, status=error.status, headers=dict(error.headers), content_type=error.content_type)


async def _dropped(request: web.Request, body: Mapping[str, Any], completion: Completion) -> web.StreamResponse:
    """Half of the reply, then the connection is gone."""
    payload = json.dumps(completion_json(body, completion, 0)).encode()
    response = web.StreamResponse(headers={"content-type": "application/json", "content-length": str(len(payload))})
    await response.prepare(request)
    await response.write(payload[: len(payload) // 2])
    if request.transport is not None:
        request.transport.abort()
    return response


async def _streamed(
    request: web.Request, body: Mapping[str, Any], completion: Completion, cached_tokens: int
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for event in completion_events(body, completion, cached_tokens):
        await response.write(event.encode())
    await response.write_eof()
    return response
