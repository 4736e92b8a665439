"""Proof that one trace continues another: its history contains all that the other said, word for word, or names it."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from otel_evals.dialects.decoding import fold, plain_text
from otel_evals.dialects.facts import REMEMBERED_RESPONSE, Facts, Message
from otel_evals.sessions.portions import answer_of, cut

__all__ = ["Evidence", "evidence"]

KEPT = 6
"""Boundaries of a history that are remembered, the latest first."""


CERTAIN = 1_000_000
"""Weight of a history that is named by its id: more than any text's."""


class Evidence:
    """Digests of what a trace has said in the end, and of what its histories had heard before."""

    __slots__ = ("asked", "called", "heard", "said", "service")

    def __init__(self) -> None:
        self.service: bytes | None = None
        """Digest of the application that the trace is from; None: not looked at yet."""
        self.asked: set[bytes] = set()
        """Digests of calls that its models made."""
        self.called: bytes | None = None
        """Digest of the call that a trace of nothing but a tool answers."""
        self.said: set[bytes] = set()
        self.heard: dict[bytes, int] = {}
        """Digest → weight of the proof: twice the length of the history it stands for, more with call ids."""

    def offers(self) -> Iterable[bytes]:
        """What other traces may go on from."""
        return (*self.said, *self.asked)

    def needs(self) -> Iterable[bytes]:
        """What it may itself go on from."""
        return self.heard if self.called is None else (*self.heard, self.called)


def evidence(facts: Iterable[Facts]) -> Evidence:
    """Digests of one trace."""
    found = Evidence()
    digests: dict[tuple[bytes, Message], bytes] = {}
    works = False
    for item in facts:
        if item.kind not in ("model", "agent", "chain"):
            if item.tool is not None and item.tool.id:
                found.called = _call(item.tool.id, item.tool.name)
            continue
        works = True
        if item.response_id and item.response_id.startswith(REMEMBERED_RESPONSE):
            found.said.add(_response(item.response_id))
        if item.seldom is not None and item.seldom.follows:
            found.heard[_response(item.seldom.follows)] = CERTAIN
        if not (item.inputs or item.outputs):
            continue
        _by_message(item, found, digests)
        _by_turn(item, found)
    if works:
        found.called = None
    # What the trace itself continues is neither its last word nor news from another trace.
    inner = found.said & found.heard.keys()
    found.said -= inner
    for digest in inner:
        del found.heard[digest]
    return found


def _by_message(item: Facts, found: Evidence, digests: dict[tuple[bytes, Message], bytes]) -> None:
    """Histories message by message: once with the ids of tool calls, which are the stronger proof, once without.

    Args:
        digests: of a history and the message after it, as far as they are known: spans of a trace share them.
    """
    messages = (*item.inputs, *item.outputs)
    named = any(message.calls for message in messages)
    if item.kind != "model":
        messages = item.inputs
    kept = max(0, len(item.inputs) - 1 - KEPT)
    for with_ids in (True, False) if named else (False,):
        digest = b"ids" if with_ids else b""
        for index, message in enumerate(messages):
            if kept < index < len(item.inputs):
                weight = 2 * index + with_ids
                found.heard[digest] = max(weight, found.heard.get(digest, 0))
            known = digests.get((digest, message))
            if known is None:
                known = digests[digest, message] = _extend(digest, message, with_ids)
            digest = known
        if item.kind == "model":  # without an output, what it heard must do
            found.said.add(digest)
    if item.kind == "model":
        for message in item.outputs:
            for call in message.calls:
                if call.id:
                    found.asked.add(_call(call.id, call.name))


def _by_turn(item: Facts, found: Evidence) -> None:
    portions = cut(item.inputs)
    if not portions:
        return
    digest = b"turns"
    kept = len(portions) - 1 - KEPT
    finished: list[tuple[bytes, int]] = []
    for index in range(len(portions) - 1):
        answer = portions[index].answer
        if answer is None:
            return
        digest = _pair(digest, portions[index].user, answer)
        if index >= kept:
            finished.append((digest, index + 1))
    for boundary, length in finished:
        found.heard[boundary] = max(2 * length, found.heard.get(boundary, 0))
    if item.outputs:
        last = portions[-1]
        answer = answer_of((*last.messages, *item.outputs))
        if answer is not None:
            found.said.add(_pair(digest, last.user, answer))


def _response(response_id: str) -> bytes:
    return blake2b(b"response" + response_id.encode("utf-8", "surrogatepass"), digest_size=12).digest()


def _call(call_id: str, name: str | None) -> bytes:
    return blake2b(f"call\x1f{call_id}\x1f{name}".encode("utf-8", "surrogatepass"), digest_size=12).digest()


def _extend(digest: bytes, message: Message, with_ids: bool) -> bytes:
    h = blake2b(digest + fold(message.text).encode("utf-8", "surrogatepass"), digest_size=12)
    for call in message.calls:
        call_id = call.id if with_ids else None
        h.update(f"\x1f{call_id}\x1f{call.name}\x1f{plain_text(call.arguments)}".encode("utf-8", "surrogatepass"))
    for result in message.results:
        h.update(b"\x1e" + fold(plain_text(result.content)).encode("utf-8", "surrogatepass"))
    return h.digest()


def _pair(digest: bytes, user: str, answer: str) -> bytes:
    text = f"{fold(user)}\x1f{fold(answer)}".encode("utf-8", "surrogatepass")
    return blake2b(digest + text, digest_size=12).digest()
