"""One span's attributes, sorted into the fields of all vocabularies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from otel_evals.dialects.decoding import decode, is_redacted
from otel_evals.dialects.facts import REMEMBERED_RESPONSE, Kind
from otel_evals.dialects.session_keys import in_metadata, session_value
from otel_evals.dialects.shapes import Shape
from otel_evals.dialects.tool_records import read_tool_record

__all__ = ["View", "session_ids"]

_USAGE_KEYS = (
    ("input", "input_tokens", "prompt_tokens", "inputTokens", "promptTokens"),
    ("output", "output_tokens", "completion_tokens", "outputTokens", "completionTokens"),
    ("input_cache_read", "cache_read_input_tokens", "cached_tokens", "cachedInputTokens"),
)


class View:
    """What the attributes of one span say, field by field."""

    __slots__ = ("_explain", "_fields", "_values", "kind", "said_agent", "sessions", "shape", "sources")

    def __init__(self, attributes: Mapping[str, Any], shape: Shape, explain: bool = False) -> None:
        self.shape = shape
        self._fields = shape.fields
        self._values = attributes
        if shape.indexed:
            self._values = {
                **attributes,
                **{name: _filled_in(form, attributes) for name, form in shape.indexed.items()},
            }
        self._explain = explain
        self.sources: dict[str, str] = {}
        self.said_agent = False
        """The span calls itself an agent in so many words, so its name is the agent's."""
        self.sessions = session_ids(attributes, shape)
        self.kind = self._kind()

    def _kind(self) -> Kind | None:
        """What the span is: as an attribute states, else as the presence of one implies."""
        stated: list[tuple[int, Kind]] = []
        for rank, key, kinds in self.shape.kinds:
            value = self._values[key]
            if value is None or value == "":
                continue
            word = value if isinstance(value, str) and value in kinds else _word(value)
            kind = kinds.get(word)
            if kind is not None:
                stated.append((rank, kind))
                self.said_agent |= kind == "agent" and "agent" in word
        found = _choose(stated) if stated else self._implied()
        return "tool" if found == "chain" and self._calls_tool() else found

    def _implied(self) -> Kind | None:
        for _, kind, key in self.shape.implied:
            if _filled(self._values[key]):
                return kind
        return None

    def says(self) -> bool:
        """Whether any field has a value; the weak ones count where a session is named beside them."""
        if any(_filled(self._values[key]) for key in self.shape.telling):
            return True
        return bool(self.sessions) and any(self.has(field) for field in self._fields)

    def has(self, field: str) -> bool:
        """Whether a field has a value."""
        if field in self._fields:
            for key in self._fields[field]:
                if _filled(self._values[key]):
                    return True
        return False

    def named(self, field: str) -> Sequence[tuple[str, Any]]:
        """(attribute, value) of what fills a field, the best first."""
        if field not in self._fields:
            return ()
        return [(key, value) for key in self._fields[field] if _filled(value := self._values[key])]

    def previous_response(self) -> str | None:
        """The id of an earlier response, given in place of the conversation's."""
        for _, key in self.shape.sessions:
            value = self._values[key]
            if isinstance(value, str) and value.startswith(REMEMBERED_RESPONSE):
                return value
        return None

    def may_have_failed(self) -> bool:
        """Whether an attribute may tell of a failure."""
        failures = self.shape.failures
        return bool(failures) and any(_filled(self._values[key]) for key in failures)

    def text(self, field: str) -> str | None:
        """The first value that is text."""
        if field not in self._fields:
            return None
        for key in self._fields[field]:
            value = self._values[key]
            if isinstance(value, str) and value:
                text = value.strip('"') if value[0] == '"' and len(value) > 1 else value
                if text and not is_redacted(text):
                    self.note(field, key)
                    return text
        return None

    def number(self, field: str) -> int | None:
        """The first value that is a finite number."""
        if field not in self._fields:
            return None
        for key in self._fields[field]:
            value = self._values[key]
            if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**62:
                return int(value)
        return None

    def usage(self) -> tuple[int | None, int | None, int | None] | None:
        """Input, output and cached input tokens; None: none reported."""
        given, produced, cached = (
            self.number("input_tokens"),
            self.number("output_tokens"),
            self.number("cached_tokens"),
        )
        if given is not None or produced is not None or cached is not None:
            return given, produced, cached
        for _, value in self.named("usage"):
            inner = decode(value)
            if isinstance(inner, dict):
                found = tuple(next((inner[k] for k in keys if type(inner.get(k)) is int), None) for keys in _USAGE_KEYS)
                if any(count is not None for count in found):
                    return found  # type: ignore[return-value]
        return None

    def tags(self) -> tuple[str, ...]:
        """Tags, from a list, JSON or text with commas."""
        for _, value in self.named("tags"):
            inner = decode(value)
            if isinstance(inner, (list, tuple)):
                return tuple(str(item) for item in inner if isinstance(item, (str, int)))
            if isinstance(inner, str):
                return tuple(part.strip() for part in inner.split(",") if part.strip())
        return ()

    def raw(self, field: str) -> Any:
        """The first value that is present and not redacted."""
        if field in self._fields:
            for key in self._fields[field]:
                value = self._values[key]
                if _filled(value) and not is_redacted(value):
                    self.note(field, key)
                    return value
        return None

    def first(self, *fields: str) -> Any:
        """The first value that is present and not redacted, in the order of the fields named."""
        for field in fields:
            if (value := self.raw(field)) is not None:
                return value
        return None

    def note(self, field: str, key: str) -> None:
        """Remembers where a fact came from, if anybody asked."""
        if self._explain:
            self.sources[field] = key

    def _calls_tool(self) -> bool:
        """Whether a wrapper names a tool and what went into it: it is the tool's span under another name."""
        if self.has("tool_name") and (self.has("tool_arguments") or self.has("tool_result")):
            return True
        for _, value in self.named("blob_out"):
            if isinstance(value, str) and ("tool_name" in value or "toolName" in value):
                return read_tool_record(value) is not None
        return False


def _word(value: Any) -> str:
    """The word in a value, or in the `type` of a JSON object."""
    inner = decode(value)
    return str(inner.get("type") if isinstance(inner, dict) else inner).lower()


def session_ids(attributes: Mapping[str, Any], shape: Shape) -> tuple[tuple[str, str], ...]:
    """(attribute, session id) pairs in some attributes, the most deliberate choice of the application first."""
    if not shape.sessions and not shape.metadata:
        return ()
    named: list[tuple[int, str, str]] = []
    for rank, key in shape.sessions:
        if (session := session_value(attributes[key])) is not None:
            named.append((rank, key, session))
    for key in shape.metadata:
        if value := attributes[key]:
            named += in_metadata(key, value)
    if len(named) > 1:
        named.sort()
    return tuple([(key, value) for _, key, value in named])


def _filled(value: Any) -> bool:
    return value is not None and value != ""


def _choose(stated: list[tuple[int, Kind]]) -> Kind:
    if len(stated) == 1:
        return stated[0][1]
    found = {kind for _, kind in stated}
    if "pseudo" in found:
        return "pseudo"
    return "tool" if "tool" in found else min(stated)[1]


def _filled_in(form: Any, values: Mapping[str, Any]) -> Any:
    """Lists and dicts with values in place of attribute names, without what is empty; None where all is."""
    if isinstance(form, str):
        value = values[form]
        return value if _filled(value) else None
    if isinstance(form, dict):
        found = {}
        for name, inner in form.items():
            if (value := _filled_in(inner, values)) is not None:
                found[name] = value
        return found or None
    return [value for inner in form if (value := _filled_in(inner, values)) is not None] or None
