"""Every way in which traces say that something failed, read in one place.

A failed tool shows as span status, exception event, error attribute, flag in a result, or only as result text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from otel_evals.dialects.decoding import decode, decode_repr, is_redacted, plain_text
from otel_evals.sessions.model import ToolFailure
from otel_evals.spans.record import SpanRecord

__all__ = ["FAILURE_KEYS", "failure_of_result", "failure_of_span", "merge_failures"]

LEVEL_KEYS = ("langfuse.observation.level", "level")
"""Attributes that hold a severity; `ERROR` marks a failure."""
STATUS_KEYS = ("gen_ai.tool.status", "gen_ai.task.status", "tool.status", "genkit:state")
MESSAGE_KEYS = (
    "error.message",
    "exception.message",
    "langfuse.observation.status_message",
    "mastra.error.message",
    "gen_ai.error.message",
    "genkit:error",
)
TYPE_KEYS = ("error.type", "exception.type")
FLAG_KEYS = ("error", "tool.is_error", "gen_ai.tool.is_error", "haystack.tool.error")

FAILURE_KEYS = frozenset((*LEVEL_KEYS, *STATUS_KEYS, *TYPE_KEYS, *FLAG_KEYS))
"""Attributes without which, given a status and events that tell of none, there is no failure."""

_FAILED_WORDS = frozenset(("error", "failed", "failure", "fatal", "critical", "exception", "timeout", "timed_out"))
_RESULT_FLAGS = ("is_error", "isError", "is_failure", "isFailure")
_REASON_KEYS = (
    "error_message",
    "message",
    "error",
    "reason",
    "detail",
    "details",
    "content",
    "text",
    "errorText",
    "value",
)
_EXCEPTION_REPR = re.compile(r"^([A-Z]\w*(?:Error|Exception|Timeout|Retry))\((['\"])(.*)\2,?\)$", re.DOTALL)
_VAGUE_TYPES = frozenset(("_OTHER", "Exception", "tool_execution_error", "tool_error", "error"))

_VAGUE = re.compile(
    r"\W*(?:an? )?(?:(?:tool|function|internal|unknown|unexpected)[ _]?)?(?:(?:call|execution)[ _]?)?"
    r"(?:error|exception|failure|failed)(?: occurred)?\W*",
    re.IGNORECASE,
)
"""Messages that say no more than that something failed."""

_ERROR_TEXT = re.compile(
    r"""^\W{0,3}(?:
        (?:tool[ _]?(?:call|execution)?[ _]?)?(?:error|exception|failure)\b
            (?:\s+(?:executing|running|calling|invoking|while|in|from|during|occurred)\b.{0,120})?\s*[:\-(\]]
      | (?:an?\s+)?(?:unexpected\s+|internal\s+)?error\s+
            (?:occurred|executing|running|while|calling|invoking|parsing|using)\b
      | failed\s+to\s+(?:execute|run|call|invoke)\b
      | (?:tool|function)\s+(?:call|execution|invocation)?\s*(?:failed|timed\s+out)\b
      | traceback\s+\(most\s+recent\s+call\s+last\)
      | (?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Timeout)\b\s*[:(]
      | (?:error|exception)_?(?:message|type)\s*[:=]
    )""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""The wording with which tools, and frameworks around them, answer instead of a result."""

_SERVICE_TEXT = re.compile(
    r"""(?:\w+[ ]){0,4}(?:
            (?:dns|resolution|lookup|request|call|connection)[ ](?:has[ ])?(?:failed|timed[ ]out)
          | connection[ ](?:was[ ])?(?:refused|reset|closed)
          | (?:service|server|host|api|gateway|network|backend)[ ](?:is[ ]|was[ ])?(?:currently[ ]|temporarily[ ])?
            (?:unreachable|not[ ]reachable|unavailable|not[ ]responding)(?![ ](?:on|in|at|until|during)[ ])
        )\b
      | (?:could[ ]not|cannot|unable[ ]to|failed[ ]to)[ ](?:connect[ ]to|resolve[ ]host)\b""",
    re.VERBOSE | re.IGNORECASE,
)
"""How a short answer begins that says a service could not be reached: no result of any tool."""
LONGEST_SERVICE_TEXT = 160

_HINTS = ("error", "exception", "fail", "timeout", "timed out", "traceback", "fatal", "critical", "reachable",
          "unavailable", "connect", "not responding", "resolve host")  # fmt: skip
"""Every failing result has one of these somewhere: without, it need not be parsed."""
_TYPE_ENDINGS = ("Error", "Exception", "Timeout", "Retry")
_TYPE_IN_TEXT = re.compile(rf"\b((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:{'|'.join(_TYPE_ENDINGS)}))\b")


def failure_of_span(record: SpanRecord, marks: Sequence[str] = (), reasons: Sequence[str] = ()) -> ToolFailure | None:
    """The failure that a span's status, events or attributes tell of; None: no mark.

    Args:
        marks: further attributes whose value may say that the span failed.
        reasons: further attributes that may say why.
    """
    attributes = record.attributes
    kind: str | None = None
    reason: str | None = None
    marked = record.status == "error"
    for event in record.events:
        if event.name == "exception" or "exception.type" in event.attributes:
            marked = True
            kind = kind or _text(event.attributes.get("exception.type"))
            reason = reason or _reason(event.attributes.get("exception.message"))
    if not marked and not _marked_by_attributes(attributes) and not any(_says_failed(attributes[k]) for k in marks):
        return None
    for key in TYPE_KEYS:
        if not kind:
            kind = _text(attributes.get(key))
    if not reason:
        reason = _reason(record.status_message)
    for key in (*MESSAGE_KEYS, *reasons):
        if reason:
            break
        reason = _reason(attributes.get(key))
    kind, reason = _from_repr(kind, reason)
    if kind in _VAGUE_TYPES and reason:
        kind = _type_in(reason) or kind
    return ToolFailure(type=kind or (_type_in(reason) if reason else None), message=reason)


def failure_of_result(result: Any, *, from_text: bool = True) -> ToolFailure | None:
    """The failure that a tool's result itself tells of: a flag, an error status, or the wording of an error."""
    if result is None or isinstance(result, (bool, int, float)):
        return None
    if isinstance(result, str) and not _hints_at_failure(result):
        return None
    value = decode(result)
    if isinstance(value, dict):
        return _failure_of_mapping(value)
    if isinstance(value, list):
        for item in value[:3]:
            if isinstance(item, dict) and (found := _failure_of_mapping(item)):
                return found
        if len(value) == 1 and isinstance(value[0], dict) and isinstance(value[0].get("text"), str):
            return failure_of_result(value[0]["text"], from_text=from_text)
        return None
    if not from_text or not isinstance(value, str):
        return None
    if _ERROR_TEXT.match(value[:400]) or (
        len(value) <= LONGEST_SERVICE_TEXT and "\n" not in value and _SERVICE_TEXT.match(value)
    ):
        return ToolFailure(type=_type_in(value), message=value)
    printed = decode_repr(value)
    return _failure_of_mapping(printed) if isinstance(printed, dict) else None


def _hints_at_failure(text: str) -> bool:
    lowered = text.lower()
    for hint in _HINTS:  # noqa: SIM110 — a generator costs more than the search
        if hint in lowered:
            return True
    return False


def merge_failures(first: ToolFailure | None, second: ToolFailure | None) -> ToolFailure | None:
    """Both reports of one failure as one: the more telling type and message."""
    if first is None or second is None:
        return first or second
    kind = first.type if first.type and first.type not in _VAGUE_TYPES else second.type or first.type
    message = first.message
    if not message or is_redacted(message) or _VAGUE.fullmatch(message):
        message = second.message or message
    return ToolFailure(type=kind, message=message)


def _marked_by_attributes(attributes: Mapping[str, Any]) -> bool:
    for key in TYPE_KEYS:
        if attributes.get(key):
            return True
    for key in LEVEL_KEYS:
        if str(attributes.get(key) or "").upper() == "ERROR":
            return True
    for key in STATUS_KEYS:
        if str(attributes.get(key) or "").lower() in _FAILED_WORDS:
            return True
    return any(attributes.get(key) is True or attributes.get(key) == "true" for key in FLAG_KEYS)


def _says_failed(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.lower() in _FAILED_WORDS)


def _failure_of_mapping(value: Mapping[str, Any]) -> ToolFailure | None:
    for flag in _RESULT_FLAGS:
        if value.get(flag) is True:
            return ToolFailure(type=_text(value.get("error_type")), message=_first_reason(value))
    status = value.get("status")
    if isinstance(status, str) and status.lower() in _FAILED_WORDS:
        reason = _first_reason(value)
        return ToolFailure(type=_text(value.get("error_type")) or _type_in(reason or ""), message=reason)
    if isinstance(value.get("type"), str) and value["type"].lower().replace("_", "-") in ("error-text", "error-json"):
        return ToolFailure(message=_first_reason(value))
    error = value.get("error")
    if error and error is not True and _only_error(value):
        reason = _first_reason(error) if isinstance(error, dict) else plain_text(error)
        kind = _text(error.get("type") or error.get("name")) if isinstance(error, dict) else None
        return ToolFailure(type=kind or _type_in(reason or ""), message=reason)
    for key in ("response", "result", "content", "output", "artifact", "data", "kwargs"):
        inner = value.get(key)
        if len(value) <= 8 and isinstance(inner, (str, dict, list)) and (found := failure_of_result(inner)):
            return found
    return None


def _only_error(value: Mapping[str, Any]) -> bool:
    """`error` beside real data may be a field of the answer; beside nothing it is the answer."""
    others = [key for key, item in value.items() if key not in ("error", "status", "code", "success", "ok") and item]
    return len(others) <= 1


def _first_reason(value: Mapping[str, Any]) -> str | None:
    for key in _REASON_KEYS:
        item = value.get(key)
        if item and item is not True:
            return plain_text(item)
    return None


def _reason(value: Any) -> str | None:
    text = _text(value)
    if text is None or text in ("TOOL_ERROR", "ERROR", "error"):
        return None
    head, trace, tail = text.partition("Traceback (most recent call last)")
    if trace:
        text = head.strip() or tail.strip().rsplit("\n", 1)[-1]
    return text


def _from_repr(kind: str | None, reason: str | None) -> tuple[str | None, str | None]:
    """`TimeoutError('timed out')`, the `repr` of an exception, as type and message."""
    found = _EXCEPTION_REPR.match(reason) if reason else None
    if found is None:
        return kind, reason
    if kind is None or kind in _VAGUE_TYPES or kind.endswith(found.group(1)):
        return kind if kind and kind not in _VAGUE_TYPES else found.group(1), found.group(3)
    return kind, reason


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _type_in(text: str | None) -> str | None:
    if not text:
        return None
    head = text[:400]
    for ending in _TYPE_ENDINGS:
        if head.find(ending, 1) > 0:
            found = _TYPE_IN_TEXT.search(head)
            return found.group(1) if found else None
    return None
