"""A completed agent session as every later stage sees it: turns with what was said and what the tools did.

Serialisable and versioned, because sessions travel through queues, spools and child processes.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "SCHEMA_VERSION",
    "CompletionReason",
    "Session",
    "ToolCall",
    "ToolFailure",
    "Turn",
    "Usage",
]

SCHEMA_VERSION = 1

CompletionReason: TypeAlias = Literal["idle", "ended", "turns", "age", "bytes", "evicted", "flush"]
"""Why a session was closed: idle time, an explicit end, one of the caps, pressure, or a flush."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class ToolFailure(_Frozen):
    """That a tool call failed, as the trace says it; never a judge's opinion."""

    type: str | None = None
    """Exception or error type, e.g. `TimeoutError`."""
    message: str | None = None


class ToolCall(_Frozen):
    """One tool call, once, whatever the number of spans, messages and events that mention it."""

    id: str | None = None
    name: str | None = None
    arguments: Any = None
    """A dict wherever the arguments could be read as one."""
    result: Any = None
    error: ToolFailure | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    span_id: str | None = None
    """16 hex digits of the tool's own span, where it had one."""

    def without_content(self) -> ToolCall:
        """The call without what went in and came out."""
        error = self.error and ToolFailure(type=self.error.type)
        return self.model_copy(update={"arguments": None, "result": None, "error": error})


class Turn(_Frozen):
    """One message of the person and all that the agent did until its answer."""

    user: str | None = None
    agent: str | None = None
    """The agent's final answer."""
    interim: tuple[str, ...] = ()
    """What the agent said to the person before its final answer, between tool calls."""
    tool_calls: tuple[ToolCall, ...] = ()
    start_ns: int = 0
    end_ns: int = 0
    trace_id: str | None = None
    """32 hex digits. None when the turn was restored from a later history only."""
    root_span_id: str | None = None
    """16 hex digits of the span that scores are attached to: the turn's root agent span."""
    sampled: bool = True
    error: ToolFailure | None = None
    """The turn itself broke (dead model, unhandled exception), as the trace says it."""
    sources: tuple[str, ...] = ()
    """Where each fact came from, a line each; only where explanations were asked for."""

    def without_content(self) -> Turn:
        """The turn without what was said."""
        return self.model_copy(
            update={
                "user": None,
                "agent": None,
                "interim": (),
                "tool_calls": tuple(call.without_content() for call in self.tool_calls),
                "error": self.error and ToolFailure(type=self.error.type),
            }
        )


class Usage(_Frozen):
    """Tokens of the agent's own model calls, each call counted once. None: not reported."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None


class Session(_Frozen):
    """A completed conversation between one person and one application."""

    schema_version: int = SCHEMA_VERSION
    session_id: str
    """The application's id; for derived sessions the trace id (32 hex digits)."""
    session_key: str
    """The attribute the id came from, or `trace`."""
    derived: bool = False
    """True when no id was exported and the trace stands in for it."""
    conversation_id: str | None = None
    """`gen_ai.conversation.id`, only if the application itself set it."""
    generation: int = 1
    """+1 each time a judged session resumes."""
    turns: tuple[Turn, ...] = ()
    evaluable: bool = True
    not_evaluable_reason: str | None = None
    """`no_content`, `no_turns`, `no_agent_answer`, `no_user_input`, … when `evaluable` is false."""
    incomplete: bool = False
    """Spans are known to be missing (lost parents, drops, caps)."""
    truncated: bool = False
    """Content was cut by a cap before it reached us or here."""
    completion: CompletionReason = "idle"
    system_prompt: str | None = None
    goal: str | None = None
    """The goal given by the caller; None: the judge infers it."""
    service_name: str | None = None
    service_version: str | None = None
    environment: str | None = None
    agents: tuple[str, ...] = ()
    """All agent names, outermost first."""
    models: tuple[str, ...] = ()
    user_id: str | None = None
    tags: tuple[str, ...] = ()
    usage: Usage = Usage()
    start_ns: int = 0
    end_ns: int = 0
    span_count: int = 0
    attributes: dict[str, Any] = Field(default_factory=dict)
    """Further attributes that the configuration asked to keep."""
    chance: float = 1.0
    """The highest probability with which it could still be judged when it began, which is when its content was kept
    or given up: later changes of rates do not raise it."""

    @property
    def content_kept(self) -> bool:
        """False for a light session: its texts stand for what was said, and cannot be judged."""
        return self.chance > 0.0

    def without_content(self) -> Session:
        """The session with all that was said left out: what happened, when and where, stays."""
        return self.model_copy(
            update={
                "turns": tuple(turn.without_content() for turn in self.turns),
                "system_prompt": None,
                "goal": None,
            }
        )

    @property
    def agent_name(self) -> str | None:
        """The outermost agent's name."""
        return self.agents[0] if self.agents else None

    @property
    def failed_tools(self) -> list[tuple[int, ToolCall]]:
        """(turn index from 0, call) of each failed tool call, in order."""
        return [(i, call) for i, turn in enumerate(self.turns) for call in turn.tool_calls if call.error]
