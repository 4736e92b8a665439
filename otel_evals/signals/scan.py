"""From the turns of a session to its signals, turn by turn, keeping hashes and counts only."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from otel_evals.sessions.model import CompletionReason, Session, ToolCall, Turn
from otel_evals.signals.folding import clip, fold, words
from otel_evals.signals.injection import addresses_judge
from otel_evals.signals.wording import acknowledges_failure, asks, frustration

__all__ = ["SIGNAL_NAMES", "Signal", "SignalScan", "detect", "signal_names"]

SIGNAL_NAMES = (
    "tool_error",
    "tool_error_unacknowledged",
    "repeated_question",
    "no_answer",
    "user_frustration",
    "loop",
    "abandoned",
    "judge_injection_suspected",
)

LOOP_CALLS = 3
"""So many calls of one tool with the same arguments in one turn are a loop; two are a retry."""
SIMILARITY = 0.8
"""Share of words (Jaccard) from which a message counts as an earlier one repeated."""
REPEAT_WORDS = 5
"""Shorter messages repeat without meaning it: "yes", "go ahead, please"."""
LOOK_BACK = 8
"""Earlier messages that one is compared with; bounds the cost of long sessions."""
LEFT_BY_THE_PERSON: frozenset[CompletionReason] = frozenset({"idle", "ended", "age"})
"""Completions after which an open question stays open; the others are our caps, and the session may go on."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One piece of evidence."""

    name: str
    """One of `SIGNAL_NAMES`."""
    turn: int
    """Index of the turn, from 0."""
    detail: str
    """Why, in a few words and without content."""


def detect(session: Session) -> tuple[Signal, ...]:
    """All signals of a session in turn order, at most one of a name per turn."""
    scan = SignalScan()
    for turn in session.turns:
        scan.add(turn)
    return scan.finish(session.completion)


def signal_names(signals: Iterable[Signal]) -> tuple[str, ...]:
    """The distinct names, in order of first appearance."""
    return tuple(dict.fromkeys(signal.name for signal in signals))


class SignalScan:
    """Reads the turns of one session in order; a turn may be forgotten as soon as it was added."""

    def __init__(self) -> None:
        self._signals: list[Signal] = []
        self._turn = -1
        self._asked: list[frozenset[int]] = []
        self._question_open = False

    def add(self, turn: Turn) -> None:
        """Read the next turn."""
        self._turn += 1
        self._read_tools(turn)
        self._read_answer(turn)
        if turn.user:
            self._read_user(turn.user)
        if addresses_judge(turn):
            self._note("judge_injection_suspected", "text addresses the judge or overrides instructions")

    def finish(self, completion: CompletionReason) -> tuple[Signal, ...]:
        """The signals found, once the session is complete for the given reason."""
        found = tuple(self._signals)
        if self._question_open and completion in LEFT_BY_THE_PERSON:
            found += (Signal("abandoned", self._turn, "the agent's last question was never answered"),)
        return found

    def _note(self, name: str, detail: str) -> None:
        self._signals.append(Signal(name, self._turn, detail))

    def _read_tools(self, turn: Turn) -> None:
        failed = [index for index, call in enumerate(turn.tool_calls) if call.error]
        if failed:
            self._note("tool_error", _count(len(failed), "failed tool call"))
            # A failure is mended when a later call of the same tool in the same turn went well.
            went_well = {call.name: index for index, call in enumerate(turn.tool_calls) if not call.error}
            lost = [index for index in failed if went_well.get(turn.tool_calls[index].name, -1) < index]
            if lost and not _acknowledged(turn, lost):
                told = "the reply does not say so" if turn.agent else "there is no reply"
                self._note("tool_error_unacknowledged", f"{_count(len(lost), 'failed tool call')}; {told}")
        if len(turn.tool_calls) >= LOOP_CALLS:
            most = max(Counter(map(_call_key, turn.tool_calls)).values())
            if most >= LOOP_CALLS:
                self._note("loop", f"one tool called {most} times with the same arguments")

    def _read_answer(self, turn: Turn) -> None:
        answer = (turn.agent or "").strip()
        if not answer and (turn.user or turn.error) and not _handed_over(turn):
            self._note("no_answer", "the turn broke" if turn.error else "the turn has no reply")
        self._question_open = asks(answer)

    def _read_user(self, text: str) -> None:
        folded = fold(clip(text))
        if cause := frustration(text, folded, first=self._turn == 0):
            self._note("user_frustration", cause)
        spoken = words(folded)
        if len(spoken) >= REPEAT_WORDS:
            asked = frozenset(map(hash, spoken))
            if any(_similar(asked, earlier) for earlier in self._asked):
                self._note("repeated_question", "the message repeats an earlier one")
            self._asked = [*self._asked[1 - LOOK_BACK :], asked]


def _acknowledged(turn: Turn, lost: list[int]) -> bool:
    """The person was told of one of the failures at least."""
    spoken = [text for text in (turn.agent, *turn.interim) if text]
    messages = {error.message for index in lost if (error := turn.tool_calls[index].error)}
    return any(acknowledges_failure(text, message) for text in spoken for message in messages)


def _handed_over(turn: Turn) -> bool:
    """The turn ends by passing the person on, so that nobody owes them a reply."""
    last = turn.tool_calls[-1] if turn.tool_calls else None
    return last is not None and not last.error and _HANDOVER.search(last.name or "") is not None


_HANDOVER = re.compile(r"transfer|hand_?-?(?:off|over)|escalat", re.IGNORECASE)


def _call_key(call: ToolCall) -> tuple[str | None, bytes | str]:
    try:
        return call.name, orjson.dumps(call.arguments, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    except orjson.JSONEncodeError:
        return call.name, repr(call.arguments)


def _similar(one: frozenset[int], other: frozenset[int]) -> bool:
    longer, shorter = (len(one), len(other)) if len(one) > len(other) else (len(other), len(one))
    if shorter < SIMILARITY * longer:
        return False
    shared = len(one & other)
    return shared >= SIMILARITY * (longer + shorter - shared)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' if number > 1 else ''}"
