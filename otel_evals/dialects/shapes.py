"""What the attribute names of a span say, worked out once per set of names.

Instrumentations put the same few sets of names on all their spans, so the names are looked up in the vocabularies of
all dialects once per set, not once per span.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from otel_evals.dialects.facts import Kind
from otel_evals.dialects.failures import FAILURE_KEYS
from otel_evals.dialects.guessing import KINDS, Guess, guess
from otel_evals.dialects.session_keys import METADATA_KEYS, session_rank
from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["Shape", "Shapes"]

MAX_NAMES = 20_000
"""Attribute names remembered; indexed ones (`llm.input_messages.17.…`) are many, hostile ones endless."""
MAX_SHAPES = 1_000
"""Sets of names remembered, 2.7 kB each on real traces."""
GUESSED = 10_000
"""Rank of what no vocabulary lists."""
LARGEST_SHAPE = 64
"""Attributes of a span whose shape is remembered: long histories, flattened, come but once."""

_FIELDS = (
    "messages_in", "messages_out", "blob_in", "blob_out", "answer", "whole", "new_from", "system", "agent", "model",
    "response_id", "tool_name", "tool_id", "tool_arguments", "tool_result", "input_tokens", "output_tokens",
    "cached_tokens", "usage", "user_id", "tags", "events",
)  # fmt: skip


class _Meaning:
    """What one attribute name says."""

    __slots__ = ("failure", "field", "implied", "indexed", "kinds", "metadata", "path", "rank", "session")

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


class Shape:
    """What a set of attribute names says. Which of them have a value is another matter."""

    __slots__ = ("failures", "fields", "guessed", "implied", "indexed", "kinds", "metadata", "sessions", "telling")

    def __init__(self) -> None:
        self.fields: dict[str, tuple[str, ...]] = {}
        """Field → attributes that fill it, the best first; flattened messages stand as `<prefix>N`."""
        self.indexed: dict[str, Any] = {}
        """`<prefix>N` → lists and dicts as the flattened attributes describe them, with attribute names as values."""
        self.kinds: list[tuple[int, str, Mapping[str, Kind]]] = []
        """(rank, attribute, its values → what the span is)."""
        self.telling: list[str] = []
        """Attributes that fill a field and whose mere names belong to agents."""
        self.implied: list[tuple[int, Kind, str]] = []
        """(rank, what the span is, attribute whose mere presence says it), the best first."""
        self.sessions: list[tuple[int, str]] = []
        """(rank, attribute that may name the session)."""
        self.metadata: list[str] = []
        """Attributes with JSON in which the session may be named."""
        self.failures: list[str] = []
        """Attributes that may tell of a failure."""
        self.guessed: Guess | None = None
        """What no vocabulary lists."""


class Shapes:
    """All vocabularies, turned round: set of attribute names → what they say."""

    def __init__(self, vocabularies: Sequence[Vocabulary], session_keys: Sequence[str] = ()) -> None:
        self._exact: dict[str, tuple[str, int]] = {}
        self._weak: set[str] = set()
        self._kinds: dict[str, tuple[int, Mapping[str, Kind]]] = {}
        self._implies: dict[str, tuple[int, Kind]] = {}
        self._indexed: dict[str, tuple[str, int]] = {}
        """Prefix → field and rank."""
        self._session_keys = {key: rank - len(session_keys) for rank, key in enumerate(session_keys)}
        for order, vocabulary in enumerate(vocabularies):
            self._add(order, vocabulary)
        self._prefixes = tuple(self._indexed)
        self._known: dict[str, _Meaning | None] = {}
        self._shapes: dict[tuple[str, ...], Shape] = {}

    def _add(self, order: int, vocabulary: Vocabulary) -> None:
        for name in _FIELDS:
            for rank, key in enumerate(getattr(vocabulary, name)):
                if key not in self._exact:
                    self._exact[key] = (name, order * 100 + rank)
                    if vocabulary.weak:
                        self._weak.add(key)
        for key, values in vocabulary.kinds.items():
            self._kinds.setdefault(key, (len(self._kinds), values))
        for key, kind in vocabulary.implies.items():
            self._implies.setdefault(key, (len(self._implies), kind))
        for prefix in vocabulary.indexed_in:
            self._indexed[prefix] = ("messages_in", order * 100)
        for prefix in vocabulary.indexed_out:
            self._indexed[prefix] = ("messages_out", order * 100)

    def of(self, names: tuple[str, ...]) -> Shape:
        """What some attribute names say together."""
        shape = self._shapes.get(names)
        if shape is None:
            shape = self._make(names)
            if len(names) <= LARGEST_SHAPE:
                if len(self._shapes) >= MAX_SHAPES:
                    self._shapes.clear()
                self._shapes[names] = shape
        return shape

    def _make(self, names: tuple[str, ...]) -> Shape:
        shape = Shape()
        fields: dict[str, list[tuple[int, str]]] = {}
        unlisted: list[str] = []
        if len(self._known) > MAX_NAMES:
            self._known.clear()
        for key in names:
            meaning = self._known[key] if key in self._known else self._learn(key)
            if meaning is None:
                unlisted.append(key)
                continue
            if meaning.field is not None:
                fields.setdefault(meaning.field, []).append((meaning.rank, key))
                if key not in self._weak:
                    shape.telling.append(key)
            elif meaning.indexed is not None:
                _place(shape.indexed.setdefault(meaning.indexed + "N", {}), meaning.path, key)
            if meaning.kinds is not None:
                shape.kinds.append((meaning.kinds[0], key, meaning.kinds[1]))
            if meaning.implied is not None:
                shape.implied.append((*meaning.implied, key))
            if meaning.session is not None:
                shape.sessions.append((meaning.session, key))
            if meaning.metadata:
                shape.metadata.append(key)
            if meaning.failure:
                shape.failures.append(key)
        for prefix in shape.indexed:
            field, rank = self._indexed[prefix[:-1]]
            fields.setdefault(field, []).append((rank, prefix))
            shape.telling.append(prefix)
            shape.indexed[prefix] = _listed(shape.indexed[prefix])
        if unlisted and (guessed := guess(unlisted)) is not None:
            _add_guess(shape, fields, guessed)
        shape.fields = {field: tuple([key for _, key in sorted(keys, key=_rank)]) for field, keys in fields.items()}
        shape.implied.sort()
        return shape

    def _learn(self, key: str) -> _Meaning | None:
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
        self._known[key] = known = None if meaning.empty() else meaning
        return known


def _add_guess(shape: Shape, fields: dict[str, list[tuple[int, str]]], guessed: Guess) -> None:
    """What is guessed ranks behind all that is listed."""
    shape.guessed = guessed
    shape.failures += guessed.marks
    for field, keys in (("blob_in", guessed.inputs), ("blob_out", guessed.outputs)):
        for key in keys:
            fields.setdefault(field, []).append((GUESSED, key))
            shape.telling.append(key)
    shape.kinds += [(GUESSED, key, KINDS) for key in guessed.kinds]
    shape.sessions += [(GUESSED, key) for key in guessed.sessions]


def _rank(item: tuple[int, str]) -> int:
    return item[0]


def _place(root: dict[str, Any], path: tuple[str, ...], value: str) -> None:
    """Puts the name of one flattened attribute into its nested place."""
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
