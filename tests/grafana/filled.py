"""A real Prometheus filled by scripted sessions of two services through the real pipeline and the real collector.

The raw evaluations are kept beside, so that whatever a panel shows can be computed a second time. In the first part
every service exports once: no counter grows between two scrapes, so Prometheus has nothing to extrapolate and its
figures are exact. The second part goes on in several exports with a new version, another judge and other questions,
which is what changes over time. Each version has its own model, as the simulation knows them: the second is worse.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from otel_evals import JudgedSession, Settings, attach
from otel_evals.evaluation import Decision
from otel_evals.sampling.rules import Match, Rule
from otel_evals.sessions.model import Session
from otel_evals.simulation.model import PlannedSession
from otel_evals.simulation.planner import plan_sessions
from otel_evals.simulation.player import play
from tests.components.collector import CONFIG_FOLDER, Collector
from tests.components.prometheus import Prometheus
from tests.scripted_judge import ScriptedJudge

__all__ = ["SERVICES", "SESSIONS", "Filled", "Part", "filled_prometheus"]

SESSIONS = 2100
CHUNK = 150
AS_FAST_AS_IT_GOES = 1e6
FLUSH_MS = 120_000
SERVICES = {"travel-web": ("travel-agent", "bank-assistant"), "shop-api": ("order-support", "bank-assistant")}
"""Service to its agents; the bank assistant belongs to both."""
MODELS = {"1.4.0": "simulated-large", "1.5.0": "simulated-small"}
"""Version of the services to the model of its agents, as the resource names it."""
LANGUAGE_MODEL_JUDGE = "shop-api"
SECOND_EVALUATORS = ("failure_rate", "failure_communication")
"""Fewer than in the first part, so the prompt is another one."""
RULES = (Rule(name="failed_tools", match=Match(min_failed_tools=1), rate=1.0),)
"""Weights 1 and 4, one for each rule: the recording rules tell weights apart by rule, `weighted_rate` by weight."""
PRICES = {"input_price": 0.15, "output_price": 0.60}


class Part(NamedTuple):
    """A stretch of the run."""

    sessions: int
    exports: int
    """The sessions come in so many portions, each exported when it is judged."""


FIRST, SECOND = Part(SESSIONS, exports=1), Part(120, exports=3)


@dataclass
class Filled:
    """What was scored, and where it has gone."""

    prometheus: Prometheus
    collector: Collector
    begin: float = field(default_factory=time.time)
    exact_at: float = 0.0
    """Epoch seconds after the first part: queries at this time are free of extrapolation."""
    end: float = 0.0
    judged: dict[str, list[JudgedSession]] = field(default_factory=dict)
    """Service to its results up to `exact_at`."""
    decisions: dict[str, list[tuple[Session, Decision]]] = field(default_factory=dict)
    """Service to the ledger up to `exact_at`."""


@contextmanager
def filled_prometheus(
    collector_binary: Path,
    prometheus_binaries: Path,
    folder: Path,
    *,
    first: Part = FIRST,
    second: Part = SECOND,
) -> Iterator[Filled]:
    """Runs everything; Prometheus and collector are there until the end of the block."""
    with ExitStack() as running:
        collector = Collector(collector_binary, _new(folder, "collector"))
        running.callback(collector.stop)
        rules = sorted((CONFIG_FOLDER / "prometheus" / "rules").glob("*.yaml"))
        prometheus = Prometheus(
            prometheus_binaries, _new(folder, "prometheus"), [collector.prometheus_target], rule_files=rules
        )
        running.callback(prometheus.stop)
        judge = running.enter_context(ScriptedJudge())
        _script(judge)
        filled = Filled(prometheus, collector)
        # Half of the planned sessions are of each model.
        plan = plan_sessions(3 * max(first.sessions, second.sessions), seed=11)
        _first_part(filled, _of("1.4.0", plan, first), judge)
        _second_part(filled, _of("1.5.0", plan, second), judge)
        yield filled


def _of(version: str, plan: Sequence[PlannedSession], part: Part) -> list[list[PlannedSession]]:
    """The portions of one part."""
    sessions = [session for session in plan if session.model == MODELS[version]][: part.sessions]
    size = -(-len(sessions) // part.exports)
    return [sessions[begin : begin + size] for begin in range(0, len(sessions), size)]


def _first_part(filled: Filled, portions: Sequence[Sequence[PlannedSession]], judge: ScriptedJudge) -> None:
    services = [_Service(name, "1.4.0", filled.collector, judge) for name in SERVICES]
    _serve(services, portions)
    for service in services:
        filled.judged[service.name] = list(service.judged)
        filled.decisions[service.name] = list(service.decisions)
    # All of the counters come with one scrape, all of the figures with the round of rules after it.
    for name in SERVICES:
        filled.prometheus.wait_for(
            lambda p, name=name: bool(p.query(f'otel_evals:failures:upper{{job="{name}",window="1d"}}'))
        )
    time.sleep(2.5)  # two more rounds of rules: the first may have been between the scrapes of the two services
    filled.exact_at = time.time()
    for service in services:
        service.shutdown()


def _second_part(filled: Filled, portions: Sequence[Sequence[PlannedSession]], judge: ScriptedJudge) -> None:
    services = [
        _Service(name, "1.5.0", filled.collector, judge, model="scripted-2", evaluators=SECOND_EVALUATORS)
        for name in SERVICES
    ]
    _serve(services, portions)
    for service in services:
        service.shutdown()
    filled.end = time.time()


def _serve(services: Sequence[_Service], portions: Sequence[Sequence[PlannedSession]]) -> None:
    for portion in portions:
        for service in services:
            service.serve(portion)
        for service in services:
            service.export()
        if len(portions) > 1:
            time.sleep(1.0)  # lets Prometheus scrape this state several times: real time is what it measures


class _Service:
    """One instance of a service: its own providers and resource, with otel-evals attached."""

    def __init__(self, name: str, version: str, collector: Collector, judge: ScriptedJudge, **settings: Any) -> None:
        self.name = name
        self.judged: list[JudgedSession] = []
        self.decisions: list[tuple[Session, Decision]] = []
        resource = Resource.create(
            {
                "service.name": name,
                "service.version": version,
                "service.instance.id": f"{name}-{version}",  # by default one for all providers of a process
                "gen_ai.request.model": MODELS[version],
            }
        )
        url = collector.http_endpoint
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._tracers.add_span_processor(
            BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces"), max_queue_size=65_536)
        )
        self._loggers = LoggerProvider(resource=resource, shutdown_on_exit=False)
        self._loggers.add_log_record_processor(
            BatchLogRecordProcessor(OTLPLogExporter(f"{url}/v1/logs"), max_queue_size=65_536)
        )
        # No export of its own accord: each is a step of the script.
        reader = PeriodicExportingMetricReader(
            OTLPMetricExporter(f"{url}/v1/metrics"), export_interval_millis=3_600_000
        )
        self._meters = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        if name == LANGUAGE_MODEL_JUDGE:
            settings = {"model": "scripted", "base_url": judge.base_url, "api_key": "none", **PRICES, **settings}
        else:
            settings = {**settings, "model": "rules"}
        self._handle = attach(
            self._tracers,
            self._loggers,
            self._meters,
            Settings(rate=0.25, rules=RULES, idle_timeout=3600, buffer_spans=65_536, **settings),
            on_result=self.judged.append,
            on_decision=lambda session, decision, rule: self.decisions.append((session, decision)),
        )

    def serve(self, plan: Sequence[PlannedSession]) -> None:
        """Let the sessions of this service's agents happen, and have them judged."""
        mine = [session for index, session in enumerate(plan) if self._is_mine(session, index)]
        tracer = self._tracers.get_tracer("simulation")
        for begin in range(0, len(mine), CHUNK):
            play(mine[begin : begin + CHUNK], tracer, AS_FAST_AS_IT_GOES, wait_until=lambda real_s: None)
            if not self._handle.force_flush(FLUSH_MS, complete=True):
                raise AssertionError(f"{self.name}: not judged within {FLUSH_MS} ms")
            self._wait_for_decisions()

    def _wait_for_decisions(self) -> None:
        """The last decision is counted by the time its callback runs, which may be just after the flush."""
        deadline = time.monotonic() + 10.0
        while len(self.decisions) < self._handle.stats()["sessions_completed"] and time.monotonic() < deadline:
            time.sleep(0.01)

    def _is_mine(self, session: PlannedSession, index: int) -> bool:
        serving = [name for name, agents in SERVICES.items() if session.agent in agents]
        return serving[index % len(serving)] == self.name

    def export(self) -> None:
        for provider in (self._tracers, self._loggers, self._meters):
            provider.force_flush()

    def shutdown(self) -> None:
        self._handle.shutdown()
        # The last export was the script's: another one would carry no exemplars and hide those of the last.
        self._tracers.shutdown()
        self._loggers.shutdown()


