"""Puts streamed answers together."""

from __future__ import annotations

from otel_evals.dialects.facts import Message

__all__ = ["join_chunks"]

CHUNK = 60
"""Characters up to which a piece of text counts as a streamed one."""


def join_chunks(messages: list[Message]) -> list[Message]:
    """Streamed answers: dozens of pieces, perhaps followed by the whole again, become one message."""
    if len(messages) < 2:
        return messages
    out: list[Message] = []
    run: list[str] = []
    for message in messages:
        if message.role == "assistant" and not message.calls and not message.results:
            if message.text:
                run.append(message.text)
            continue
        if run:
            out += _joined(run)
            run = []
        out.append(message)
    return out + _joined(run) if run else out


def _joined(texts: list[str]) -> list[Message]:
    """One run of pieces of text by the agent."""
    if len(texts) < 2:
        return [Message("assistant", text) for text in texts]
    head = "".join(texts[:-1])
    last = texts[-1]
    if last.strip().startswith(head.strip()) or len(set(texts)) == 1:
        return [Message("assistant", last)]
    if len(texts) > 3 and max(map(len, texts)) < CHUNK:
        return [Message("assistant", "".join(texts))]
    return [Message("assistant", text) for text in texts]
