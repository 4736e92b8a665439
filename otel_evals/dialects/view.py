"""One span's attributes, sorted into the fields of all vocabularies in a single pass.

What an attribute name means is looked up once per name, not once per span: instrumentations use few names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from otel_evals.dialects.decoding import decode, is_redacted
from otel_evals.dialects.facts import Kind
from otel_evals.dialects.failures import FAILURE_KEYS
from otel_evals.dialects.session_keys import METADATA_KEYS, in_metadata, session_rank, session_value
from otel_evals.dialects.tool_records import read_tool_record
from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["Names", "View"]

MAX_NAMES = 20_000
"""Attribute names remembered; indexed ones (`llm.input_messages.17.…`) are many, hostile ones endless."""

_FIELDS = (
    "messages_in", "messages_out", "blob_in", "blob_out", "answer", "whole", "new_from", "system", "agent", "model",
    "response_id", "tool_name", "tool_id", "tool_arguments", "tool_result", "input_tokens", "output_tokens",
    "cached_tokens", "usage", "user_id", "tags", "events",
)  # fmt: skip


_USAGE_KEYS = (
    ("input", "input_tokens", "prompt_tokens", "inputTokens", "promptTokens"),
    ("output", "output_tokens", "completion_tokens", "outputTokens", "completionTokens"),
    ("input_cache_read", "cache_read_input_tokens", "cached_tokens", "cachedInputTokens"),
)


class _Meaning:
    """What one attribute name says."""

    __slots__ = ("failure", "field", "implied", "indexed", "kinds", "metadata", "path", "plain", "rank", "session")

    def __init__(self) -> None:
        self.field: str | None = None
        self.rank = 0
        self.kinds: tuple[int, Mapping[str, Kind]] | None = None
        self.implied: tuple[int, Kind] | None = None
        self.indexed: str | None = None
        """The prefix of an indexed message attribute, and below the rest of its name."""
        self.path: tuple[str, ...] = ()
        self.session: int | None = None
        self.metadata = False
        self.failure = False
        self.plain = False
        """Fills a field and says nothing else: most attributes."""

    def empty(self) -> bool:
        return (
            self.field is None
            and self.kinds is None
            and self.implied is None
            and self.indexed is None
            and self.session is None
            and not self.metadata
            and not self.failure
        )


class Names:
    """All vocabularies, turned round: attribute name → meaning."""

    def __init__(self, vocabularies: Sequence[Vocabulary], session_keys: Sequence[str] = ()) -> None:
        self._exact: dict[str, tuple[str, int]] = {}
        self._kinds: dict[str, tuple[int, Mapping[str, Kind]]] = {}
        self._implies: dict[str, tuple[int, Kind]] = {}
        self.indexed: dict[str, tuple[str, int]] = {}
        """Prefix → field and rank."""
        self._session_keys = {key: rank - len(session_keys) for rank, key in enumerate(session_keys)}
        for order, vocabulary in enumerate(vocabularies):
            self._add(order, vocabulary)
        self._prefixes = tuple(self.indexed)
        self._known: dict[str, _Meaning | None] = {}

    def _add(self, order: int, vocabulary: Vocabulary) -> None:
        for name in _FIELDS:
            for rank, key in enumerate(getattr(vocabulary, name)):
                self._exact.setdefault(key, (name, order * 100 + rank))
        for key, values in vocabulary.kinds.items():
            self._kinds.setdefault(key, (len(self._kinds), values))
        for key, kind in vocabulary.implies.items():
            self._implies.setdefault(key, (len(self._implies), kind))
        for prefix in vocabulary.indexed_in:
            self.indexed[prefix] = ("messages_in", order * 100)
        for prefix in vocabulary.indexed_out:
            self.indexed[prefix] = ("messages_out", order * 100)

    def meanings(self) -> dict[str, _Meaning | None]:
        """Names seen so far; None: says nothing."""
        if len(self._known) > MAX_NAMES:
            self._known.clear()
        return self._known

    def learn(self, key: str) -> _Meaning | None:
        """Works out what a name says and remembers it."""
        meaning = _Meaning()
        if (hit := self._exact.get(key)) is not None:
            meaning.field, meaning.rank = hit
        elif isinstance(key, str) and key.startswith(self._prefixes):
            meaning.indexed = next(prefix for prefix in self._prefixes if key.startswith(prefix))
            meaning.path = tuple(key[len(meaning.indexed) :].split("."))
        meaning.kinds = self._kinds.get(key)
        meaning.implied = self._implies.get(key)
        meaning.session = self._session_keys.get(key, session_rank(key))
        meaning.metadata = key in METADATA_KEYS
        meaning.failure = key in FAILURE_KEYS
        field, meaning.field = meaning.field, None
        meaning.plain = field is not None and meaning.empty()
        meaning.field = field
        self._known[key] = known = None if meaning.empty() else meaning
        return known


class View:
    """What the attributes of one span say, field by field."""

    __slots__ = ("_explain", "failure_hint", "fields", "kind", "said_agent", "sessions", "sources")

    def __init__(self, attributes: Mapping[str, Any], names: Names, explain: bool = False) -> None:
        fields: dict[str, list[tuple[int, str, Any]]] = {}
        indexed: dict[str, dict[str, Any]] | None = None
        stated: list[tuple[int, Kind]] = []
        implied: list[tuple[int, Kind]] = []
        named: list[tuple[int, str, str]] = []
        self.failure_hint = False
        self.said_agent = False
        """The span calls itself an agent in so many words, so its name is the agent's."""
        known = names.meanings()
        for key, value in attributes.items():
            try:
                meaning = known[key]
            except KeyError:
                meaning = names.learn(key)
            if meaning is None or value is None or value == "":
                continue
            if meaning.field is not None:
                field = meaning.field
                if field in fields:
                    fields[field].append((meaning.rank, key, value))
                else:
                    fields[field] = [(meaning.rank, key, value)]
                if meaning.plain:
                    continue
            elif meaning.indexed is not None:
                if indexed is None:
                    indexed = {}
                _place(indexed.setdefault(meaning.indexed, {}), meaning.path, value)
            if meaning.kinds is not None:
                word = str(value).strip('"').lower()
                kind = meaning.kinds[1].get(word)
                if kind is not None:
                    stated.append((meaning.kinds[0], kind))
                    self.said_agent |= kind == "agent" and "agent" in word
            if meaning.implied is not None:
                implied.append(meaning.implied)
            if meaning.session is not None and (session := session_value(value)) is not None:
                named.append((meaning.session, key, session))
            if meaning.metadata:
                named += in_metadata(key, value)
            if meaning.failure:
                self.failure_hint = True
        if indexed is not None:
            for prefix, nested in indexed.items():
                field, rank = names.indexed[prefix]
                fields.setdefault(field, []).append((rank, prefix + "N", _listed(nested)))
        for slot in fields.values():
            if len(slot) > 1:
                slot.sort(key=_rank)
        if len(named) > 1:
            named.sort()
        self.fields = fields
        self.sessions = tuple([(key, value) for _, key, value in named])
        self.sources: dict[str, str] = {}
        self._explain = explain
        self.kind = _choose_kind(stated, implied)
        if self.kind == "chain" and self._calls_tool():
            self.kind = "tool"

    def text(self, field: str) -> str | None:
        """The first value that is text."""
        for _, key, value in self.fields.get(field, ()):
            if isinstance(value, str):
                text = value.strip('"') if value[0] == '"' and len(value) > 1 else value
                if text and not is_redacted(text):
                    self.note(field, key)
                    return text
        return None

    def number(self, field: str) -> int | None:
        """The first value that is a finite number."""
        for _, _, value in self.fields.get(field, ()):
            if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**62:
                return int(value)
        return None

    def usage(self) -> tuple[int | None, int | None, int | None] | None:
        """Input, output and cached input tokens; None: none reported."""
        counts = (self.number("input_tokens"), self.number("output_tokens"), self.number("cached_tokens"))
        if counts != (None, None, None):
            return counts
        for _, _, value in self.fields.get("usage", ()):
            inner = decode(value)
            if isinstance(inner, dict):
                found = tuple(next((inner[k] for k in keys if type(inner.get(k)) is int), None) for keys in _USAGE_KEYS)
                if any(count is not None for count in found):
                    return found  # type: ignore[return-value]
        return None

    def tags(self) -> tuple[str, ...]:
        """Tags, from a list, JSON or text with commas."""
        for _, _, value in self.fields.get("tags", ()):
            inner = decode(value)
            if isinstance(inner, (list, tuple)):
                return tuple(str(item) for item in inner if isinstance(item, (str, int)))
            if isinstance(inner, str):
                return tuple(part.strip() for part in inner.split(",") if part.strip())
        return ()

    def raw(self, *fields: str) -> Any:
        """The first value that is present and not redacted, in the order of the fields named."""
        for field in fields:
            for _, key, value in self.fields.get(field, ()):
                if not is_redacted(value):
                    self.note(field, key)
                    return value
        return None

    def note(self, field: str, key: str) -> None:
        """Remembers where a fact came from, if anybody asked."""
        if self._explain:
            self.sources[field] = key

    def _calls_tool(self) -> bool:
        """Whether a wrapper names a tool and what went into it: it is the tool's span under another name."""
        fields = self.fields
        if "tool_name" in fields and ("tool_arguments" in fields or "tool_result" in fields):
            return True
        for _, _, value in fields.get("blob_out", ()):
            if isinstance(value, str) and ("tool_name" in value or "toolName" in value):
                return read_tool_record(value) is not None
        return False


