"""The litellm model, against the scripted server: answers, failures by name, and the host's litellm left alone."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

litellm = pytest.importorskip("litellm")

from litellm.integrations.custom_logger import CustomLogger  # noqa: E402

from otel_evals.judging.models.litellm_model import LiteLLMModel  # noqa: E402
from otel_evals.judging.models.protocol import ChatReply, ModelError  # noqa: E402
from tests.judging.models.conftest import API_KEY, PROMPT_SECRET, REPLY_SECRET, question  # noqa: E402
from tests.scripted_judge import ScriptedJudge, say  # noqa: E402

Leaked = Callable[..., None]

# One provider that litellm calls through the openai package, and one that it calls over its own HTTP handler.
PROVIDERS = ["openai/gpt-4o-mini", "deepseek/deepseek-chat"]


def ask(model: LiteLLMModel, **changes: Any) -> ChatReply:
    """One call on a loop of its own, as the judge's thread does it."""

    async def call() -> ChatReply:
        try:
            return await model.complete(question(**changes))
        finally:
            await model.close()

    return asyncio.run(call())


def failing(model: LiteLLMModel, **changes: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(model, **changes)
    return caught.value


@pytest.fixture(params=PROVIDERS)
def model(request: pytest.FixtureRequest, scripted_judge: ScriptedJudge) -> LiteLLMModel:
    scripted_judge.answer(reasoning=REPLY_SECRET)
    return LiteLLMModel(request.param, API_KEY, scripted_judge.base_url)


@pytest.fixture
def gpt(scripted_judge: ScriptedJudge) -> LiteLLMModel:
    scripted_judge.answer(reasoning=REPLY_SECRET)
    return LiteLLMModel(PROVIDERS[0], API_KEY, scripted_judge.base_url)


# Answers


def test_an_answer_satisfies_the_schema(model: LiteLLMModel, assert_nothing_leaked: Leaked) -> None:
    reply = ask(model)
    assert json.loads(reply.text)["failure_rate"]["label"] == "honest_fallback"
    assert (reply.finish_reason, reply.calls) == ("stop", 1)
    assert_nothing_leaked()


def test_tokens_are_reported_with_the_cached_part(gpt: LiteLLMModel, scripted_judge: ScriptedJudge) -> None:
    scripted_judge.cached_tokens = 7
    reply = ask(gpt)
    assert reply.input_tokens > 7
    assert (reply.output_tokens > 0, reply.cached_tokens) == (True, 7)


def test_the_cost_comes_from_the_price_list(gpt: LiteLLMModel) -> None:
    reply = ask(gpt)
    expected = (reply.input_tokens * 0.15 + reply.output_tokens * 0.60) / 1e6  # gpt-4o-mini, USD per million
    assert reply.cost_usd == pytest.approx(expected)


def test_the_configured_price_wins_over_the_list(scripted_judge: ScriptedJudge) -> None:
    model = LiteLLMModel(PROVIDERS[0], API_KEY, scripted_judge.base_url, input_price=100.0, output_price=200.0)
    reply = ask(model)
    assert reply.cost_usd == pytest.approx((reply.input_tokens * 100 + reply.output_tokens * 200) / 1e6)


def test_the_cost_of_a_model_off_the_list_is_unknown(scripted_judge: ScriptedJudge) -> None:
    assert ask(LiteLLMModel("openai/our-own-model", API_KEY, scripted_judge.base_url)).cost_usd is None


def test_the_same_model_answers_on_one_loop_after_another(model: LiteLLMModel) -> None:
    assert ask(model).text
    assert ask(model).text


def test_closing_leaves_no_connection_open(model: LiteLLMModel, scripted_judge: ScriptedJudge) -> None:
    ask(model)  # the first call loads modules and certificates
    scripted_judge.stop()
    before = len(os.listdir("/proc/self/fd"))
    scripted_judge.start()
    ask(model)
    scripted_judge.stop()
    assert len(os.listdir("/proc/self/fd")) == before


# Failures by name

FAILURES = [
    ("rate_limited", "rate_limited", True),
    ("quota", "quota", False),
    ("auth", "auth", False),
    ("forbidden", "auth", False),
    ("not_found", "not_found", False),
    ("server_error", "server_error", True),
    ("html_502", "unavailable", True),
    ("overloaded", "unavailable", True),
    ("context_length", "context_length", False),
    ("content_filter_400", "content_filter", False),
    ("dropped", "unavailable", True),
]


@pytest.mark.parametrize(("fault", "error_type", "retryable"), FAILURES, ids=[f[0] for f in FAILURES])
def test_a_failed_call_is_named_after_one_request(
    model: LiteLLMModel,
    scripted_judge: ScriptedJudge,
    assert_nothing_leaked: Leaked,
    fault: str,
    error_type: str,
    retryable: bool,
) -> None:
    scripted_judge.fault(fault, times=None)
    error = failing(model)
    assert (error.error_type, error.retryable, error.calls) == (error_type, retryable, 1)
    assert len(scripted_judge.requests) == 1
    assert_nothing_leaked(error)


@pytest.mark.parametrize("fault", ["not_json", "not_a_completion"])
def test_a_reply_that_is_no_completion_is_an_error(
    model: LiteLLMModel, scripted_judge: ScriptedJudge, assert_nothing_leaked: Leaked, fault: str
) -> None:
    scripted_judge.fault(fault, times=None)
    error = failing(model)
    assert error.error_type in ("bad_response", "server_error")
    assert len(scripted_judge.requests) == 1
    assert_nothing_leaked(error)


def test_a_refused_connection_is_named(
    model: LiteLLMModel, scripted_judge: ScriptedJudge, assert_nothing_leaked: Leaked
) -> None:
    with scripted_judge.refusing():
        error = failing(model)
    assert (error.error_type, error.retryable) == ("refused", True)
    assert_nothing_leaked(error)


def test_a_call_that_hangs_ends_at_its_timeout(
    model: LiteLLMModel, scripted_judge: ScriptedJudge, assert_nothing_leaked: Leaked
) -> None:
    ask(model)  # loaded: the timeout is then the call's alone
    scripted_judge.fault("hang")
    error = failing(model, timeout_s=0.3)
    assert (error.error_type, error.retryable) == ("timeout", True)
    assert_nothing_leaked(error)


def test_retry_after_is_passed_on(model: LiteLLMModel, scripted_judge: ScriptedJudge) -> None:
    scripted_judge.fault("rate_limited", retry_after=30)
    assert failing(model).retry_after_s == 30


def test_an_unknown_provider_is_named_without_a_word_on_the_terminal(assert_nothing_leaked: Leaked) -> None:
    error = failing(LiteLLMModel("no-such-thing", API_KEY))
    assert error.error_type == "not_found"
    assert_nothing_leaked(error)


def test_a_truncated_answer_says_so(model: LiteLLMModel, scripted_judge: ScriptedJudge) -> None:
    scripted_judge.fault("truncated")
    assert ask(model).finish_reason == "length"


def test_an_empty_answer_comes_back_empty(model: LiteLLMModel, scripted_judge: ScriptedJudge) -> None:
    scripted_judge.fault("empty")
    assert ask(model).text == ""


# The ladder


def test_a_refused_schema_leads_to_a_forced_tool(model: LiteLLMModel, scripted_judge: ScriptedJudge) -> None:
    scripted_judge.fault("schema_rejected", times=None)
    reply = ask(model)
    assert [request.answer_format for request in scripted_judge.requests] == ["json_schema", "tool"]
    assert json.loads(reply.text)["failure_rate"]
    assert reply.calls == 2


def test_a_refused_temperature_is_left_out_from_then_on(model: LiteLLMModel, scripted_judge: ScriptedJudge) -> None:
    scripted_judge.fault("parameter_rejected", times=None)
    ask(model)
    ask(model)
    assert ["temperature" in request.body for request in scripted_judge.requests] == [True, False, False]


def test_a_parameter_that_litellm_itself_refuses_is_left_out(scripted_judge: ScriptedJudge) -> None:
    reply = ask(LiteLLMModel("openai/o3-mini", API_KEY, scripted_judge.base_url))
    assert reply.text
    assert "temperature" not in scripted_judge.requests[-1].body


# The host's litellm


class HostsLogger(CustomLogger):  # type: ignore[misc]
    """Notes every hook that litellm looks up on it, with the thread."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, int]] = []
        self.texts: list[str] = []
        self.logged: asyncio.Queue[None] = asyncio.Queue()

    def __getattribute__(self, name: str) -> Any:
        if name.startswith(("log_", "async_")):
            object.__getattribute__(self, "seen").append((name, threading.get_ident()))
        return super().__getattribute__(name)

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        self.texts.append(str(kwargs.get("messages")))
        self.logged.put_nowait(None)


@pytest.fixture
def host() -> Iterator[HostsLogger]:
    """A host that has registered callbacks of every kind with litellm."""
    names = ("callbacks", "input_callback", "success_callback", "failure_callback", "_async_success_callback")
    names += ("_async_failure_callback", "_async_input_callback")
    before = {name: list(getattr(litellm, name)) for name in names}
    logger = HostsLogger()
    litellm.callbacks.append(logger)
    litellm.input_callback.append(logger)
    for register in (litellm.success_callback, litellm.failure_callback):
        register.append(lambda *_: logger.seen.append(("function", threading.get_ident())))
    yield logger
    for name, value in before.items():
        getattr(litellm, name)[:] = value


def test_the_hosts_callbacks_see_nothing_of_a_successful_call(model: LiteLLMModel, host: HostsLogger) -> None:
    ask(model)
    assert host.seen == []


@pytest.mark.parametrize("fault", ["auth", "server_error", "context_length"])
def test_the_hosts_callbacks_see_nothing_of_a_failed_call(
    model: LiteLLMModel, scripted_judge: ScriptedJudge, host: HostsLogger, fault: str
) -> None:
    scripted_judge.fault(fault)
    failing(model)
    assert host.seen == []


def test_the_hosts_own_calls_on_its_own_loop_still_reach_its_callbacks(
    model: LiteLLMModel, scripted_judge: ScriptedJudge, host: HostsLogger
) -> None:
    scripted_judge.script(say("The host's answer."), model="hosts-model")
    scripted_judge.delay_s = 0.02
    calls = 10
    results: list[str] = []

    async def use_litellm() -> None:
        for number in range(calls):
            response = await litellm.acompletion(
                "openai/hosts-model",
                messages=[{"role": "user", "content": f"host {number}"}],
                api_key="sk-host",
                api_base=scripted_judge.base_url,
            )
            results.append(response.choices[0].message.content)
        for _ in range(calls):  # litellm logs from a task on the loop of the call
            await asyncio.wait_for(host.logged.get(), 20)

    hosts_thread = threading.Thread(target=lambda: asyncio.run(use_litellm()))
    hosts_thread.start()
    ours: list[ChatReply] = []

    async def judge() -> None:
        ours.extend(await asyncio.gather(*(model.complete(question()) for _ in range(calls))))
        await model.close()

    asyncio.run(judge())
    hosts_thread.join(60)
    assert results == ["The host's answer."] * calls
    assert len(ours) == calls
    assert len(host.texts) == calls
    assert not [text for text in host.texts if PROMPT_SECRET in text]
    assert threading.get_ident() not in {thread for _, thread in host.seen}


def test_the_hosts_retries_and_cache_do_not_apply_to_us(
    model: LiteLLMModel, scripted_judge: ScriptedJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(litellm, "num_retries", 5)
    monkeypatch.setattr(litellm, "cache", litellm.Cache(type="local"))
    ask(model)
    ask(model)
    scripted_judge.fault("server_error", times=None)
    failing(model)
    assert len(scripted_judge.requests) == 3
    assert litellm.num_retries == 5


def test_litellms_globals_are_the_same_after_our_calls(
    model: LiteLLMModel, scripted_judge: ScriptedJudge, host: HostsLogger
) -> None:
    ask(model)  # lazy attributes appear on first use, for the host as well
    before = _globals()
    ask(model)
    scripted_judge.fault("auth")
    failing(model)
    assert _globals() == before


def _globals() -> dict[str, str]:
    plain = (bool, int, float, str, list, dict, set, type(None))
    return {name: repr(value) for name, value in vars(litellm).items() if isinstance(value, plain)}


def test_the_hosts_own_failures_are_still_explained_on_its_terminal(
    gpt: LiteLLMModel, scripted_judge: ScriptedJudge, capfd: pytest.CaptureFixture[str]
) -> None:
    ask(gpt)
    scripted_judge.fault("auth", times=None)
    with pytest.raises(litellm.AuthenticationError):
        litellm.completion(
            "openai/x",
            messages=[{"role": "user", "content": "hi"}],
            api_key="sk-host",
            api_base=scripted_judge.base_url,
        )
    assert "Get Help" in capfd.readouterr().out


# A process that has not loaded litellm: what our first call changes there

LATE_LOADER = """
import asyncio, json, logging, os, sys
before = dict(os.environ)
logging.getLogger("httpx").setLevel(logging.INFO)
from otel_evals.judging.models.litellm_model import LiteLLMModel
early = sorted({"litellm", "aiohttp", "openai"} & set(sys.modules))
from tests.judging.models.conftest import question
model = LiteLLMModel("openai/gpt-4o-mini", "sk-x", sys.argv[1])
async def call():
    reply = await model.complete(question())
    await model.close()
    return reply
reply = asyncio.run(call())
print(json.dumps({
    "early": early,
    "answered": bool(reply.text),
    "cost": reply.cost_usd,
    "environment": {k: v for k, v in os.environ.items() if before.get(k) != v},
    "httpx_level": logging.getLogger("httpx").level,
    "asyncio_filters": len(logging.getLogger("asyncio").filters),
    "root": [logging.root.level, len(logging.root.handlers)],
}))
"""


@pytest.fixture(scope="module")
def late_loader(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("host")
    (folder / ".env").write_text("HOST_SECRET=from-dotenv\n")
    script = folder / "host.py"
    script.write_text(LATE_LOADER)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    for name in ("LITELLM_MODE", "LITELLM_LOCAL_MODEL_COST_MAP"):
        environment.pop(name, None)
    with ScriptedJudge() as judge:
        done = subprocess.run(
            [sys.executable, str(script), judge.base_url],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    result: dict[str, Any] = json.loads(done.stdout)  # fails when anything else is printed
    return result


def test_litellm_is_loaded_by_the_first_call_and_not_before(late_loader: dict[str, Any]) -> None:
    assert (late_loader["early"], late_loader["answered"]) == ([], True)


def test_loading_it_leaves_the_environment_alone(late_loader: dict[str, Any]) -> None:
    assert late_loader["environment"] == {}


def test_loading_it_leaves_the_hosts_loggers_alone(late_loader: dict[str, Any]) -> None:
    assert (late_loader["httpx_level"], late_loader["root"]) == (20, [30, 0])
    assert late_loader["asyncio_filters"] == 0


def test_the_price_list_needs_no_download(late_loader: dict[str, Any]) -> None:
    assert late_loader["cost"] > 0


def test_a_missing_litellm_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"otel-evals\[litellm\]"):
        LiteLLMModel("anthropic/claude")


def test_a_litellm_that_cannot_be_used_is_a_named_failure(
    gpt: LiteLLMModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise AttributeError("a version that is built otherwise")

    monkeypatch.setattr("otel_evals.judging.models.litellm_model.load_litellm", broken)
    error = failing(gpt)
    assert (error.error_type, error.retryable, error.calls) == ("unavailable", False, 0)
    assert "litellm could not be loaded: AttributeError" in caplog.text
