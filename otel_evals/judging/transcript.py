"""A session as the judge reads it: JSON lines between two random boundary lines, everything in them data.

What could break out of a line or hide in it (control, bidirectional and zero-width characters) is escaped, so
the text can be parsed back whatever a conversation contains. Too long a transcript shrinks in a fixed order;
an error and the reply after it are never left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from otel_evals.evaluators.failed_tools import FailedTool, failed_tools
from otel_evals.sessions.model import Session, ToolCall, Turn

__all__ = ["Transcript", "encode_line", "estimate_tokens", "render_transcript"]

# Cc, Cf, Cs, Co, Zl, Zp and the invisible fillers and variation selectors that can carry hidden text.
# Variation selectors 15 and 16 stay: emoji use them.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180e"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ue000-\ufe0d\ufeff\uffa0\ufff0-\uffff"
    "\U000110bd\U000110cd\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)


@dataclass(frozen=True, slots=True)
class Transcript:
    """The rendered lines, joined by newlines, without the boundary."""

    text: str
    tokens: int
    """Fast estimate."""
    truncated: bool
    """Something was left out, marked where it was; or the session itself was cut earlier."""


@dataclass(frozen=True, slots=True)
class _Limits:
    """Characters that each kind of text may have."""

    result: int = 20_000
    system: int = 20_000
    text: int = 20_000
    arguments: int = 4_000
    error: int = 1_000


# The fixed order: tool results, system prompt, then everything said. Middle turns go last
# (`_without_middle`).
_STEPS = (
    _Limits(),
    _Limits(result=2_000),
    _Limits(result=600),
    _Limits(result=600, system=600),
    _Limits(result=300, system=300, text=2_000, arguments=400),
)
_CHARACTERS_PER_TOKEN = 3.6
_MARKER_TOKENS = 16
"""Of the line that says which turns were left out."""
_LAST_STEP = _Limits(result=160, system=160, text=800, arguments=160, error=300)


def estimate_tokens(text: str) -> int:
    """Tokens of a text without a tokenizer: 3.6 ASCII characters, or one other character, per token."""
    if text.isascii():
        return int(len(text) / _CHARACTERS_PER_TOKEN) + 1
    ascii_only = len(text.encode("ascii", "ignore"))
    return int(ascii_only / _CHARACTERS_PER_TOKEN) + len(text) - ascii_only + 1


def encode_line(value: Any) -> str:
    """One line of JSON without any character that could break the line, hide, or reorder what is displayed."""
    try:
        line = json.dumps(value, ensure_ascii=False, default=str, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):  # circular or absurdly deep tool data
        line = json.dumps({"unreadable": type(value).__name__})
    return _UNSAFE.sub(_escaped, line)


def render_transcript(session: Session, budget: int) -> Transcript:
    """The session in at most about `budget` tokens.

    More only where the errors and the replies after them do not fit in it, each already cut to its core.
    """
    failures = failed_tools(session)
    cut = session.truncated
    # What was said is cut by the last step only, so where it alone is too long the others need not be tried.
    said = sum(len(text) for turn in session.turns for text in (turn.user, turn.agent, *turn.interim) if text)
    for limits in _STEPS if said < budget * _CHARACTERS_PER_TOKEN else _STEPS[-1:]:
        lines, shortened = _render(session, failures, limits, range(len(session.turns)))
        text = "\n".join(lines)
        if (tokens := estimate_tokens(text)) <= budget:
            return Transcript(text, tokens, cut or shortened)
    return _without_middle(session, failures, budget)


def _without_middle(session: Session, failures: Sequence[FailedTool], budget: int) -> Transcript:
    """First and last turns, those with a failure and with the reply to it; the rest as long as it fits."""
    count = len(session.turns)
    failed = {f.turn for f in failures} | {i for i, turn in enumerate(session.turns) if turn.error}
    needed = failed | {_replied(session, i) for i in failed} | {0, count - 1}
    for limits in (_STEPS[-1], _LAST_STEP):
        sizes = [
            sum(map(estimate_tokens, _turn_lines(i, turn, failures, _Cutter(limits))))
            for i, turn in enumerate(session.turns)
        ]
        left = budget - sum(sizes[i] for i in needed) - limits.system // 3 - _MARKER_TOKENS * len(needed)
        if left >= 0:
            break
    kept = set(needed)
    # The end of a conversation tells most about its outcome, so the free room is filled from there.
    for index in range(count - 1, -1, -1):
        if index not in kept:
            if sizes[index] > left:
                break
            kept.add(index)
            left -= sizes[index]
    lines, _ = _render(session, failures, limits, sorted(kept))
    text = "\n".join(lines)
    return Transcript(text, estimate_tokens(text), True)


def _replied(session: Session, failed: int) -> int:
    """The turn with the first reply from a failed turn on; the failed turn itself if none came."""
    return next((i for i in range(failed, len(session.turns)) if session.turns[i].agent), failed)


class _Cutter:
    """Cuts texts to their limits and remembers whether it had to."""

    def __init__(self, limits: _Limits) -> None:
        self.limits = limits
        self.cut = False

    def __call__(self, text: str, limit: int) -> str:
        if len(text) <= limit:
            return text
        self.cut = True
        tail = limit // 3
        left_out = len(text) - limit
        return f"{text[: limit - tail]} […{left_out} characters left out…] {text[-tail:]}"

    def data(self, value: Any, limit: int) -> Any:
        """Structured data stays structured as long as it fits."""
        if value is None or isinstance(value, (bool, int, float)):
            return value
        text = value if isinstance(value, str) else encode_line(value)
        if len(text) > limit or isinstance(value, bytes):
            return self(text, limit)
        return _structured(value) if isinstance(value, str) else value


def _structured(text: str) -> Any:
    """JSON in a string as what it is: escaped once more, it would cost a fifth more tokens."""
    if text[:1] not in ("{", "["):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _render(
    session: Session, failures: Sequence[FailedTool], limits: _Limits, kept: Iterable[int]
) -> tuple[list[str], bool]:
    cutter = _Cutter(limits)
    lines: list[str] = []
    if session.system_prompt:
        lines.append(encode_line({"role": "system", "text": cutter(session.system_prompt, limits.system)}))
    expected = 0
    for index in kept:
        if index > expected:
            lines.append(encode_line({"turns_left_out": {"from": expected, "to": index - 1}}))
        lines.extend(_turn_lines(index, session.turns[index], failures, cutter))
        expected = index + 1
    return lines, cutter.cut


def _turn_lines(index: int, turn: Turn, failures: Sequence[FailedTool], cut: _Cutter) -> list[str]:
    numbers = {id(call): f.number for f in failures if f.turn == index for call in f.calls}
    lines: list[dict[str, Any]] = []
    if turn.user is not None:
        lines.append({"turn": index, "role": "user", "text": cut(turn.user, cut.limits.text)})
    for text in turn.interim:
        lines.append({"turn": index, "role": "agent", "interim": True, "text": cut(text, cut.limits.text)})
    for call in turn.tool_calls:
        lines.append(_tool_line(index, call, numbers.get(id(call)), cut))
    if turn.error:
        broken = {"type": turn.error.type, "message": cut(turn.error.message or "", cut.limits.error)}
        lines.append({"turn": index, "role": "agent", "crashed": True, "error": broken})
    if turn.agent is not None:
        lines.append({"turn": index, "role": "agent", "text": cut(turn.agent, cut.limits.text)})
    elif not turn.error:
        lines.append({"turn": index, "role": "agent", "text": None, "note": "no answer recorded"})
    return [encode_line(line) for line in lines]


def _tool_line(index: int, call: ToolCall, number: int | None, cut: _Cutter) -> dict[str, Any]:
    line: dict[str, Any] = {"turn": index, "role": "tool", "name": call.name}
    if call.arguments is not None:
        line["arguments"] = cut.data(call.arguments, cut.limits.arguments)
    if call.error:
        line["failed"] = True
        line["failure"] = number
        line["error"] = {"type": call.error.type, "message": cut(call.error.message or "", cut.limits.error)}
    if call.result is not None:
        line["result"] = cut.data(call.result, cut.limits.result)
    return line


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
