"""What log records say about the spans they name: several dialects put all their content there."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter
from typing import Any

from otel_evals.dialects.events import Spoken
from otel_evals.dialects.facts import Facts, Message
from otel_evals.sessions.histories import unpack
from otel_evals.sessions.open import Trace

__all__ = ["same_words", "size_of", "with_logs"]

_time = itemgetter(0)


def with_logs(trace: Trace) -> list[Facts]:
    """The trace's facts, unpacked, with what log records say about them."""
    for facts in trace.spans.values():
        unpack(facts)
    if not trace.logs:
        return list(trace.spans.values())
    out = [f for f in trace.spans.values() if f.span_id not in trace.logs]
    for span_id, logs in trace.logs.items():
        if len(logs) > 1:
            logs.sort(key=_time)
        rounds = _rounds(logs)
        owner = trace.spans.get(span_id)
        if owner is not None and owner.kind == "model" and len(rounds) == 1:
            out.append(_add(rounds[0], replace(owner)))
            continue
        if owner is not None:
            out.append(owner)
        for number, said in enumerate(rounds):
            time_ns = said[0][0]
            # A model call of which only the events are known, below the span that they name.
            bare = Facts(
                trace.id, (span_id << 8) + number + (1 << 72), span_id, time_ns, said[-1][0], "model", "events"
            )
            out.append(_add(said, bare))
    return out


def _rounds(logs: list[tuple[int, Spoken]]) -> list[list[tuple[int, Spoken]]]:
    """Events of several model calls on one span: an input after an output begins the next call."""
    rounds: list[list[tuple[int, Spoken]]] = [[]]
    answered = False
    for item in logs:
        spoken = item[1]
        if answered and (spoken.inputs or spoken.system) and not spoken.outputs:
            rounds.append([])
            answered = False
        rounds[-1].append(item)
        answered = answered or bool(spoken.outputs)
    return rounds


def _add(logs: list[tuple[int, Spoken]], facts: Facts) -> Facts:
    """Adds what logs say to a span that nobody else holds."""
    inputs: list[Message] = []
    outputs: list[Message] = []
    system: str | None = None
    for _, spoken in logs:
        if spoken.whole_inputs:
            inputs = spoken.inputs if len(spoken.inputs) >= len(inputs) else inputs
            outputs = spoken.outputs or outputs
        else:
            inputs = inputs + spoken.inputs
            outputs = outputs + spoken.outputs
        system = system or spoken.system
    facts.system = facts.system or system or next((m.text for m in inputs if m.role == "system"), None)
    facts.inputs = facts.inputs or tuple([m for m in inputs if m.role != "system"])
    facts.outputs = facts.outputs or tuple([m for m in outputs if m.role != "system"])
    return facts


def same_words(first: Spoken, second: Spoken) -> bool:
    def keys(spoken: Spoken) -> tuple[Any, ...]:
        return (tuple(m.key() for m in spoken.inputs), tuple(m.key() for m in spoken.outputs), spoken.system)

    return keys(first) == keys(second)


def size_of(message: Message) -> int:
    return len(message.text) + sum(len(repr(result.content)) for result in message.results)
