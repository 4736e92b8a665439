"""Who is not picked when a session begins is never judged, holds no content, and is counted like everybody else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from otel_evals.evaluation import Decision, JudgeTask
from otel_evals.pipeline import Pipeline
from otel_evals.sampling.draw import draw
from otel_evals.sampling.sampler import Sampler
from otel_evals.sessions.model import Session
from otel_evals.settings import Settings
from tests.captures.corpus import add
from tests.sessions.spans import SECOND, agent, tool

IDS = [f"session-{number}" for number in range(400)]


class Running:
    """A pipeline whose decisions are kept; nothing is judged."""

    def __init__(self, **settings: Any) -> None:
        self.decided: list[tuple[Session, Decision, str]] = []
        settings = {"model": "rules", "queue_capacity": 10_000, **settings}
        self.pipeline = Pipeline(Settings(**settings), on_decision=lambda *args: self.decided.append(args))

    def begin(self, names: Iterable[str], **attributes: Any) -> None:
        for name in names:
            trace = hash(name) & (1 << 63) - 1
            spans = [
                tool("search", {"to": "Oslo"}, "Error: secretreason", session=name, trace=trace, parent=9),
                agent("secretquestion", "secretanswer", session=name, trace=trace, span_id=9),
            ]
            for span in spans:
                span.attributes.update(attributes)  # type: ignore[attr-defined]
            add(self.pipeline.assembler, spans)

    def finish(self) -> list[JudgeTask]:
        """What waits for a judge once all sessions are complete."""
        list(self.pipeline.flush(SECOND))
        return list(iter(self.pipeline.queue.take, None))

    @property
    def decisions(self) -> Counter[str]:
        return Counter(decision for _, decision, _ in self.decided)


def test_only_sessions_that_may_be_picked_keep_their_content() -> None:
    running = Running(rate=0.2)
    running.begin(IDS)
    tasks = running.finish()
    assert {task.session.session_id for task in tasks} == {name for name in IDS if draw(name) < 0.2}
    assert all(task.session.turns[0].user == "secretquestion" for task in tasks)
    assert not any("secret" in session.model_dump_json() for session, _, _ in running.decided)


def test_every_session_gets_one_decision() -> None:
    running = Running(rate=0.2)
    running.begin(IDS)
    waiting = len(running.finish())
    assert running.decisions == {"sampled_out": len(IDS) - waiting}
    assert running.pipeline.ledger.completed == len(IDS)
    assert running.pipeline.ledger.pending == waiting


def test_a_rate_raised_meanwhile_is_for_the_sessions_that_begin_afterwards() -> None:
    running = Running(rate=0.1)
    running.begin(IDS[:200])
    running.pipeline.sampler.set_rate(0.5)
    running.begin(IDS[200:])
    picked = {task.session.session_id: set(task.probabilities.values()) for task in running.finish()}
    before = {name: {0.1} for name in IDS[:200] if draw(name) < 0.1}
    after = {name: {0.5} for name in IDS[200:] if draw(name) < 0.5}
    assert picked == before | after
    assert {rule for _, _, rule in running.decided} == {"default"}


def test_a_rate_lowered_meanwhile_is_for_all() -> None:
    running = Running(rate=0.5)
    running.begin(IDS)
    running.pipeline.sampler.set_rate(0.1)
    picked = {task.session.session_id: set(task.probabilities.values()) for task in running.finish()}
    assert picked == {name: {0.1} for name in IDS if draw(name) < 0.1}


def test_weights_add_up_to_all_sessions_whenever_the_rate_moved() -> None:
    names = [f"visitor-{number}" for number in range(4_000)]
    sampler = Sampler(Settings(rate=0.1))
    begun = {name: sampler.chance(name) for name in names}
    sampler.set_rate(0.4)
    sessions = [Session(session_id=name, session_key="session.id", chance=begun[name]) for name in names]
    decided = [sampler.decide(session) for session in sessions]
    assert sum(1 / one.chosen["failure_rate"] for one in decided if one.chosen) == pytest.approx(4_000, rel=0.1)


def test_sessions_that_begin_during_a_pause_are_not_judged_after_it() -> None:
    running = Running(rate=1.0)
    running.pipeline.sampler.pause()
    running.begin(IDS[:5])
    running.pipeline.sampler.resume()
    running.begin(IDS[5:9])
    assert [task.session.session_id for task in running.finish()] == IDS[5:9]
    assert running.decisions == {"sampled_out": 5}


def test_experiments_are_filtered_without_their_content() -> None:
    running = Running(rate=1.0)
    running.begin(["trial"], **{"otel_evals.experiment": "e-1"})
    assert running.finish() == []
    [(session, decision, rule)] = running.decided
    assert (session.content_kept, decision, rule) == (False, "filtered", "experiments")


def test_the_default_rule_of_evidence_keeps_everybody() -> None:
    running = Running()
    running.begin(IDS)
    tasks = running.finish()
    assert {task.rule for task in tasks} == {"evidence"}
    assert len(tasks) == len(IDS)


def test_a_rule_on_an_attribute_of_the_first_span_decides_at_once() -> None:
    rules = [{"name": "gold", "match": {"attributes": {"plan": "gold"}}, "rate": 1.0}]
    running = Running(rate=0.0, rules=rules)
    running.begin(IDS[:3], plan="gold")
    running.begin(IDS[3:6], plan="free")
    assert [task.session.session_id for task in running.finish()] == IDS[:3]
    assert {session.content_kept for session, _, _ in running.decided} == {False}
