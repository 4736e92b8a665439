"""The shape of a dialect: which attribute says what. A new instrumentation is a new instance, not new code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from otel_evals.dialects.facts import Kind

__all__ = ["Vocabulary"]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Attribute names of one vocabulary, the best first within each field. Keys are exact unless named a prefix."""

    name: str
    weak: bool = False
    """Names so common that, without more, they make no span an agent's."""
    kinds: Mapping[str, Mapping[str, Kind]] = field(default_factory=dict)
    """Attribute → its value in lower case → what the span is."""
    implies: Mapping[str, Kind] = field(default_factory=dict)
    """Attribute whose mere presence says what the span is, where no `kinds` attribute does."""
    messages_in: tuple[str, ...] = ()
    """Lists of messages that went in."""
    messages_out: tuple[str, ...] = ()
    indexed_in: tuple[str, ...] = ()
    """Prefixes of messages flattened as `<prefix>N.…`."""
    indexed_out: tuple[str, ...] = ()
    blob_in: tuple[str, ...] = ()
    """Whole input of a run or function: text, or any JSON that may hold messages."""
    blob_out: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()
    """The final answer as plain text; better than anything in `blob_out`."""
    whole: tuple[str, ...] = ()
    """Lists of messages from the beginning of the conversation to the answer."""
    new_from: tuple[str, ...] = ()
    """Index into `whole` at which this turn begins."""
    system: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    response_id: tuple[str, ...] = ()
    tool_name: tuple[str, ...] = ()
    tool_id: tuple[str, ...] = ()
    tool_arguments: tuple[str, ...] = ()
    tool_result: tuple[str, ...] = ()
    input_tokens: tuple[str, ...] = ()
    output_tokens: tuple[str, ...] = ()
    cached_tokens: tuple[str, ...] = ()
    usage: tuple[str, ...] = ()
    """JSON objects that hold token counts."""
    user_id: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    """Attributes holding a list of message events."""
