"""Cuts a message history at each thing the person said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from otel_evals.dialects.facts import Call, Message, Result

__all__ = [
    "ANSWER_TOOLS",
    "OBSERVATION",
    "Portion",
    "answer_of",
    "correct_roles",
    "cut",
    "is_person",
    "last_words",
    "only_user",
]

ANSWER_TOOLS = frozenset(
    ("final_answer", "finish", "final_result", "respond_to_user", "submit_answer", "FinalAnswerTool")
)
"""Tools through which some agents speak their answer."""
OBSERVATION = ("Observation:", "Observation\n", "Tool result:", "Tool output:", "Calling tools:", "Error:\nTool")
"""How tool results begin that travel as the person's messages."""


@dataclass(slots=True, eq=False)
class Portion:
    """One thing the person said and everything after it, until the next."""

    words: Message
    messages: Sequence[Message]
    before: int = -1
    """Messages of the history before the words; -1: not counted."""

    @property
    def user(self) -> str:
        return self.words.text

    @property
    def answer(self) -> str | None:
        return answer_of(self.messages)

    def calls(self) -> Iterable[Call]:
        return (call for message in self.messages for call in message.calls)

    def results(self) -> Iterable[Result]:
        return (result for message in self.messages for result in message.results)


def is_person(message: Message) -> bool:
    """Whether a message is the person's: many instrumentations label tool results `user`."""
    if message.role != "user" or message.results:
        return False
    text = message.text.lstrip()
    return text != "" and not text.startswith(OBSERVATION)


def last_words(messages: Sequence[Message]) -> int:
    """Index of the last thing that the person said; -1 where the person says nothing."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role == "user" and is_person(messages[at]):
            return at
    return -1


def cut(messages: Sequence[Message]) -> list[Portion]:
    """Portions in order; what precedes the person's first words is left out."""
    out: list[Portion] = []
    begin = -1
    for at, message in enumerate(messages):
        if message.role == "user" and is_person(message):
            if begin >= 0:
                out.append(Portion(messages[begin], messages[begin + 1 : at]))
            begin = at
    if begin >= 0:
        out.append(Portion(messages[begin], messages[begin + 1 :]))
    return out


def answer_of(messages: Sequence[Message]) -> str | None:
    """The last thing the agent said that was not merely the announcement of a tool call."""
    for message in reversed(messages):
        if message.calls:
            for call in message.calls:
                if call.name in ANSWER_TOOLS:
                    return _spoken(call)
            return None
        if message.role == "assistant" and message.text.strip():
            return message.text
        if message.results or message.role == "tool":
            return None
    return None


def _spoken(call: Call) -> str | None:
    arguments = call.arguments
    if isinstance(arguments, str):
        return arguments or None
    if isinstance(arguments, dict):
        for key in ("answer", "final_answer", "response", "result", "text", "message", "content"):
            if isinstance(arguments.get(key), str):
                return str(arguments[key])
        texts = [value for value in arguments.values() if isinstance(value, str)]
        if len(texts) == 1:
            return texts[0]
    return None


def only_user(messages: Sequence[Message]) -> bool:
    """Whether several messages are all labelled `user`, so that the label says nothing."""
    return (
        len(messages) > 1
        and messages[1].role == "user"
        and all(m.role == "user" and not m.calls and not m.results for m in messages)
    )


def correct_roles(messages: Sequence[Message], said: frozenset[str] | set[str], results: set[str]) -> Sequence[Message]:
    """Some exporters label every input `user`: what the agent or a tool is known to have said is theirs.

    Args:
        said: folded texts of model outputs.
        results: folded texts of tool results.
    """
    if not only_user(messages):
        return messages
    out: list[Message] = []
    for message in messages:
        folded = message.folded
        if out and folded in said:
            out.append(Message("assistant", message.text))
        elif out and folded in results:
            out.append(Message("tool", "", (), (Result(None, None, message.text),)))
        else:
            out.append(message)
    return out
