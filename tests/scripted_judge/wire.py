"""Chat completions on the wire: one JSON object, or server-sent events."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Completion", "completion_events", "completion_json"]

_ids = itertools.count(1)


@dataclass(frozen=True)
class Completion:
    """What the assistant says, before it is put into JSON."""

    text: str | None
    tool_calls: tuple[tuple[str, Any], ...] = ()
    finish_reason: str = "stop"
    refusal: str | None = None


def completion_json(body: Mapping[str, Any], completion: Completion, cached_tokens: int) -> dict[str, Any]:
    """The reply to a request without streaming."""
    message: dict[str, Any] = {"role": "assistant", "content": completion.text, "refusal": completion.refusal}
    if completion.tool_calls:
        message["tool_calls"] = _tool_calls(completion)
    return {
        **_head(body, "chat.completion"),
        "choices": [{"index": 0, "message": message, "finish_reason": completion.finish_reason, "logprobs": None}],
        "usage": _usage(body, completion, cached_tokens),
    }


def completion_events(body: Mapping[str, Any], completion: Completion, cached_tokens: int) -> Iterator[str]:
    """The reply as server-sent events."""
    head = _head(body, "chat.completion.chunk")

    def event(delta: dict[str, Any], finish_reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return _line({**head, "choices": [choice], "usage": None})

    yield event({"role": "assistant", "content": ""})
    text = completion.text or ""
    for start in range(0, len(text), 20):
        yield event({"content": text[start : start + 20]})
    for index, call in enumerate(_tool_calls(completion)):
        arguments = call["function"]["arguments"]
        first = {**call, "index": index, "function": {"name": call["function"]["name"], "arguments": ""}}
        yield event({"tool_calls": [first]})
        yield event({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]})
    if completion.refusal:
        yield event({"refusal": completion.refusal})
    yield event({}, completion.finish_reason)
    if (body.get("stream_options") or {}).get("include_usage"):
        yield _line({**head, "choices": [], "usage": _usage(body, completion, cached_tokens)})
    yield "data: [DONE]\n\n"


def _head(body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-scripted-{next(_ids)}",
        "object": kind,
        "created": 1_700_000_000,
        "model": body.get("model", "scripted"),
        "system_fingerprint": "fp_scripted",
    }


def _tool_calls(completion: Completion) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{next(_ids)}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
            },
        }
        for name, arguments in completion.tool_calls
    ]


def _usage(body: Mapping[str, Any], completion: Completion, cached_tokens: int) -> dict[str, Any]:
    prompt = len(json.dumps(body.get("messages", []))) // 4
    output = len(completion.text or "") // 4 + sum(len(json.dumps(args)) // 4 for _, args in completion.tool_calls)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": min(cached_tokens, prompt), "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _line(payload: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(payload)}\n\n"
