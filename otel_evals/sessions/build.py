"""Facts of one completed session → the `Session` that judges see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from otel_evals.dialects.decoding import serialisable, valid_text
from otel_evals.dialects.facts import Facts
from otel_evals.sessions.model import CompletionReason, Session, Turn, Usage
from otel_evals.sessions.tree import Tree
from otel_evals.sessions.turns import build_turns, to_turn

__all__ = ["SessionHead", "build_session"]


SIDE_BY_SIDE = 4
"""Model calls before one, in time order, among which its double may be."""
_start = attrgetter("start_ns")
_end = attrgetter("end_ns")
_NO_USAGE = Usage(input_tokens=None, output_tokens=None, cached_tokens=None)


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
    common = _Common(tree.ordered)
    reason = _not_evaluable(turns)
    truncated = head.truncated or len(turns) > head.max_turns
    return Session(
        session_id=valid_text(head.session_id),
        session_key=valid_text(head.session_key),
        derived=head.derived,
        conversation_id=_valid(common.conversation_id),
        generation=head.generation,
        turns=turns[-head.max_turns :],
        evaluable=reason is None,
        not_evaluable_reason=reason,
        incomplete=_incomplete(tree) if tree.orphans else False,
        truncated=truncated,
        completion=head.completion,
        system_prompt=_valid(common.system),
        goal=_valid(common.goal) or head.goal,
        service_name=_text(head.resource, "service.name"),
        service_version=_text(head.resource, "service.version"),
        environment=_text(head.resource, "deployment.environment.name")
        or _text(head.resource, "deployment.environment"),
        agents=_distinct(common.agents),
        models=_distinct(common.models),
        user_id=_valid(common.user_id),
        tags=_distinct(common.tags),
        usage=_usage(tree, common.reports),
        start_ns=min(map(_start, facts), default=0),
        end_ns=max(map(_end, facts), default=0),
        span_count=len(facts),
        attributes=common.kept,
        chance=head.chance,
    )


class _Common:
    """What a session's spans say of all of it: single facts as first told, names in the order of mention."""

    __slots__ = ("agents", "conversation_id", "goal", "kept", "models", "reports", "system", "tags", "user_id")

    def __init__(self, ordered: Sequence[Facts]) -> None:
        self.conversation_id: str | None = None
        self.system: str | None = None
        self.goal: str | None = None
        self.user_id: str | None = None
        self.agents: dict[str, None] = {}
        self.models: dict[str, None] = {}
        self.reports: list[Facts] = []
        """Model calls that report the tokens they took."""
        self.tags: dict[str, None] = {}
        self.kept: dict[str, Any] = {}
        for facts in ordered:
            if facts.conversation_id and self.conversation_id is None:
                self.conversation_id = facts.conversation_id
            if facts.system and self.system is None:
                self.system = facts.system
            if facts.user_id and self.user_id is None:
                self.user_id = facts.user_id
            if facts.agent:
                self.agents[facts.agent] = None
            if facts.kind == "model":
                if facts.model:
                    self.models[facts.model] = None
                if facts.usage is not None:
                    self.reports.append(facts)
            if facts.tags:
                self.tags.update(dict.fromkeys(facts.tags))
            if facts.seldom is not None:
                self.goal = self.goal or facts.seldom.goal
                for key, value in (facts.seldom.kept or {}).items():
                    self.kept.setdefault(key, serialisable(value))


def _not_evaluable(turns: Sequence[Turn]) -> str | None:
    if not turns:
        return "no_turns"
    user = agent = False
    for turn in turns:
        if not user and turn.user and turn.user.strip():
            user = True
        if not agent and turn.agent and turn.agent.strip():
            agent = True
        if user and agent:
            return None
    if not user and not agent:
        return "no_content"
    if not user:
        return "no_user_input"
    return "no_agent_answer"


def _incomplete(tree: Tree) -> bool:
    """A model or tool span lost its parent while the session has wrappers: spans are missing."""
    wrapped = any(f.kind in ("agent", "chain") for f in tree.ordered)
    return wrapped and any(f.kind in ("model", "tool") and not f.parent_remote for f in tree.orphans)


def _usage(tree: Tree, calls: Sequence[Facts]) -> Usage:
    """Tokens of each model call once; where no model call reports any, those of the outermost wrappers."""
    found = _model_usage(tree, calls) if calls else _wrapper_usage(tree)
    if not found:
        return _NO_USAGE
    asked: int | None = None
    answered: int | None = None
    cached: int | None = None
    for call in found:
        if call[0] is not None:
            asked = (asked or 0) + call[0]
        if call[1] is not None:
            answered = (answered or 0) + call[1]
        if call[2] is not None:
            cached = (cached or 0) + call[2]
    return Usage(input_tokens=asked, output_tokens=answered, cached_tokens=cached)


def _model_usage(tree: Tree, calls: Sequence[Facts]) -> list[tuple[int | None, int | None, int | None]]:
    """Of several reports of one call only one."""
    counted: list[Facts] = []
    found: list[tuple[int | None, int | None, int | None]] = []
    seen: set[str] = set()
    for item in calls:
        if item.usage is None or item.response_id in seen:
            continue
        if tree.has_children(item) and any(below.usage is not None for below in tree.models_below(item)):
            continue
        for other in counted[-SIDE_BY_SIDE:]:
            if _same_call(item, other):
                break
        else:
            if item.response_id:
                seen.add(item.response_id)
            counted.append(item)
            found.append(item.usage)
    return found


def _same_call(first: Facts, second: Facts) -> bool:
    """Two instrumentations beside each other: one span within the other's time, the same tokens, not two ids."""
    if first.response_id and second.response_id:
        return False
    if first.usage is None or second.usage is None:
        return False
    if first.usage[0] != second.usage[0] or first.usage[1] != second.usage[1]:
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


def _valid(text: str | None) -> str | None:
    return valid_text(text) if text else None


def _distinct(texts: dict[str, None]) -> tuple[str, ...]:
    if "".join(texts).isascii():
        return tuple(texts)
    return tuple(dict.fromkeys(map(valid_text, texts)))


def _text(attributes: Mapping[str, Any], key: str) -> str | None:
    value = attributes.get(key)
    return valid_text(value) if isinstance(value, str) and value else None
