"""Cuts a message history at each thing the person said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from otel_evals.dialects.facts import Call, Message, Result

__all__ = ["ANSWER_TOOLS", "OBSERVATION", "Portion", "answer_of", "correct_roles", "cut", "is_person"]

ANSWER_TOOLS = frozenset(("final_answer", "finish", "final_result", "respond_to_user", "submit_answer"))
"""Tools through which some agents speak their answer."""
OBSERVATION = ("Observation:", "Observation\n", "Tool result:", "Tool output:", "Calling tools:", "Error:\nTool")
"""How tool results begin that travel as the person's messages."""


@dataclass(slots=True, eq=False)
class Portion:
    """One thing the person said and everything after it, until the next."""

    user: str
    messages: list[Message] = field(default_factory=list)

    @property
    def answer(self) -> str | None:
        return answer_of(self.messages)

    def calls(self) -> Iterable[Call]:
        return (call for message in self.messages for call in message.calls)

    def results(self) -> Iterable[Result]:
        return (result for message in self.messages for result in message.results)


def is_person(message: Message) -> bool:
    """Whether a message is the person's: many instrumentations label tool results `user`."""
    return (
        message.role == "user"
        and bool(message.text.strip())
        and not message.results
        and not message.text.lstrip().startswith(OBSERVATION)
    )


def cut(messages: Sequence[Message]) -> list[Portion]:
    """Portions in order; what precedes the person's first words is left out."""
    out: list[Portion] = []
    for message in messages:
        if is_person(message):
            out.append(Portion(message.text))
        elif out:
            out[-1].messages.append(message)
            if message.role == "user" and message.results and message.text.strip() and not _echoes(message):
                out.append(Portion(message.text))
    return out


def _echoes(message: Message) -> bool:
    """Text beside a tool result in one message: mostly the result again, seldom the person."""
    return True


def answer_of(messages: Sequence[Message]) -> str | None:
    """The last thing the agent said that was not merely the announcement of a tool call."""
    for message in reversed(messages):
        for call in message.calls:
            if call.name in ANSWER_TOOLS:
                return _spoken(call)
        if message.role == "assistant" and message.text.strip() and not message.calls:
            return message.text
        if message.calls or message.results or message.role == "tool":
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


def correct_roles(messages: Sequence[Message], said: frozenset[str] | set[str], results: set[str]) -> Sequence[Message]:
    """Some exporters label every input `user`: what the agent or a tool is known to have said is theirs.

    Args:
        said: folded texts of model outputs.
        results: folded texts of tool results.
    """
    if len(messages) < 2 or any(m.role != "user" or m.calls or m.results for m in messages):
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
