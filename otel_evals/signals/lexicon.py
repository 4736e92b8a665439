"""A word list that is found fast: entries are tried only where a word begins with their first letters."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Found", "Lexicon"]

_UNSPACED_LANGUAGES = frozenset({"ja", "zh", "ko", "ar", "hi"})
"""Found anywhere in the text: no spaces between words, or particles joined to their front."""
_KEY = 3


class Found(NamedTuple):
    """Where an entry occurs."""

    language: str
    start: int
    """Offset into the folded text."""


class Lexicon:
    """Entries per language, one a line.

    Entries are regular expressions that match from the start of a word and begin with at least three plain
    characters, or with one group of alternatives that each do. Entries of unspaced languages are plain text.

    Raises:
        ValueError: an entry begins with fewer than three plain characters.
    """

    def __init__(self, **languages: str) -> None:
        parts: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        self._anywhere: list[tuple[str, str]] = []
        for language, entries in languages.items():
            for entry in filter(None, map(str.strip, entries.splitlines())):
                if language in _UNSPACED_LANGUAGES:
                    self._anywhere.append((entry, language))
                    continue
                for start in _alternatives(entry):
                    parts[_key(start)][language].append(start)
        self._sources = {
            key: "|".join(f"(?P<{name}>{'|'.join(starts)})" for name, starts in found.items())
            for key, found in parts.items()
        }
        # Compiled when first met: all at once would take 15 ms of the app's start.
        self._compiled: dict[str, re.Pattern[str]] = {}
        self._starts: re.Pattern[str] | None = None

    def find(self, folded: str) -> str | None:
        """The language of the first entry that occurs in a folded text, or None."""
        found = self.search(folded)
        return found and found.language

    def search(self, folded: str) -> Found | None:
        """The first entry that occurs in a folded text, or None."""
        if self._starts is None:
            self._starts = _words_beginning_with(self._sources)
        for word in self._starts.finditer(folded):
            start = word.start()
            if found := self._pattern(folded[start : start + _KEY]).match(folded, start):
                return Found(found.lastgroup or "", start)
        if not folded.isascii():
            for entry, language in self._anywhere:
                if (start := folded.find(entry)) >= 0:
                    return Found(language, start)
        return None

    def _pattern(self, key: str) -> re.Pattern[str]:
        if key not in self._compiled:
            self._compiled[key] = re.compile(self._sources[key])
        return self._compiled[key]


_LEADING_GROUP = re.compile(r"\(\?:([^()]*)\)(?![?*])")
_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")


def _alternatives(entry: str) -> list[str]:
    group = _LEADING_GROUP.match(entry)
    if not group:
        return [entry]
    return [choice + entry[group.end() :] for choice in group[1].split("|")]


def _key(entry: str) -> str:
    special = _SPECIAL.search(entry)
    plain = entry[: special.start()] if special else entry
    if special and special[0] in "?*{":
        plain = plain[:-1]
    if len(plain) < _KEY:
        raise ValueError(f"entry {entry!r}: begin it with at least {_KEY} plain characters")
    return plain[:_KEY]


def _words_beginning_with(keys: Iterable[str]) -> re.Pattern[str]:
    """Finds where a word begins with one of some keys of three characters, letter by letter: most words fail early."""
    tree: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for key in keys:
        tree[key[0]][key[1]].append(key[2])
    branches = [
        re.escape(first) + _one_of([re.escape(second) + _any(thirds) for second, thirds in below.items()])
        for first, below in tree.items()
    ]
    return re.compile(rf"\b(?={_any(tree)})(?={_one_of(branches)})" if branches else r"(?!)")


def _any(characters: Iterable[str]) -> str:
    return f"[{''.join(map(re.escape, characters))}]"


def _one_of(branches: list[str]) -> str:
    return f"(?:{'|'.join(branches)})"
