"""The judge that is no model: reads what the trace says and a few telling words. Always labelled `rules`.

It is the demo's default and a floor for real judges: deterministic, free, without network, and it quotes
verbatim like they do. It cannot tell a true statement from a false one; it calls invented only what was
asserted after a tool failed and nothing else was asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from otel_evals.evaluators.failed_tools import FailedTool, failed_tools
from otel_evals.judging.models.phrases import (
    ADMITS,
    CAUSE,
    DISSATISFIED,
    EVADES,
    INTERNALS,
    OFFERS,
    RETRY,
    THANKS,
)
from otel_evals.judging.models.protocol import ChatReply, ChatRequest
from otel_evals.sessions.model import Session, Turn
from otel_evals.signals.wording import admission, reproach

__all__ = ["RulesModel", "read"]

_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.!?。！？](?=\S)[^.!?。！？\n]+)*[.!?。！？]*")
_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")
_HEAD, _TAIL = 2_000, 1_000
"""Characters of a text that are read; what matters is said at the beginning or the end."""
_QUOTE = 160
"""Longest quote, characters."""
_EVASION = 400
"""A reply longer than this says something."""


class RulesModel:
    """Answers the built-in evaluators from the session itself. Knows no others."""

    name = "rules"
    reads_session = True
    """No prompt is rendered for it."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The answer. Costs nothing, which is known; hence 0.0 and not None."""
        answers = read(request.session)
        wanted = {name: answers[name] for name in request.evaluators if name in answers}
        return ChatReply(text=orjson.dumps(wanted).decode(), finish_reason="stop", cost_usd=0.0, calls=0)

    async def close(self) -> None:
        """Nothing to close."""


def read(session: Session) -> dict[str, dict[str, Any]]:
    """Answers to the built-in evaluators, by name."""
    failures = failed_tools(session)
    readings = [_read_turn(i, session, failures) for i in range(len(session.turns))]
    return {
        "failure_rate": _failure_rate(readings),
        "goal_achievement": _goal_achievement(session, readings),
        "failure_communication": _failure_communication(session, failures),
        "recovery_strategy": _recovery_strategy(session, failures),
        "partial_completion": _partial_completion(readings),
    }


# --- One turn ---


@dataclass(slots=True)
class _Reading:
    """What the words of one turn show."""

    index: int
    user: str
    reply: str
    finding: str | None = None
    """A label of the failure-rate evaluator, or None for a turn that was simply answered."""
    quote: str = ""
    thanks: bool = False
    annoyed_at: int | None = None
    """Where the person's words show that they are not satisfied."""
    repeats: bool = False
    """Asks again what the turn before asked."""
    closing: bool = False
    """Asks for nothing."""
    partly: bool = False
    """One of its tools failed, another did its work."""

    @property
    def annoyed(self) -> bool:
        return self.annoyed_at is not None


def _read_turn(index: int, session: Session, failures: tuple[FailedTool, ...]) -> _Reading:
    turn = session.turns[index]
    reading = _Reading(index, _excerpt(turn.user or ""), _excerpt(_said(turn)))
    user = _folded(reading.user)
    reading.annoyed_at = _annoyance(user, first=index == 0)
    reading.thanks = not reading.annoyed and _any(THANKS, user)
    reading.repeats = index > 0 and _repeats(session.turns[index - 1].user or "", turn.user or "")
    short = len(user) < (120 if reading.thanks else 50)
    reading.closing = short and bool(user) and "?" not in user and not turn.tool_calls and not reading.annoyed
    reading.closing = reading.closing and (index > 0 or reading.thanks)
    failed = [f for f in failures if f.turn == index and not f.mended]
    reading.partly = bool(failed) and any(call.error is None for call in turn.tool_calls)
    reading.finding, reading.quote = _finding(turn, reading, failed)
    return reading


def _finding(turn: Turn, reading: _Reading, failed: list[FailedTool]) -> tuple[str | None, str]:
    reply = _folded(reading.reply)
    if not reply:
        # A turn may end with a tool that worked, such as a handover to a person.
        silent = failed or (turn.user and not turn.tool_calls and not reading.closing)
        return ("stall", "") if silent else (None, "")
    if (at := _admits(reply, failed)) is not None:
        return _honest(reply), _sentence_at(reading.reply, at)
    if evasion := _evasion(turn, reading, reply):
        return "stall", _sentence(reading.reply, evasion)
    if failed and _asserts(turn, reply):
        return "hallucination", _sentence(reading.reply, "")
    return None, ""


def _admits(reply: str, failed: Sequence[FailedTool]) -> int | None:
    """Where the agent admits that a tool failed, or that it does not know or cannot; None: it does not."""
    for failure in failed:
        error = failure.calls[-1].error
        if (at := admission(reply, error.message if error else None)) is not None:
            return at
    hit = _hit(ADMITS, reply)
    return None if hit is None else reply.find(hit)


def _honest(reply: str) -> str:
    return "alternative_proposed" if _any(OFFERS, reply) else "honest_fallback"


