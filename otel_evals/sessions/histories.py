"""Shared storage of a session's messages: memory grows with what was said, not with its square.

Instrumentations repeat the whole history in every model span. Histories that share a beginning share its nodes, and
equal texts are held once.
"""

from __future__ import annotations

from typing import Any

from otel_evals.dialects.facts import Facts, Message, ToolFacts

__all__ = ["Histories", "Node", "unpack"]

NODE_BYTES = 250
"""A node and its message without the text."""
FEW = 8
"""Histories that go on from one, up to which each is looked at."""
SHORT = 40
"""Characters up to which a text is not worth an entry of its own."""


class Node:
    """A history: its last message, and the history before that."""

    __slots__ = ("children", "message", "parent")

    def __init__(self, parent: Node | None, message: Message | None) -> None:
        self.parent = parent
        self.message = message
        self.children: Node | list[Node] | dict[Any, Node] | None = None
        """Histories that go on from here: one, few, or by the keys of their last messages."""

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

    __slots__ = ("_last_arguments", "_texts", "_words", "recent", "root")

    def __init__(self) -> None:
        self.root = Node(None, None)
        self._texts: dict[str, str] = {}
        self._words: dict[Any, Any] = {}
        self._last_arguments: tuple[dict[Any, Any], ...] = ()
        self.recent: dict[Any, Any] = {}
        """What the reader remembers of the last histories, see `Recall`."""

    def clear(self) -> None:
        """Lets go of all that was said."""
        self.root.children = None
        self._texts.clear()
        self._words.clear()
        self._last_arguments = ()
        self.recent = {}

    def pack(self, facts: Facts) -> int:
        """Moves what one span says into shared storage. Returns the bytes of what is new."""
        new = 0
        heard = self.root
        for message in facts.inputs:
            heard, size = self._next(heard, message)
            new += size
        said = heard
        for message in facts.outputs:
            said, size = self._next(said, message)
            new += size
        facts.heard, facts.said = heard, said
        facts.inputs = facts.outputs = ()
        if facts.tool is not None:
            new += self._pack_tool(facts.tool)
        # Names and the like, which every span of a session repeats.
        word = self._words.setdefault
        facts.name = word(facts.name, facts.name)
        if facts.model is not None:
            facts.model = word(facts.model, facts.model)
        if facts.agent is not None:
            facts.agent = word(facts.agent, facts.agent)
        if facts.system is not None:
            facts.system = word(facts.system, facts.system)
        if facts.usage is not None:
            facts.usage = word(facts.usage, facts.usage)
        if facts.user_id is not None:
            facts.user_id = word(facts.user_id, facts.user_id)
        return new

    def names(self, sessions: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        """The session's names as its first span had them: one object for all of them."""
        known: tuple[tuple[str, str], ...] = self._words.setdefault(sessions, sessions)
        return known

    def _pack_tool(self, tool: ToolFacts) -> int:
        tool.name, tool.arguments = self._words.setdefault(tool.name, tool.name), self._arguments(tool.arguments)
        if not isinstance(tool.result, str):
            return 0
        before = len(self._texts)
        tool.result = self._text(tool.result)
        return len(tool.result) if len(self._texts) > before else 0

    def _next(self, at: Node, message: Message) -> tuple[Node, int]:
        """The node of a message after a history, and the bytes it took if it is new."""
        children = at.children
        if children is None:
            at.children = node = self._new(at, message)
        elif isinstance(children, Node):
            if _ends_with(children, message):
                return children, 0
            node = self._new(at, message)
            at.children = [children, node]
        elif isinstance(children, list):
            for child in children:
                if _ends_with(child, message):
                    return child, 0
            node = self._new(at, message)
            children.append(node)
            if len(children) > FEW:
                at.children = {child.message.key(): child for child in children if child.message is not None}
        else:
            key = message.key()
            known = children.get(key)
            if known is not None:
                return known, 0
            children[key] = node = self._new(at, message)
        return node, _size(message) + NODE_BYTES

    def _new(self, at: Node, message: Message) -> Node:
        message.text = self._text(message.text)
        for call in message.calls:
            call.name, call.arguments = self._words.setdefault(call.name, call.name), self._arguments(call.arguments)
        for result in message.results:
            result.name = self._words.setdefault(result.name, result.name)
            if isinstance(result.content, str):
                result.content = self._text(result.content)
        return Node(at, message)

    def _arguments(self, value: Any) -> Any:
        """Arguments, which the model's message and the tool's span both state."""
        if not isinstance(value, dict):
            return value
        for known in self._last_arguments:
            if known == value:
                return known
        self._last_arguments = (value, *self._last_arguments[:7])
        return value

    def _text(self, text: str) -> str:
        return self._texts.setdefault(text, text) if len(text) > SHORT else text


def _ends_with(node: Node, message: Message) -> bool:
    return node.message is not None and node.message.says_the_same(message)


def unpack(facts: Facts) -> Facts:
    """Gives a span its messages back."""
    heard, said = facts.heard, facts.said
    if heard is None:
        return facts
    if heard.message is not None:
        facts.inputs = heard.messages()
    if said is not heard:
        facts.outputs = (said.message,) if said.parent is heard else said.messages(heard)
    facts.heard = facts.said = None
    return facts


def _size(message: Message) -> int:
    size = len(message.text)
    for call in message.calls:
        size += len(repr(call.arguments))
    for result in message.results:
        size += len(result.content) if isinstance(result.content, str) else len(repr(result.content))
    return size