def _script(judge: ScriptedJudge) -> None:
    """A language model that grades the agent's words about a failed tool by chance, and now and then fails itself."""
    judge.label("failure_rate.turns", lambda body: [_turn(body, label=_drawn(body, _TURNS))] if _failed(body) else [])
    judge.label("failure_rate.label", lambda body: _drawn(body, _TURNS) if _failed(body) else "not_applicable")
    judge.label("goal_achievement.label", lambda body: _drawn(body, _GOALS) if _failed(body) else "fully")
    judge.label("failure_communication.failures", lambda body: [_told(body)] if _failed(body) else [])
    judge.answer(reasoning=lambda body: "Told the user that it had failed, and how." if _failed(body) else "All done.")
    judge.fault("server_error", times=None, probability=0.02, seed=5)
    judge.fault("prose", times=None, probability=0.02, seed=6)
    judge.fault("refusal", times=None, probability=0.03, seed=7)


_TURNS = ("alternative_proposed", "alternative_proposed", "honest_fallback", "stall", "hallucination")
_GOALS = ("partial", "mostly", "minor", "none")
_TOLD = ("explained", "explained", "vague", "ignored")
_FAILED_TOOL = re.compile(r'^\{"turn":(\d+),.*"failure":1', re.MULTILINE)


def _transcript(body: Mapping[str, Any]) -> str:
    told: str = body["messages"][1]["content"]
    return told[told.index("\n{") : told.rindex("}\n")]  # without boundary and canary, which are drawn anew


def _failed(body: Mapping[str, Any]) -> re.Match[str] | None:
    """The failed tool of the session; a simulated one has at most one."""
    return _FAILED_TOOL.search(_transcript(body))


def _drawn(body: Mapping[str, Any], choices: Sequence[str]) -> str:
    """The same session always gets the same."""
    return choices[zlib.crc32(_transcript(body).encode()) % len(choices)]


def _turn(body: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    failed = _failed(body)
    return {"turn": int(failed[1]) if failed else 0, "quote": "", **more}


def _told(body: Mapping[str, Any]) -> dict[str, Any]:
    return _turn(body, failure=1, told=_drawn(body, _TOLD), cause=True, next_step="specific", flaw="none")


def _new(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder
