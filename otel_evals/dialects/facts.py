"""What one span says, in our words: the only thing that later stages know of it.

Facts hold parsed messages and no raw attributes, so that memory grows with what was said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from otel_evals.dialects.decoding import fold
from otel_evals.sessions.model import ToolFailure

__all__ = ["REMEMBERED_RESPONSE", "Call", "Facts", "Kind", "Message", "Result", "Role", "Seldom", "ToolFacts"]

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]

Kind: TypeAlias = Literal["agent", "chain", "model", "tool", "pseudo", "other"]
"""`chain` wraps other work, `pseudo` is bookkeeping that is no part of a turn (`create_agent`)."""


REMEMBERED_RESPONSE = "resp_"
"""How ids of responses begin that a service remembers, so that only what is new need be sent."""


@dataclass(slots=True, eq=False)
class Call:
    """An assistant's wish to call a tool."""

    id: str | None
    name: str | None
    arguments: Any
    """A dict wherever it could be read as one; None: not exported."""


@dataclass(slots=True, eq=False)
class Result:
    """What a tool answered, as a message reports it."""

    call_id: str | None
    name: str | None
    content: Any
    failure: ToolFailure | None = None


@dataclass(slots=True, eq=False)
class Message:
    """One message of a model's input or output, whatever shape it came in."""

    role: Role
    text: str
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    _folded: str | None = None

    @property
    def folded(self) -> str:
        """The text with its white space folded, for comparing."""
        if self._folded is None:
            self._folded = fold(self.text)
        return self._folded

    def key(self) -> tuple[Any, ...]:
        """Hashable content: equal messages have equal keys."""
        if not self.calls and not self.results:
            return (self.role, self.text)
        return (
            self.role,
            self.text,
            tuple([(call.id, call.name, repr(call.arguments)) for call in self.calls]),
            tuple([(item.call_id, item.name, _hashable(item.content)) for item in self.results]),
        )

    def says_the_same(self, other: Message) -> bool:
        """Whether two messages are equal in all that they say."""
        if self is other:
            return True
        if self.text != other.text or self.role != other.role:
            return False
        if not (self.calls or self.results or other.calls or other.results):
            return True
        return self.key() == other.key()


def _hashable(content: Any) -> Any:
    return content if isinstance(content, str) else repr(content)


@dataclass(slots=True, eq=False)
class ToolFacts:
    """A tool call as its own span tells it."""

    id: str | None
    name: str | None
    arguments: Any
    result: Any
    failure: ToolFailure | None


@dataclass(slots=True, eq=False)
class Seldom:
    """What few spans say, apart from the rest: most spans hold no such object."""

    goal: str | None = None
    """The caller's goal."""
    kept: dict[str, Any] | None = None
    """Attributes that the configuration asked to keep."""
    links: tuple[tuple[int, int], ...] = ()
    """(trace id, span id) of linked spans."""
    new_from: int | None = None
    """Index into `inputs` at which the current turn begins, where the instrumentation says so."""
    sources: dict[str, str] | None = None
    """Fact → attribute it was read from; only where explanations are wanted."""
    follows: str | None = None
    """Id of the response that this goes on from, where the service holds the history."""
    tags: tuple[str, ...] = ()
    unsampled: bool = False
    parent_remote: bool = False


@dataclass(slots=True, eq=False)
class Facts:
    """One span in our words."""

    trace_id: int
    span_id: int
    parent_id: int | None
    start_ns: int
    end_ns: int
    kind: Kind
    name: str
    inputs: tuple[Message, ...] = ()
    """What went in, oldest first; a whole history where the instrumentation repeats it."""
    outputs: tuple[Message, ...] = ()
    system: str | None = None
    tool: ToolFacts | None = None
    failure: ToolFailure | None = None
    """The span itself is marked failed."""
    agent: str | None = None
    model: str | None = None
    response_id: str | None = None
    usage: tuple[int | None, int | None, int | None] | None = None
    """Input, output and cached input tokens."""
    sessions: tuple[tuple[str, str], ...] = ()
    """(attribute, session id) pairs, the most deliberate first."""
    user_id: str | None = None
    seldom: Seldom | None = None
    """What few spans say."""
    heard: Any = None
    """`inputs` in the session's shared storage, while the session is open."""
    said: Any = None
    """`inputs` and `outputs` there."""

    @property
    def conversation_id(self) -> str | None:
        """`gen_ai.conversation.id`, if the application itself set it."""
        for key, value in self.sessions:
            if key == "gen_ai.conversation.id":
                return value
        return None

    @property
    def tags(self) -> tuple[str, ...]:
        """The application's tags."""
        return self.seldom.tags if self.seldom else ()

    @property
    def sampled(self) -> bool:
        """Whether the span itself is exported."""
        return self.seldom is None or not self.seldom.unsampled

    @property
    def parent_remote(self) -> bool:
        """Whether the parent lives in another process."""
        return self.seldom is not None and self.seldom.parent_remote

    @property
    def links(self) -> tuple[tuple[int, int], ...]:
        """(trace id, span id) of linked spans."""
        return self.seldom.links if self.seldom else ()

    def rare(self) -> Seldom:
        """The object for what few spans say, made where there is none."""
        if self.seldom is None:
            self.seldom = Seldom()
        return self.seldom
