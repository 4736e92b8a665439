"""Sessions that nobody will judge: what they say is replaced by what the signals need of it, as it comes in.

Light sessions are assembled as all others are, from texts that are no longer anybody's words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from otel_evals.dialects.decoding import decode, is_redacted, plain_text, serialisable
from otel_evals.dialects.events import Spoken
from otel_evals.dialects.facts import Facts, Message
from otel_evals.sessions.model import ToolFailure
from otel_evals.sessions.open import Trace
from otel_evals.sessions.portions import ANSWER_TOOLS, OBSERVATION

__all__ = ["EarlyDecision", "LightMemory", "Reduced", "Reduction", "known_early"]

LONGEST_NAME = 256
"""Characters up to which the value of a kept attribute names something; longer ones are content."""

NOT_KEPT = "…"
"""Stands for the value of such an attribute: that it is there may matter to a rule."""
REMEMBERED = 256
"""Reduced texts that are remembered, of all sessions together."""


@dataclass(frozen=True, slots=True)
class EarlyDecision:
    """Which sessions are light."""

    chance: Callable[[str, Mapping[str, Any]], float]
    """(session id, facts known by then) → the highest probability of being judged; 0.0 makes the session light.

    Asked once per session and generation, when a span first names it. Sessions without an id are not asked: theirs
    is known at the end only.
    """
    reduce: Callable[[str], str]
    """A text → what stands for it in a light session."""


class Reduced(str):
    """A text that has been reduced."""

    __slots__ = ()


def known_early(trace: Trace) -> dict[str, Any]:
    """The facts that sampling rules may use before the end, as far as a trace states them."""
    known: dict[str, Any] = {}
    for fact, keys in (
        ("service", ("service.name",)),
        ("version", ("service.version",)),
        ("environment", ("deployment.environment.name", "deployment.environment")),
    ):
        values = [trace.resource[key] for key in keys if trace.resource.get(key)]
        if values and isinstance(values[0], str):
            known[fact] = values[0]
    for facts in sorted(trace.spans.values(), key=lambda item: item.start_ns):
        for name, value in ((facts.seldom.kept if facts.seldom else None) or {}).items():
            known.setdefault(f"attribute:{name}", serialisable(value))
    return known


class Reduction:
    """Reduces all that a span or log record says, in place and at most once."""

    def __init__(self, reduce: Callable[[str], str]) -> None:
        self._reduce = reduce
        self._recent: dict[int, Reduced] = {}
        """By the hash of the text: spans repeat one another, and a text takes a hundred times as long as its hash."""

    def text(self, text: str) -> str:
        """A text reduced; what an exporter put in place of content stays."""
        if not text or isinstance(text, Reduced):
            return text
        key = hash(text)
        known = self._recent.get(key)
        if known is None:
            known = self._recent[key] = Reduced(text if is_redacted(text) else self._reduce(text))
            if len(self._recent) > REMEMBERED:
                del self._recent[next(iter(self._recent))]
        return known

    def facts(self, facts: Facts) -> None:
        """All content of an unpacked span."""
        for message in (*facts.inputs, *facts.outputs):
            self.message(message)
        if facts.system:
            facts.system = self.text(facts.system)
        facts.failure = self._failure(facts.failure)
        if (tool := facts.tool) is not None:
            tool.arguments = self._arguments(tool.name, tool.arguments)
            tool.result = self._value(tool.result)
            tool.failure = self._failure(tool.failure)
        if (seldom := facts.seldom) is not None:
            seldom.goal = self.text(seldom.goal) if seldom.goal else seldom.goal
            seldom.kept = seldom.kept and {key: _name_or_mark(value) for key, value in seldom.kept.items()}

    def spoken(self, spoken: Spoken) -> None:
        """All content of a log record."""
        for message in (*spoken.inputs, *spoken.outputs):
            self.message(message)
        if spoken.system:
            spoken.system = self.text(spoken.system)

    def message(self, message: Message) -> None:
        """All content of a message."""
        text = message.text
        if text and not isinstance(text, Reduced):
            lead = next((lead for lead in OBSERVATION if text.lstrip().startswith(lead)), "")
            message.text = Reduced(f"{lead} {self.text(text)}") if lead else self.text(text)
            message._folded = None
        for call in message.calls:
            call.arguments = self._arguments(call.name, call.arguments)
        for result in message.results:
            result.content = self._value(result.content)
            result.failure = self._failure(result.failure)

    def _arguments(self, tool: str | None, value: Any) -> Any:
        """Arguments of which only equality counts, except where a tool's argument is the answer."""
        if isinstance(value, Reduced) or (
            isinstance(value, dict) and all(isinstance(v, Reduced) for v in value.values())
        ):
            return value
        found = decode(value) if isinstance(value, str) else value
        if not isinstance(found, dict):
            return self._value(value)
        if tool in ANSWER_TOOLS:
            return {key: self._value(item) for key, item in found.items()}
        return {"": self._value(found)} if found else found

    def _value(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, Reduced)) or value in ("", [], {}):
            return value
        if isinstance(value, str):
            return self.text(value)
        return self.text(_ordered(value).replace('\\"', '"').replace("\\n", "\n"))

    def _failure(self, failure: ToolFailure | None) -> ToolFailure | None:
        if failure is None or not failure.message or isinstance(failure.message, Reduced):
            return failure
        return ToolFailure.model_construct(type=failure.type, message=self.text(failure.message))


def _name_or_mark(value: Any) -> Any:
    return value if len(plain_text(value)) <= LONGEST_NAME else NOT_KEPT


def _ordered(value: Any) -> str:
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SORT_KEYS).decode()
    except (orjson.JSONEncodeError, TypeError, ValueError, RecursionError):
        return repr(value)


class LightMemory(dict[Any, Any]):
    """What the reader remembers of a light session: the messages that it read, reduced."""

    def __init__(self, reduction: Reduction) -> None:
        super().__init__()
        self._reduction = reduction

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, self._reduced(value))

    def _reduced(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(self._reduced, value))
        if isinstance(value, str):
            return self._reduction.text(value)
        if isinstance(value, Message):
            if value.role == "assistant" and not value.calls and not isinstance(value.text, Reduced):
                value = replace(value)  # the reader may yet put the pieces of a streamed answer together
            self._reduction.message(value)
        return value
