"""The one place that decides which attribute names the conversation, and which values are no names at all."""

from __future__ import annotations

import functools
import re
from typing import Any

from otel_evals.dialects.decoding import decode, is_redacted
from otel_evals.dialects.markers import SESSION_KEYS

__all__ = ["METADATA_KEYS", "in_metadata", "rank_of", "session_rank", "session_value"]

_PLACEHOLDERS = frozenset(
    ("", "none", "null", "undefined", "unknown", "default", "n/a", "na", "-", "0", "false", "true", "nan",
     "session", "test",
     "anonymous", "{}", "[]", "string", "sessionid", "session_id", "conversation_id",
     "00000000-0000-0000-0000-000000000000")
)  # fmt: skip
"""Values that many conversations would share."""
_PER_CALL = re.compile(r"^(?:resp|chatcmpl|msg|run|cmpl|gen|call)[_-]", re.IGNORECASE)
"""Ids of one model call or run (`resp_…`): they differ within a conversation."""
_SUFFIX = re.compile(
    r"(?:^|[._-])(?:session|conversation|conv|thread|chat|dialog(?:ue)?)[._-]?(?:id|key)$", re.IGNORECASE
)
"""Spellings that no list foresaw: `app.conversationId`, `chat_session_id`, …"""
_PREFIXED = ("traceloop.association.properties.", "langsmith.metadata.", "mastra.metadata.", "metadata.",
             "ai.telemetry.metadata.",
             "ai.settings.context.", "langfuse.observation.metadata.", "langfuse.trace.metadata.", "gen_ai.",
             "app.")  # fmt: skip
METADATA_KEYS = (
    "metadata",
    "langfuse.trace.metadata",
    "langfuse.observation.metadata",
    "attributes.metadata",
    "mlflow.trace.metadata",
    "braintrust.metadata",
)
_METADATA_NAMES = ("session_id", "sessionId", "session.id", "conversation_id", "conversationId", "thread_id",
                   "threadId",
                   "langfuse_session_id", "mlflow.trace.session", "chat_id")  # fmt: skip
_RANK = {key: rank for rank, key in enumerate(SESSION_KEYS)}
_MAX_LENGTH = 512


def session_rank(key: str) -> int | None:
    """How deliberate a choice an attribute is as the session's name, smaller is better; None: it names no session."""
    rank = _RANK.get(key)
    if rank is None and key.startswith(_PREFIXED) and _SUFFIX.search(key):
        return len(_RANK)
    return rank


def in_metadata(key: str, raw: Any) -> list[tuple[int, str, str]]:
    """The session id inside an attribute that holds JSON metadata: at most one (rank, name, id)."""
    if isinstance(raw, str) and not any(name in raw for name in _METADATA_NAMES):
        return []
    inner = decode(raw)
    if not isinstance(inner, dict):
        return []
    out = []
    for offset, name in enumerate(_METADATA_NAMES):
        if (value := session_value(inner.get(name))) is not None:
            out.append((_RANK["metadata.sessionId"] + (0 if offset < 3 else 20), f"{key}.{name}", value))
    return out[:1]


def session_value(raw: Any) -> str | None:
    """A value as a session id; None where it is a placeholder, redacted, an id of one call, or no scalar."""
    if isinstance(raw, str):
        return _session_text(raw) if len(raw) <= _MAX_LENGTH else None
    if raw is None or isinstance(raw, (bool, float, list, dict, tuple)):
        return None
    return _session_text(str(raw))


@functools.lru_cache(maxsize=1_000)
def _session_text(text: str) -> str | None:
    text = text.strip()
    if len(text) > 1 and text[0] == '"' == text[-1]:
        text = text[1:-1].strip()
    if len(text) > _MAX_LENGTH or text.lower() in _PLACEHOLDERS or is_redacted(text) or _PER_CALL.match(text):
        return None
    if text[0] in "[{<" or "[redacted" in text.lower():
        return None
    return text


def rank_of(key: str) -> int:
    """How deliberate a choice of the application an attribute is; smaller is better. Configured ones: -1."""
    return _RANK.get(
        key, _RANK["metadata.sessionId"] if key.startswith(METADATA_KEYS) else len(_RANK) if _SUFFIX.search(key) else -1
    )
