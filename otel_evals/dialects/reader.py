"""Reads one span or log record into facts, through the vocabularies of all dialects at once.

A span may speak several vocabularies (converters, double instrumentation): every attribute is looked up once in a
table compiled from all of them, and within each fact the best source wins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from otel_evals.dialects import (
    agentops,
    autogen,
    braintrust,
    crewai,
    genkit,
    google_adk,
    haystack,
    humanloop,
    laminar,
    langfuse,
    langsmith,
    lilypad,
    litellm,
    mastra,
    mlflow,
    openinference,
    openllmetry,
    otel_genai,
    plain,
    pydantic_ai,
    spring_ai,
    vercel_ai,
)
from otel_evals.dialects.chunks import join_chunks
from otel_evals.dialects.decoding import decode
from otel_evals.dialects.events import Spoken, read_event, read_event_list
from otel_evals.dialects.facts import Facts, Message, Result, Role, ToolFacts
from otel_evals.dialects.failures import failure_of_result, failure_of_span, merge_failures
from otel_evals.dialects.messages import read_messages
from otel_evals.dialects.recall import Recall, read_history, read_remembered, read_system
from otel_evals.dialects.shapes import Shapes
from otel_evals.dialects.tool_calls import arguments_of
from otel_evals.dialects.tool_records import plain_result, read_tool_record
from otel_evals.dialects.view import View, session_ids
from otel_evals.dialects.vocabulary import Vocabulary
from otel_evals.spans.record import LogRecord_, SpanRecord

__all__ = ["VOCABULARIES", "Reader"]

VOCABULARIES: tuple[Vocabulary, ...] = (
    otel_genai.VOCABULARY,
    openinference.VOCABULARY,
    vercel_ai.VOCABULARY,
    pydantic_ai.VOCABULARY,
    openllmetry.VOCABULARY,
    google_adk.VOCABULARY,
    langfuse.VOCABULARY,
    mlflow.VOCABULARY,
    langsmith.VOCABULARY,
    mastra.VOCABULARY,
    litellm.VOCABULARY,
    autogen.VOCABULARY,
    crewai.VOCABULARY,
    genkit.VOCABULARY,
    spring_ai.VOCABULARY,
    laminar.VOCABULARY,
    agentops.VOCABULARY,
    braintrust.VOCABULARY,
    haystack.VOCABULARY,
    lilypad.VOCABULARY,
    humanloop.VOCABULARY,
    plain.VOCABULARY,
)

_PSEUDO_AGENTS = frozenset(("openai agent", "unknown", "agent", "none", ""))
_NO_USERS = frozenset(("unknown", "anonymous", "None", "null", "undefined"))
_VERBS = frozenset(("invoke_agent", "agent_run", "run_agent", "create_agent"))
_LONGEST_AGENT_NAME = 64


_SHARED: dict[tuple[str, ...], Shapes] = {}


def _shapes(vocabularies: tuple[Vocabulary, ...] | None, session_keys: tuple[str, ...]) -> Shapes:
    """The table of attribute names; one is shared by all readers of the built-in vocabularies."""
    if vocabularies is not None:
        return Shapes(vocabularies, session_keys)
    if session_keys not in _SHARED:
        _SHARED[session_keys] = Shapes(VOCABULARIES, session_keys)
    return _SHARED[session_keys]


class Reader:
    """Reads records with one configuration. Stateless and shareable."""

    def __init__(
        self,
        *,
        session_keys: Sequence[str] = (),
        goal_attributes: Sequence[str] = ("otel_evals.goal",),
        keep_attributes: Sequence[str] = (),
        explain: bool = False,
        vocabularies: Sequence[Vocabulary] = VOCABULARIES,
    ) -> None:
        self._goal_attributes = tuple(goal_attributes)
        self._keep_attributes = tuple(keep_attributes)
        self._explain = explain
        self._shapes = _shapes(tuple(vocabularies) if vocabularies is not VOCABULARIES else None, tuple(session_keys))

    def read_span(self, record: SpanRecord, recall: Recall | None = None) -> Facts | None:
        """The facts of one span; None when it says nothing about an agent.

        Args:
            recall: gives the memory of the session that a trace and its session ids belong to, so that a history
                that only grew is not parsed again.
        """
        attributes = record.attributes
        view = View(attributes, self._shapes.of(tuple(attributes)), self._explain)
        kind, sessions = view.kind, view.sessions
        spoken = _spoken_events(record) if record.events else None
        if kind is None:
            said = spoken is not None or view.says()
            if not said and not sessions:
                return None
            kind = "chain" if said else "other"
        facts = Facts(
            record.trace_id, record.span_id, record.parent_id, record.start_ns, record.end_ns, kind, record.name
        )
        facts.sessions = sessions
        if not sessions and view.shape.sessions and (response := view.previous_response()) is not None:
            facts.rare().follows = response
        if record.links:
            facts.rare().links = tuple((link.trace_id, link.span_id) for link in record.links)
        if record.parent_remote:
            facts.rare().parent_remote = True
        if not record.sampled:
            facts.rare().unsampled = True
        self._identity(facts, record, view)
        if record.status == "error" or record.events or view.may_have_failed():
            guessed = view.shape.guessed
            facts.failure = failure_of_span(record, *((guessed.marks, guessed.reasons) if guessed else ()))
        if kind == "tool":
            _fill_tool(facts, record, view, spoken)
        elif kind != "pseudo":
            memory = recall(record.trace_id, sessions) if recall is not None else {}
            _fill_messages(facts, view, spoken, memory)
        if self._explain:
            facts.rare().sources = view.sources
        return facts

    def read_log(self, record: LogRecord_) -> tuple[Spoken, tuple[tuple[str, str], ...]] | None:
        """What a log record adds to its span, and the session ids on it; None when it is no GenAI event."""
        spoken = Spoken()
        name = record.event_name or str(
            record.attributes.get("event.name") or record.attributes.get("event_name") or ""
        )
        if not read_event(name, record.attributes, record.body, spoken):
            return None
        return spoken, session_ids(record.attributes, self._shapes.of(tuple(record.attributes)))

    def _identity(self, facts: Facts, record: SpanRecord, view: View) -> None:
        attributes = record.attributes
        agent = view.text("agent")
        if agent and agent.lower() not in _PSEUDO_AGENTS:
            facts.agent = agent
        elif facts.kind == "agent" and view.said_agent:
            facts.agent = _agent_in(record.name)
        facts.model = view.text("model")
        facts.response_id = view.text("response_id")
        user = view.text("user_id")
        facts.user_id = None if user in _NO_USERS else user
        if tags := view.tags():
            facts.rare().tags = tags
        if facts.kind != "tool":
            facts.usage = view.usage()
        for key in self._goal_attributes:
            goal = attributes.get(key)
            if isinstance(goal, str) and goal:
                facts.rare().goal = goal
                break
        if self._keep_attributes:
            kept = {key: attributes[key] for key in self._keep_attributes if key in attributes}
            if kept:
                facts.rare().kept = kept


def _agent_in(span_name: str) -> str | None:
    """The agent in the name of an agent's span: `invoke_agent X`, `agent_run [X]`, `X.run`, or `X` itself.

    Only short names on one line: agents are few, and their names become metric attributes.
    """
    verb, _, rest = span_name.partition(" ")
    name = (rest if "agent" in verb and rest and "_" in verb else span_name).strip("[] ").split(".")[0].strip()
    if not name or len(name) > _LONGEST_AGENT_NAME or "\n" in name or name.lower() in _PSEUDO_AGENTS:
        return None
    return None if name in _VERBS else name


def _spoken_events(record: SpanRecord) -> Spoken | None:
    spoken = Spoken()
    said = False
    for event in record.events:
        said |= event.name != "exception" and read_event(event.name, event.attributes, None, spoken)
    return spoken if said else None


def _fill_tool(facts: Facts, record: SpanRecord, view: View, spoken: Spoken | None) -> None:
    name = view.text("tool_name") or _tool_name(record.name)
    if name and name.startswith("("):  # bookkeeping over several calls, such as "(merged tools)"
        facts.kind = "pseudo"
        return
    if facts.agent == name:
        facts.agent = None  # a node of a graph, which here is the tool itself
    arguments = arguments_of(view.first("tool_arguments", "blob_in", "messages_in"))
    result = view.first("tool_result", "blob_out", "messages_out", "answer")
    call_id = view.text("tool_id")
    if spoken is not None:
        said = _said_by_tool(spoken)
        arguments = arguments if arguments is not None else said[0]
        result = result if result is not None else said[1]
    failure = failure_of_result(result)
    inner = decode(result)
    if (recorded := read_tool_record(inner)) is not None:
        if recorded.arguments and not (isinstance(arguments, dict) and arguments):
            arguments = recorded.arguments
        name = view.text("tool_name") or recorded.name
        result, call_id, failure = recorded.result, call_id or recorded.id, failure or recorded.failure
    elif (reported := _reported(inner)) is not None:
        result, call_id, failure = reported.content, call_id or reported.call_id, failure or reported.failure
    facts.tool = ToolFacts(call_id, name, arguments, plain_result(result), merge_failures(facts.failure, failure))


def _reported(value: Any) -> Result | None:
    """The result inside the tool message that a tool span gives as its output."""
    if not _wraps_result(value):
        return None
    wrapped = {"functionResponse": value} if isinstance(value, dict) and "response" in value else value
    return next((m.results[0] for m in read_messages(wrapped, "tool") if m.results), None)


def _wraps_result(value: Any) -> bool:
    """A tool message around the result, as LangChain tools return it."""
    if isinstance(value, list):
        return bool(value) and _wraps_result(value[0])
    if not isinstance(value, dict):
        return False
    if "response" in value and ("name" in value or "id" in value) and len(value) <= 5:
        return True
    return (
        value.get("lc") == 1
        or value.get("type") == "tool"
        or value.get("role") == "tool"
        or (
            set(value) <= {"output", "kwargs"}
            and isinstance(value.get("output"), dict)
            and _wraps_result(value["output"])
        )
    )


def _said_by_tool(spoken: Spoken) -> tuple[Any, Any]:
    """A tool span's own events: what went in is its arguments, what came out its result."""
    arguments: Any = None
    result: Any = None
    for message in spoken.inputs:
        for call in message.calls:
            arguments = call.arguments
        for item in message.results:
            arguments = arguments if arguments is not None else arguments_of(item.content)
    for message in spoken.outputs:
        for item in message.results:
            result = item.content
        if message.text:
            result = message.text
    return arguments, result


