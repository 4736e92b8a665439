"""Messages that travel as events: span events, log records, and lists of events inside an attribute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from otel_evals.dialects.decoding import decode
from otel_evals.dialects.facts import Message, Role
from otel_evals.dialects.messages import read_messages, system_text

__all__ = ["Spoken", "read_event", "read_event_list"]

_ROLE_OF: dict[str, Role] = {
    "gen_ai.user.message": "user",
    "gen_ai.system.message": "system",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_DETAILS = frozenset(
    (
        "gen_ai.client.inference.operation.details",
        "gen_ai.client.agent.operation.details",
        "gen_ai.operation.details",
    )
)
_BODY_KEYS = ("body", "event_body", "gen_ai.event.content", "event.body")
_CONTENT_KEYS = (
    "content",
    "gen_ai.event.content",
    "gen_ai.content",
    "message",
    "text",
    "gen_ai.prompt",
    "gen_ai.completion",
)


@dataclass(slots=True, eq=False)
class Spoken:
    """Messages that events add to their span."""

    inputs: list[Message] = field(default_factory=list)
    outputs: list[Message] = field(default_factory=list)
    system: str | None = None
    whole_inputs: bool = False
    """`inputs` came as one list, not message by message."""


def read_event(name: str, attributes: Mapping[str, Any], body: Any, spoken: Spoken) -> bool:
    """Adds what one event says. Returns whether it was a message event."""
    if (
        name in _DETAILS
        or (not name and "gen_ai.input.messages" in attributes)
        or "gen_ai.output.messages" in attributes
    ):
        return _details(attributes, body, spoken)
    if (role := _ROLE_OF.get(name)) is not None:
        content = _content(attributes, body)
        found = read_messages({"role": role, **content}) if content else []
        if role == "system":
            spoken.system = spoken.system or system_text([m.text for m in found])
        elif any(m.text or m.calls or m.results for m in found):
            spoken.inputs.extend(found)
        return True
    if name == "gen_ai.choice":
        content = _content(attributes, body)
        inner = decode(content.get("message", content.get("content")))
        if isinstance(inner, dict):
            inner = {"role": "assistant", **inner}
        elif inner is None:
            inner = {"role": "assistant", **content}
        else:
            inner = {"role": "assistant", "content": inner}
        if content.get("tool_calls") and isinstance(inner, dict) and "tool_calls" not in inner:
            inner["tool_calls"] = content["tool_calls"]
        spoken.outputs.extend(m for m in read_messages(inner, "assistant") if m.text or m.calls)
        return True
    if name in ("gen_ai.content.prompt", "gen_ai.content.completion"):
        return _old_content(name, attributes, body, spoken)
    return False


def read_event_list(value: Any, spoken: Spoken) -> None:
    """A list of `{event.name, …}` records inside one attribute."""
    items = decode(value)
    for item in items if isinstance(items, (list, tuple)) else ():
        if isinstance(item, dict):
            name = item.get("event.name") or item.get("event_name") or item.get("name") or ""
            read_event(str(name), {}, item, spoken)


def _details(attributes: Mapping[str, Any], body: Any, spoken: Spoken) -> bool:
    source: Mapping[str, Any] = attributes
    if "gen_ai.input.messages" not in attributes and "gen_ai.output.messages" not in attributes:
        inner = decode(body)
        source = inner if isinstance(inner, dict) else attributes
    said, answered = source.get("gen_ai.input.messages"), source.get("gen_ai.output.messages")
    inputs = read_messages(said, "user") if said else []
    outputs = read_messages(answered, "assistant") if answered else []
    instructions = source.get("gen_ai.system_instructions")
    system = system_text(instructions) if instructions else None
    if len(inputs) >= len(spoken.inputs) and inputs:
        spoken.inputs = inputs
        spoken.whole_inputs = True
    if outputs:
        spoken.outputs = outputs
    spoken.system = spoken.system or system
    return True


def _content(attributes: Mapping[str, Any], body: Any) -> dict[str, Any]:
    """The event's own fields, wherever the exporter put them."""
    body = decode(body)
    if isinstance(body, dict) and body:
        return dict(body)
    for key in _BODY_KEYS:
        if key in attributes:
            inner = decode(attributes[key])
            if isinstance(inner, dict):
                return dict(inner)
    out = {key: value for key, value in attributes.items() if not key.startswith(("gen_ai.", "event."))}
    if isinstance(body, (str, list)) and body and "content" not in out:
        out["content"] = body
    for key in _CONTENT_KEYS[1:3]:
        if key in attributes and "content" not in out:
            out["content"] = attributes[key]
    return out


def _old_content(name: str, attributes: Mapping[str, Any], body: Any, spoken: Spoken) -> bool:
    key = "gen_ai.prompt" if name.endswith("prompt") else "gen_ai.completion"
    value = attributes.get(key, body)
    if key == "gen_ai.prompt":
        spoken.inputs.extend(read_messages(value, "user"))
    else:
        spoken.outputs.extend(read_messages(value, "assistant"))
    return True