def _rank(item: tuple[int, str, Any]) -> int:
    return item[0]


def _choose_kind(stated: list[tuple[int, Kind]], implied: list[tuple[int, Kind]]) -> Kind | None:
    if len(stated) == 1:
        return stated[0][1]
    if stated:
        found = {kind for _, kind in stated}
        if "pseudo" in found:
            return "pseudo"
        return "tool" if "tool" in found else min(stated)[1]
    return min(implied)[1] if implied else None


def _place(root: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Puts one flattened attribute into its nested place."""
    at = root
    for part in path[:-1]:
        inner = at.get(part)
        if not isinstance(inner, dict):
            inner = {} if inner is None else {"content": inner}
            at[part] = inner
        at = inner
    known = at.get(path[-1])
    if isinstance(known, dict):
        known.setdefault("content", value)
    else:
        at[path[-1]] = value


def _listed(value: Any) -> Any:
    """Dicts whose keys are all numbers become lists."""
    if not isinstance(value, dict):
        return value
    numbered = [key for key in value if key.isdigit()]
    if len(numbered) == len(value):
        if len(numbered) > 1:
            numbered.sort(key=int)
        return [_listed(value[key]) for key in numbered]
    items = {key: _listed(item) for key, item in value.items() if not key.isdigit()}
    if numbered:  # `message.content` beside `message.content.0`: the numbered ones are further pieces
        pieces = items.get("contents")
        items["contents"] = (pieces if isinstance(pieces, list) else []) + [
            _listed(value[key]) for key in sorted(numbered, key=int)
        ]
    return items
