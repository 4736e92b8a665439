"""Attributes of vendors that no vocabulary lists, told by how instrumentations name things.

A namespace is taken for an agent's where it says, on one span, both what the span is (`acme.span.type`) and what went
in or came out (`acme.input`, `acme.output_json`). One of the two alone is too common to mean anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from otel_evals.dialects.facts import Kind

__all__ = ["KINDS", "STANDARD", "Guess", "guess"]

KINDS: Mapping[str, Kind] = {
    "llm": "model",
    "generation": "model",
    "model": "model",
    "chat": "model",
    "chat_model": "model",
    "completion": "model",
    "agent": "agent",
    "tool": "tool",
    "tool_call": "tool",
    "function": "tool",
    "chain": "chain",
    "workflow": "chain",
    "flow": "chain",
    "task": "chain",
    "step": "chain",
    "span": "chain",
    "default": "chain",
    "operation": "chain",
    "session": "chain",
    "conversation": "chain",
    "retriever": "other",
    "retrieval": "other",
    "embedding": "other",
    "memory": "other",
    "guardrail": "other",
    "evaluator": "other",
}
"""Words for what a span is, in lower case."""

_TYPES = frozenset(
    ("type", "kind", "subtype", "span_type", "span_kind", "event_type", "observation_type", "span_attributes")
)
_INPUTS = frozenset(("input", "inputs", "input_messages", "prompt", "prompts", "messages"))
_OUTPUTS = frozenset(("output", "outputs", "output_messages", "completion", "completions", "response"))
_MARKS = frozenset(("level", "status", "state", "error", "is_error"))
_REASONS = frozenset(("status_message", "error", "error_message"))
_SESSION = re.compile(r"(?:^|[._-])(?:session|conversation|thread|chat)[._-]?id$", re.IGNORECASE)
STANDARD = frozenset(
    ("aws", "azure", "browser", "client", "cloud", "code", "container", "db", "device", "dns", "enduser", "error",
     "event", "exception", "faas", "feature_flag", "file", "gcp", "gen_ai", "geo", "graphql", "host", "http", "job",
     "jsonrpc", "k8s", "log", "mcp", "messaging", "net", "network", "os", "otel", "peer", "process", "rpc", "server",
     "service", "session", "span", "system", "telemetry", "thread", "url", "user", "user_agent")
)  # fmt: skip
"""Namespaces of OpenTelemetry's own conventions, which have meanings of their own."""


_ROLES = {"kinds": _TYPES, "inputs": _INPUTS, "outputs": _OUTPUTS, "marks": _MARKS, "reasons": _REASONS}


class Guess(NamedTuple):
    """What unlisted attributes seem to be."""

    kinds: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sessions: tuple[str, ...]
    marks: tuple[str, ...]
    """Attributes whose value may say that the span failed."""
    reasons: tuple[str, ...]


def guess(names: Iterable[str]) -> Guess | None:
    """What the attributes of a span that no vocabulary lists may be; None: nothing."""
    spaces: dict[str, dict[str, list[str]]] = {}
    for name in names:
        space, _, rest = _split(name)
        word = re.split(r"[.:]", rest)[-1].lower()
        word = word.removesuffix("_json").removesuffix("_value")
        if space in STANDARD or not rest:
            continue
        roles = spaces.setdefault(space, {})
        for role, words in _ROLES.items():
            if word in words:
                roles.setdefault(role, []).append(name)
        if _SESSION.search(rest):
            roles.setdefault("sessions", []).append(name)
    found = [roles for roles in spaces.values() if "kinds" in roles and ("inputs" in roles or "outputs" in roles)]
    if not found:
        return None
    return Guess(*(tuple(name for roles in found for name in roles.get(role, ())) for role in Guess._fields))


def _split(name: str) -> tuple[str, str, str]:
    """`acme.span.input` and `acme_event_type` → namespace, separator, rest."""
    found = re.match(r"(\w+?)([.:])(.*)", name) or re.match(r"([a-zA-Z0-9]+)(_)(.*)", name)
    return (found[1].lower(), found[2], found[3]) if found else ("", "", "")