def _evasion(turn: Turn, reading: _Reading, reply: str) -> str | None:
    """The words of an evasion, in a short reply that neither holds a figure nor rests on a tool."""
    if reading.closing or len(reply) > _EVASION or _DIGIT.search(reply):
        return None
    if any(call.error is None for call in turn.tool_calls):
        return None
    return _hit(EVADES, reply)


def _asserts(turn: Turn, reply: str) -> bool:
    """States something as fact although all the turn's tools failed; a question back states nothing."""
    only_asks = reply.rstrip().endswith(("?", "？")) and not _DIGIT.search(reply)
    return all(call.error for call in turn.tool_calls) and not only_asks


# --- The answers ---


def _failure_rate(readings: list[_Reading]) -> dict[str, Any]:
    found = [r for r in readings if r.finding]
    labels = [r.finding for r in found]
    if not found:
        label = "not_applicable"
    elif "hallucination" in labels:
        label = "hallucination"
    elif "stall" in labels:
        label = "stall" if set(labels) == {"stall"} and _stalls_throughout(readings) else "mixed"
    else:
        label = str(labels[-1])
    return {
        "turns": [{"turn": r.index, "quote": r.quote, "label": r.finding} for r in found],
        "reasoning": _FAILURE_REASONS[label],
        "label": label,
        "confidence": 0.5 if label == "hallucination" else 0.6,
    }


def _stalls_throughout(readings: list[_Reading]) -> bool:
    return all(r.finding == "stall" or r.closing for r in readings)


_FAILURE_REASONS: Mapping[str, str] = {
    "not_applicable": "No tool failed unmended, and the agent admitted or evaded nothing.",
    "hallucination": "After a tool failed the agent stated a result without mentioning the failure.",
    "stall": "The agent's replies evade without answering.",
    "mixed": "Some replies evade, others answer or admit honestly.",
    "honest_fallback": "The agent said openly that it could not.",
    "alternative_proposed": "The agent said openly that it could not, and offered another way.",
}


def _goal_achievement(session: Session, readings: list[_Reading]) -> dict[str, Any]:
    requests = _requests(readings)
    outcomes = {r.index: _outcome(r, readings) for r in requests}
    share = sum(outcomes.values()) / len(outcomes) if outcomes else 1.0
    label = next(name for name, least in _SHARES.items() if share >= least)
    return {
        "goal": session.goal or (readings[0].user[:_QUOTE] if readings else ""),
        "positive_signals": [_signal(r, _at(THANKS, r.user)) for r in readings if r.thanks],
        "negative_signals": [_signal(r, r.annoyed_at or 0) for r in readings if r.annoyed or r.repeats],
        "unmet_requests": [r.user[:80] for r in requests if outcomes[r.index] == 0.0],
        "reasoning": f"{sum(o >= 1.0 for o in outcomes.values())} of {len(outcomes)} requests were answered.",
        "label": label,
        "confidence": 0.4,
    }


_SHARES = {"fully": 0.99, "mostly": 0.8, "partial": 0.5, "minor": 0.2, "none": 0.0}
"""Least share of the requests that were answered."""


def _requests(readings: list[_Reading]) -> list[_Reading]:
    """Turns that ask for something; of one request asked again, only the last."""
    kept: list[_Reading] = []
    for reading in readings:
        if reading.closing:
            continue
        if kept and (reading.repeats or reading.annoyed) and kept[-1].finding:
            kept.pop()
        kept.append(reading)
    return kept


def _outcome(reading: _Reading, readings: list[_Reading]) -> float:
    """How far one request was met, 0 to 1."""
    if reading.finding is None:
        return 1.0 if reading.reply else 0.5
    if reading.partly:
        return 0.6
    if reading.finding not in ("alternative_proposed", "honest_fallback"):
        return 0.0
    thanked = any(later.thanks for later in readings[reading.index + 1 : reading.index + 2])
    if reading.finding == "alternative_proposed":
        return 0.6 if thanked else 0.3
    return 0.3 if thanked else 0.1


def _signal(reading: _Reading, at: int) -> dict[str, Any]:
    return {"turn": reading.index, "quote": _sentence_at(reading.user, at)}


def _annoyance(user: str, first: bool) -> int | None:
    """Where a person's folded words show that they are not satisfied; None: they do not."""
    if found := reproach(user, first):
        return found.start
    hit = _hit(DISSATISFIED, user)
    return None if hit is None else user.find(hit)


def _failure_communication(session: Session, failures: tuple[FailedTool, ...]) -> dict[str, Any]:
    told = [_told(session, failure) for failure in failures]
    fine = all(t["told"] in ("explained", "recovered") for t in told)
    return {
        "failures": told,
        "reasoning": "Read from the words that follow each failed tool.",
        "label": "Acceptable" if not told else "Good" if fine else "Poor",
        "confidence": 0.5,
    }


