"""Text made comparable: one case, one form of each character, nothing invisible, and a bounded length."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["clip", "fold", "is_spaced", "words"]

SCAN_CHARACTERS = 16_384
"""Longer texts are read at their head, and a quarter of this at their tail: bounds the cost."""

_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
_INVISIBLE = re.compile("[\u00ad\u115f\u1160\u3164\uffa0\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_TAGS = re.compile("[\U000e0020-\U000e007e]")
"""ASCII in disguise: displayed as nothing, read by models."""


def clip(text: str) -> str:
    """At most `SCAN_CHARACTERS` from the head and a quarter of that from the tail."""
    if len(text) <= SCAN_CHARACTERS:
        return text
    return text[:SCAN_CHARACTERS] + "\n" + text[-SCAN_CHARACTERS // 4 :]


def fold(text: str) -> str:
    """Lower case, compatible forms united (NFKC), hidden text shown, invisible characters gone, straight quotes."""
    if text.isascii():
        return text.lower()
    if _TAGS.search(text):
        text = _TAGS.sub(lambda tag: chr(ord(tag[0]) - 0xE0000), text)
    united = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    return united.casefold().replace("’", "'").replace("ʼ", "'")


def is_spaced(folded: str) -> bool:
    """Spaces stand between the words of a folded text."""
    return folded.isascii() or not _UNSPACED.search(folded)


def words(folded: str) -> list[str]:
    """The words of a folded text; pairs of characters where the script puts no spaces between words."""
    found = _WORD.findall(folded)
    if is_spaced(folded):
        return found
    letters = "".join(found)
    return [letters[i : i + 2] for i in range(len(letters) - 1)]
