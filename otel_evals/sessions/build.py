"""Facts of one completed session → the `Session` that judges see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from otel_evals.dialects.decoding import serialisable, valid_text
from otel_evals.dialects.facts import Facts
from otel_evals.sessions.model import CompletionReason, Session, Turn, Usage
from otel_evals.sessions.tree import Tree
from otel_evals.sessions.turns import build_turns, to_turn

__all__ = ["SessionHead", "build_session"]


SIDE_BY_SIDE = 4
"""Model calls before one, in time order, among which its double may be."""


@dataclass(frozen=True, slots=True)
class SessionHead:
    """What is known of a session beside its spans."""

    session_id: str
    session_key: str
    derived: bool
    generation: int = 1
    completion: CompletionReason = "idle"
    resource: Mapping[str, Any] = field(default_factory=dict)
    goal: str | None = None
    """The configured goal, where the session has none of its own."""
    truncated: bool = False
    max_turns: int = 200
    chance: float = 1.0


def build_session(head: SessionHead, facts: Sequence[Facts]) -> Session:
    """Assembles one session. The order of `facts` does not matter."""
    tree = Tree(facts)
    turns = tuple([to_turn(draft) for draft in build_turns(tree)])
    ordered = tree.ordered
    reason = _not_evaluable(turns)
    truncated = head.truncated or len(turns) > head.max_turns
    return Session(
        session_id=valid_text(head.session_id),
        session_key=valid_text(head.session_key),
        derived=head.derived,
        conversation_id=_first(f.conversation_id for f in ordered),
        generation=head.generation,
        turns=turns[-head.max_turns :],
        evaluable=reason is None,
        not_evaluable_reason=reason,
        incomplete=_incomplete(tree),
        truncated=truncated,
        completion=head.completion,
        system_prompt=_first(f.system for f in ordered),
        goal=_first(f.seldom.goal for f in ordered if f.seldom) or head.goal,
        service_name=_text(head.resource, "service.name"),
        service_version=_text(head.resource, "service.version"),
        environment=_text(head.resource, "deployment.environment.name")
        or _text(head.resource, "deployment.environment"),
        agents=tuple(dict.fromkeys(valid_text(f.agent) for f in ordered if f.agent)),
        models=tuple(dict.fromkeys(valid_text(f.model) for f in ordered if f.model and f.kind == "model")),
        user_id=_first(f.user_id for f in ordered),
        tags=tuple(dict.fromkeys(valid_text(tag) for f in ordered for tag in f.tags)),
        usage=_usage(tree),
        start_ns=min((f.start_ns for f in facts), default=0),
        end_ns=max((f.end_ns for f in facts), default=0),
        span_count=len(facts),
        attributes=_kept(ordered),
        chance=head.chance,
    )


def _not_evaluable(turns: Sequence[Turn]) -> str | None:
    if not turns:
        return "no_turns"
    user = any(turn.user and turn.user.strip() for turn in turns)
    agent = any(turn.agent and turn.agent.strip() for turn in turns)
    if not user and not agent:
        return "no_content"
    if not user:
        return "no_user_input"
    return None if agent else "no_agent_answer"


def _incomplete(tree: Tree) -> bool:
    """A model or tool span lost its parent while the session has wrappers: spans are missing."""
    wrapped = any(f.kind in ("agent", "chain") for f in tree.ordered)
    return wrapped and any(f.kind in ("model", "tool") and not f.parent_remote for f in tree.orphans)


def _usage(tree: Tree) -> Usage:
    """Tokens of each model call once; where no model call reports any, those of the outermost wrappers."""
    sums: list[int | None] = [None, None, None]
    for usage in _model_usage(tree) or _wrapper_usage(tree):
        for index, value in enumerate(usage):
            if value is not None:
                sums[index] = (sums[index] or 0) + value
    return Usage(input_tokens=sums[0], output_tokens=sums[1], cached_tokens=sums[2])


def _model_usage(tree: Tree) -> list[tuple[int | None, int | None, int | None]]:
    """Of several reports of one call only one."""
    counted: list[Facts] = []
    seen: set[str] = set()
    for item in tree.ordered:
        if item.kind != "model" or item.usage is None:
            continue
        if tree.has_children(item) and any(below.usage is not None for below in tree.models_below(item)):
            continue
        if item.response_id in seen or any(_same_call(item, other) for other in counted[-SIDE_BY_SIDE:]):
            continue
        if item.response_id:
            seen.add(item.response_id)
        counted.append(item)
    return [item.usage for item in counted if item.usage is not None]


def _same_call(first: Facts, second: Facts) -> bool:
    """Two instrumentations beside each other: one span within the other's time, the same tokens, not two ids."""
    if first.usage is None or second.usage is None or first.usage[:2] != second.usage[:2]:
        return False
    if first.response_id and second.response_id:
        return False
    longer_first = first.end_ns - first.start_ns >= second.end_ns - second.start_ns
    outer, inner = (first, second) if longer_first else (second, first)
    return outer.start_ns <= inner.start_ns and inner.end_ns <= outer.end_ns


def _wrapper_usage(tree: Tree) -> list[tuple[int | None, int | None, int | None]]:
    found = []
    stack = list(tree.roots)
    while stack:
        item = stack.pop()
        if item.usage is not None:
            found.append(item.usage)
        else:
            stack.extend(tree.children(item))
    return found


def _kept(ordered: Iterable[Facts]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for item in ordered:
        for key, value in ((item.seldom.kept if item.seldom else None) or {}).items():
            kept.setdefault(key, serialisable(value))
    return kept


def _first(values: Iterable[str | None]) -> str | None:
    found = next((value for value in values if value), None)
    return valid_text(found) if found else None


def _text(attributes: Mapping[str, Any], key: str) -> str | None:
    value = attributes.get(key)
    return valid_text(value) if isinstance(value, str) and value else None