def _told(session: Session, failure: FailedTool) -> dict[str, Any]:
    later = range(failure.turn, len(session.turns))
    index = next((i for i in later if _said(session.turns[i])), failure.turn)
    turn = session.turns[index]
    text = _excerpt(_said(turn))
    reply = _folded(text)
    admitted = _admits(reply, [failure])
    evasion = None if admitted is not None else _hit(EVADES, reply)
    quote = _sentence(text, evasion or "") if admitted is None else _sentence_at(text, admitted)
    if failure.mended:
        told, quote = "recovered", "" if admitted is None else quote
    elif admitted is not None:
        told = "explained"
    elif evasion:
        told = "vague"
    else:
        told = "fabricated" if reply and _asserts(turn, reply) else "ignored"
    offers = _any(OFFERS, reply)
    return {
        "failure": failure.number,
        "turn": index,
        "quote": quote,
        "told": told,
        "cause": admitted is not None and _any(CAUSE, reply),
        "next_step": "specific" if offers else "generic" if _any(RETRY, reply) else "none",
        "flaw": "internals" if _any(INTERNALS, reply) else "none",
    }


def _recovery_strategy(session: Session, failures: tuple[FailedTool, ...]) -> dict[str, Any]:
    taken = [_action(session, failure) for failure in failures]
    return {
        "failures": taken,
        "reasoning": "Read from the tool calls that follow each failed one, and the words after them.",
        "label": "adequate" if any(item["action"] != "none" for item in taken) else "none",
        "confidence": 0.5,
    }


def _action(session: Session, failure: FailedTool) -> dict[str, Any]:
    turn = session.turns[failure.turn]
    first = failure.calls[0]
    position = next(i for i, call in enumerate(turn.tool_calls) if call is first)
    after = turn.tool_calls[position + 1 :]
    reply = _excerpt(_said(turn))
    offer = _hit(OFFERS, _folded(reply))
    action, reached, quote = "none", "no", ""
    if again := [call for call in after if call.name == first.name]:
        changed = any(call.arguments != first.arguments for call in again)
        action, reached = "changed_input" if changed else "same_again", "yes" if failure.mended else "no"
    elif any(call.error is None for call in after):
        action, reached = "other_tool", "partly"
    elif offer:
        action, quote = "asked_user", _sentence(reply, offer)
    return {
        "failure": failure.number,
        "turn": failure.turn,
        "role": "agent",
        "quote": quote,
        "action": action,
        "reached": reached,
    }


def _partial_completion(readings: list[_Reading]) -> dict[str, Any]:
    parts = [
        {
            "part": reading.user[:80] or f"turn {reading.index}",
            "turn": reading.index,
            "quote": reading.quote or _sentence(reading.reply, ""),
            "reached": _reached(_outcome(reading, readings)),
        }
        for reading in _requests(readings) or readings[:1]
    ]
    return {
        "parts": parts,
        "reasoning": f"{sum(p['reached'] == 'yes' for p in parts)} of {len(parts)} requests were answered.",
        "label": "partial",
        "confidence": 0.4,
    }


def _reached(outcome: float) -> str:
    return "yes" if outcome >= 1.0 else "partly" if outcome >= 0.5 else "no"


# --- Words ---


def _said(turn: Turn) -> str:
    return turn.agent or (turn.interim[-1] if turn.interim else "")


def _excerpt(text: str) -> str:
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"


def _folded(text: str) -> str:
    """Lower case with plain apostrophes. Not casefolded: offsets have to stay those of the text."""
    folded = text.lower().replace("’", "'")
    return folded if len(folded) == len(text) else text.replace("’", "'")


def _any(words: tuple[str, ...], text: str) -> bool:
    return any(word in text for word in words)


def _hit(words: tuple[str, ...], text: str) -> str | None:
    return next((word for word in words if word in text), None)


def _at(words: tuple[str, ...], text: str) -> int:
    folded = _folded(text)
    return max(0, folded.find(_hit(words, folded) or ""))


def _sentence(text: str, word: str) -> str:
    """The sentence around a word, verbatim; the first one for an empty word."""
    return _sentence_at(text, max(0, _folded(text).find(word)))


def _sentence_at(text: str, at: int) -> str:
    """The sentence at an offset, verbatim."""
    for match in _SENTENCE.finditer(text):
        if match.end() > at and match.group().strip():
            sentence = match.group().strip()
            return sentence if len(sentence) <= _QUOTE else _around(text, at)
    return text.strip()[:_QUOTE]


def _around(text: str, at: int) -> str:
    return text[max(0, at - _QUOTE // 2) : at + _QUOTE // 2].split("\n")[0].strip() or text[at : at + _QUOTE].strip()


def _repeats(before: str, now: str) -> bool:
    """The person says again what they said one turn earlier, verbatim in part or in nearly the same words."""
    first, second = before.strip().lower(), now.strip().lower()
    if len(first) < 12 or len(second) < 12:
        return False
    if first in second:
        return True
    a, b = set(_WORD.findall(first[:1000])), set(_WORD.findall(second[:1000]))
    return len(a) >= 4 and len(a & b) / len(a | b) >= 0.75
