"""What signals need of a text, without the text: a code for each of its first words, and marks for what was matched.

The codes are a hash with a salt that never leaves the process, so equal words can be told, and words cannot. Turns
built from reduced texts, and the signals found on them, are those of the texts themselves, up to the length kept and
to words that share a code: on 200 recorded conversations about one repeated question in a hundred runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from otel_evals.signals.folding import clip, fold, is_spaced, words
from otel_evals.signals.injection import suspect_at
from otel_evals.signals.wording import ADMISSION, REASON_LETTERS, REPROACH, REPROACH_OR_MOOD, asks, frustration

__all__ = ["WORDS_KEPT", "reduce"]

WORDS_KEPT = 64
"""Longer texts are told apart by a hash of the whole; words beyond are not compared."""
CHARACTERS_READ = 4096
"""Admissions and reproaches further on are missed in light sessions: bounds the time that one text takes."""

_SALT = os.urandom(16).hex()
_TOKEN = re.compile(r"\w+|[?؟]+")

# Words of our own, each found by one of the lexicons and by no other.
_ADMISSION, _REPROACH, _MOOD, _INJECTION = "error", "nevermind", "frustrated", "<<sys>>"


def reduce(text: str) -> str:
    """The reduced text; equal for texts that differ in case, white space and punctuation only."""
    if not text.strip():
        return text
    folded = fold(clip(text))
    head = folded[:CHARACTERS_READ]
    spoken = words(head)
    tokens = _codes(head, spoken, sorted(_marks(folded, head)))
    if len(spoken) > WORDS_KEPT or len(head) < len(folded) or not spoken:
        tokens.append(f"{_hash(fold(text)) & 0xFFFFFFFFFFFFFFFF:016x}")
    return _punctuated(" ".join(tokens), text)


def _hash(text: str) -> int:
    return hash(_SALT + text)


def _code(word: str) -> str:
    """Four hexadecimal digits: no lexicon has words of such letters. Three for a word that is no reason."""
    number = _hash(word)
    return f"{number & 0xFFFF:04x}" if len(word) >= REASON_LETTERS else f"{number & 0xFFF:03x}"


def _marks(folded: str, head: str) -> Iterator[tuple[int, str]]:
    """(offset into the folded text, word that stands for what was matched there)."""
    if found := ADMISSION.search(head):
        yield found.start, _ADMISSION
    if mood := REPROACH_OR_MOOD.search(head):
        reproach = REPROACH.search(head)
        yield (mood.start, _MOOD) if reproach is None else (reproach.start, _REPROACH)
    if (start := suspect_at(folded)) is not None:
        yield start, _INJECTION


def _codes(folded: str, spoken: list[str], marks: list[tuple[int, str]]) -> list[str]:
    """Codes and question marks in the order of the text; a mark takes the place of the word it was found at."""
    if not is_spaced(folded):
        return [*map(_code, spoken[:WORDS_KEPT]), *(mark for _, mark in marks)]
    out: list[str] = []
    kept = 0
    for found in _TOKEN.finditer(folded):
        start, end = found.span()
        token = found[0]
        place = start - 1
        while marks and marks[0][0] < end:
            place, mark = marks.pop(0)
            out.append(mark)
        if token[0] in "?؟":
            out.append(token)
            continue
        if place < start:
            out.append(_code(token))
        kept += 1
        if kept == WORDS_KEPT:
            break
    return [*out, *(mark for _, mark in marks)]


def _punctuated(reduced: str, text: str) -> str:
    """With question marks where they mean what they meant: an open question at the end, a shout anywhere."""
    shouts = frustration(text, "", first=True) is not None
    if not shouts:
        reduced = reduced.replace("??", "?")
    elif "??" not in reduced:
        reduced = f"?! {reduced}"
    if asks(text.strip()) == reduced.endswith(("?", "؟")):
        return reduced
    return f"{reduced} ." if reduced.endswith(("?", "؟")) else f"{reduced} ?"