_TOOL_PREFIXES = (
    "execute_tool ",
    "tool ",
    "running tool: ",
    "running tool ",
    "tool.",
    "call_tool ",
    "Function: ",
    "Tool.",
)
_TOOL_SUFFIXES = (".tool", ".run", ".call", ".acall", ".__call__", " tool")


def _tool_name(name: str) -> str | None:
    """The tool in a span name: `execute_tool search`, `search.tool`, `search`."""
    for prefix in _TOOL_PREFIXES:
        name = name.removeprefix(prefix)
    for suffix in _TOOL_SUFFIXES:
        name = name.removesuffix(suffix)
    return name or None


def _fill_messages(facts: Facts, view: View, spoken: Spoken | None, memory: dict[Any, Any]) -> None:
    if (instructions := view.raw("system")) is not None:
        facts.system = read_system(instructions, memory)
    inputs, outputs = _whole(facts, view, memory)
    if not inputs:
        inputs = _first_messages(view, "messages_in", "user", memory)
        if inputs and view.has("blob_in"):
            _take_failures(inputs, view, memory)
    if not inputs or (facts.kind != "model" and len(inputs) == 1) or _hollow(view):
        # Wrappers may list the first message only, and the whole in their blob.
        blob = _first_blob(view, "blob_in", "user", memory)
        inputs = blob if len(blob) > len(inputs) else inputs
    if not outputs:
        outputs = _outputs(view, memory)
    for _, value in view.named("events"):
        spoken = spoken or Spoken()
        read_event_list(value, spoken)
    if spoken is not None:
        inputs = inputs or spoken.inputs
        outputs = outputs or spoken.outputs
        facts.system = facts.system or spoken.system
    facts.inputs = tuple(_without_system(inputs, facts))
    facts.outputs = tuple(join_chunks(_without_system(outputs, None)))


