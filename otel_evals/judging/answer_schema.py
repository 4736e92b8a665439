"""The JSON schema sent to judges: one object with the canary and one answer per evaluator, nothing optional.

References are inlined and titles dropped, because several providers accept neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from otel_evals.evaluators.protocol import Answer, Evaluator

__all__ = ["CANARY", "answer_schema", "combined_schema"]

CANARY = "canary"


def combined_schema(evaluators: Mapping[str, Evaluator], *, canary: bool = True) -> dict[str, Any]:
    """Schema of the answer to all these evaluators at once."""
    properties: dict[str, Any] = {CANARY: {"type": "string"}} if canary else {}
    properties |= {name: answer_schema(evaluator.answer) for name, evaluator in evaluators.items()}
    return _closed({"type": "object", "properties": properties})


@lru_cache(maxsize=256)
def answer_schema(answer: type[Answer]) -> dict[str, Any]:
    """Schema of one evaluator's answer. Shared: not to be changed."""
    schema = answer.model_json_schema()
    return _closed(_inlined(schema, schema.get("$defs", {})))


def _inlined(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inlined(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inlined(definitions[node["$ref"].rsplit("/", 1)[-1]], definitions)
    plain: dict[str, Any] = {}
    for key, value in node.items():
        if key == "properties":
            plain[key] = {name: _inlined(item, definitions) for name, item in value.items()}
        elif key not in ("$defs", "title", "default", "description"):
            plain[key] = _inlined(value, definitions)
    return _closed(plain) if plain.get("type") == "object" else plain


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "required": list(schema.get("properties", {})), "additionalProperties": False}
