"""Whether quotes occur where they are said to occur: white space, case, quotation marks and NFKC folded.

A judge that cannot quote what it claims to have read has not read it; such a verdict is marked, never
silently believed.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from otel_evals.evaluation import Evaluation, Evidence
from otel_evals.sessions.model import Session, Turn

__all__ = ["fold", "occurs", "verify"]

_QUOTES: Mapping[int, int | None] = {
    **dict.fromkeys(map(ord, "‘’‚‛`´′‹›"), ord("'")),
    **dict.fromkeys(map(ord, "“”„‟″«»「」『』"), ord('"')),
    **dict.fromkeys(map(ord, "‐‑‒–—―−"), ord("-")),
}
_SPACE = re.compile(r"\s+")
# Markdown emphasis and list marks are what judges most often drop when they copy.
_MARKUP = re.compile(r"[*_`#|]+")
_ELLIPSIS = re.compile(r"\[?(?:\.{3,}|…)\]?")
_MIN_PART = 3


def fold(text: str) -> str:
    """Text reduced to what has to agree between a quote and its source."""
    if text.isascii():
        text = text.lower().replace("`", "'")
    else:
        text = unicodedata.normalize("NFKC", text).translate(_QUOTES).casefold()
        text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return _SPACE.sub(" ", _MARKUP.sub("", text)).strip(" \"'")


def occurs(quote: str, text: str) -> bool:
    """The quote occurs in the text. Parts joined by an ellipsis have to occur in their order."""
    parts = [part for part in (fold(p) for p in _ELLIPSIS.split(quote)) if part]
    if not parts or (any(len(part) < _MIN_PART for part in parts) and len(parts) > 1):
        return False
    source = fold(text)
    position = 0
    for part in parts:
        found = source.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return True


def verify(evaluation: Evaluation, session: Session) -> Evaluation:
    """The evaluation with each quote marked, and `evidence_verified` true only if all of them occur."""
    if not evaluation.evidence:
        return evaluation
    checked = tuple(item.model_copy(update={"verified": _verified(item, session)}) for item in evaluation.evidence)
    return evaluation.model_copy(
        update={"evidence": checked, "evidence_verified": all(item.verified for item in checked)}
    )


def _verified(item: Evidence, session: Session) -> bool:
    if not 0 <= item.turn < len(session.turns):
        return False
    return any(occurs(item.quote, text) for text in _texts(session.turns[item.turn], item.role))


def _texts(turn: Turn, role: str) -> list[str]:
    if role == "user":
        return [turn.user or ""]
    if role == "agent":
        return [turn.agent or "", *turn.interim]
    texts: list[str] = []
    for call in turn.tool_calls:
        texts += [_text(call.arguments), _text(call.result)]
        if call.error:
            texts += [call.error.message or "", call.error.type or ""]
    return texts


def _text(value: Any) -> str:
    """Tool data as the transcript shows it, and as it was: judges copy either."""
    if isinstance(value, str):
        return value if value[:1] not in ("{", "[") else f"{value}\n{_compact(value)}"
    return "" if value is None else f"{_dumped(value, (', ', ': '))}\n{_dumped(value, (',', ':'))}"


def _compact(text: str) -> str:
    try:
        return _dumped(json.loads(text), (",", ":"))
    except (ValueError, RecursionError):
        return ""


def _dumped(value: Any, separators: tuple[str, str]) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str, separators=separators)
    except (TypeError, ValueError, RecursionError):
        return ""