def _hollow(view: View) -> bool:
    """Whether a flattened message is nothing but its role: the rest was lost, and the request as it was sent has it."""
    for _, value in view.named("messages_in") if view.shape.indexed else ():
        for item in value if isinstance(value, list) else ():
            message = item.get("message") if isinstance(item, dict) else None
            if isinstance(message, dict) and len(message) == 1 and "role" in message:
                return True
    return False


_FLAGGED = re.compile(r"""["'](?:status["']: ?["']error|is_?error["']: ?true)""", re.IGNORECASE)


def _take_failures(messages: list[Message], view: View, memory: dict[Any, Any]) -> None:
    """Flags of failed results that only the request as it was sent still has, not the messages made of it."""
    open_results = [r for m in messages for r in m.results if r.call_id and r.failure is None]
    if not open_results:
        return
    for _, value in view.named("blob_in"):
        if isinstance(value, str) and _FLAGGED.search(value):
            sent = read_remembered(value, "user", memory)
            failed = {r.call_id: r.failure for m in sent for r in m.results if r.failure is not None}
            for result in open_results:
                result.failure = failed.get(result.call_id)


def _without_system(messages: list[Message], facts: Facts | None) -> list[Message]:
    """The messages of a conversation; the first instructions among them go to the facts, if these have none."""
    for message in messages:
        if message.role == "system":
            break
    else:
        return messages
    if facts is not None and facts.system is None:
        facts.system = next((m.text for m in messages if m.role == "system" and m.text), None)
    return [m for m in messages if m.role != "system"]


def _whole(facts: Facts, view: View, memory: dict[Any, Any]) -> tuple[list[Message], list[Message]]:
    """A conversation from its beginning, and its answer."""
    value = view.raw("whole")
    if value is None:
        return [], []
    messages = read_history(value, "whole", "user", memory)
    begin = view.number("new_from")
    if begin is not None:
        facts.rare().new_from = begin
    answer = view.text("answer")
    return messages, [Message("assistant", answer)] if answer else []


def _first_messages(view: View, field: str, role: Role, memory: dict[Any, Any]) -> list[Message]:
    for key, value in view.named(field):
        found = read_history(value, key, role, memory)
        if found:
            view.note(field, key)
            return found
    return []


def _first_blob(view: View, field: str, role: Role, memory: dict[Any, Any]) -> list[Message]:
    for key, value in view.named(field):
        found = read_remembered(value, role, memory)
        if found:
            view.note(field, key)
            return found
    return []


def _outputs(view: View, memory: dict[Any, Any]) -> list[Message]:
    found = _first_messages(view, "messages_out", "assistant", memory)
    answer = view.text("answer")
    if answer and not any(m.text for m in found):
        return [Message("assistant", answer, tuple([call for m in found for call in m.calls]))]
    return found or _first_blob(view, "blob_out", "assistant", memory)
