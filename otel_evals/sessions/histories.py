"""Shared storage of a session's messages: memory grows with what was said, not with its square.

Instrumentations repeat the whole history in every model span. Histories that share a beginning share its nodes, and
equal texts are held once.
"""

from __future__ import annotations

from typing import Any

from otel_evals.dialects.facts import Facts, Message

__all__ = ["Histories", "Node", "unpack"]

NODE_BYTES = 200
"""A node and its message without the text."""


class Node:
    """A history: its last message, and the history before that."""

    __slots__ = ("children", "message", "parent")

    def __init__(self, parent: Node | None, message: Message | None) -> None:
        self.parent = parent
        self.message = message
        self.children: Node | dict[Any, Node] | None = None

    def messages(self, above: Node | None = None) -> tuple[Message, ...]:
        """All messages from the beginning, or from below another node, oldest first."""
        out: list[Message] = []
        at: Node | None = self
        while at is not None and at is not above and at.message is not None:
            out.append(at.message)
            at = at.parent
        out.reverse()
        return tuple(out)


class Histories:
    """All that was said in one session."""

    __slots__ = ("_messages", "_texts", "recent", "root")

    def __init__(self) -> None:
        self.root = Node(None, None)
        self._messages: dict[Any, Message] = {}
        self._texts: dict[str, str] = {}
        self.recent: dict[Any, Any] = {}
        """What the reader remembers of the last histories, see `Recall`."""

    def pack(self, facts: Facts) -> int:
        """Moves the messages of one span into shared storage. Returns the bytes of those that are new."""
        new = 0
        heard = self.root
        for message in facts.inputs:
            heard, size = self._next(heard, message)
            new += size
        said = heard
        for message in facts.outputs:
            said, size = self._next(said, message)
            new += size
        facts.packed = (heard, said)
        facts.inputs = facts.outputs = ()
        if facts.system is not None:
            facts.system = self._text(facts.system)
        if facts.tool is not None and isinstance(facts.tool.result, str):
            before = len(self._texts)
            facts.tool.result = self._text(facts.tool.result)
            new += len(facts.tool.result) if len(self._texts) > before else 0
        return new

    def share(self, message: Message) -> Message:
        """The one stored message that equals this one."""
        key = message.key()
        known = self._messages.get(key)
        if known is None:
            message.text = self._text(message.text)
            for result in message.results:
                if isinstance(result.content, str):
                    result.content = self._text(result.content)
            self._messages[key] = known = message
        return known

    def _next(self, at: Node, message: Message) -> tuple[Node, int]:
        children = at.children
        if children.__class__ is Node:
            assert isinstance(children, Node)
            if children.message is message:
                return children, 0
        before = len(self._messages)
        message = self.share(message)
        size = _size(message) if len(self._messages) > before else 0
        if children is None:
            node = Node(at, message)
            at.children = node
            return node, size + NODE_BYTES
        if isinstance(children, Node):
            if children.message is message:
                return children, size
            children = at.children = {id(children.message): children}
        known = children.get(id(message))
        if known is None:
            known = children[id(message)] = Node(at, message)
            size += NODE_BYTES
        return known, size

    def _text(self, text: str) -> str:
        return self._texts.setdefault(text, text) if text else text


def unpack(facts: Facts) -> Facts:
    """Gives a span its messages back."""
    if facts.packed is not None:
        heard, said = facts.packed
        facts.inputs, facts.outputs = heard.messages(), said.messages(heard)
        facts.packed = None
    return facts


def _size(message: Message) -> int:
    size = len(message.text)
    for call in message.calls:
        size += len(repr(call.arguments))
    for result in message.results:
        size += len(result.content) if isinstance(result.content, str) else len(repr(result.content))
    return size
