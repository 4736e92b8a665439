"""A valid answer for whatever JSON schema a judge was asked with, and ways to spoil it."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["SPOILERS", "schema_of", "valid_answer"]

_CANARY = re.compile(r'"canary" (?:with the value|is) "(\w+)"')

Override = Any
"""A value, or a function from the request body to one."""


def schema_of(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The answer schema of a request: from `response_format`, the forced tool, or the text of the messages."""
    response_format = body.get("response_format") or {}
    if response_format.get("type") == "json_schema":
        schema = response_format["json_schema"].get("schema")
        return dict(schema) if schema else None
    for tool in body.get("tools") or ():
        return dict(tool["function"].get("parameters") or {})
    for message in reversed(body.get("messages") or ()):
        for found in _objects(_text(message)):
            if found.get("type") == "object" and "properties" in found:
                return found
    return None


def valid_answer(
    schema: Mapping[str, Any],
    overrides: Mapping[str, Override] | None = None,
    body: Mapping[str, Any] | None = None,
) -> Any:
    """The smallest answer that the schema accepts.

    Args:
        schema: JSON schema; `$ref` into `$defs` is followed.
        overrides: property name or dotted path → value (or function of the request body). A path wins over a name.
        body: the request, for overrides that are functions.
    """
    return _Builder(schema, {"canary": echoed_canary, **(overrides or {})}, body or {}).build(schema, ())


def echoed_canary(body: Mapping[str, Any]) -> str:
    """The canary that the last order of a judge prompt asks to echo; empty if it asks for none."""
    found = _CANARY.findall("\n".join(_text(message) for message in body.get("messages") or ()))
    return str(found[-1]) if found else ""


class _Builder:
    def __init__(self, root: Mapping[str, Any], overrides: Mapping[str, Override], body: Mapping[str, Any]) -> None:
        self._root = root
        self._overrides = overrides
        self._body = body

    def build(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> Any:
        for key in (".".join(path), path[-1] if path else ""):
            if key and key in self._overrides:
                value = self._overrides[key]
                return value(self._body) if callable(value) else copy.deepcopy(value)
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return next(value for value in schema["enum"] if value is not None)
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next(item for item in kind if item != "null")
        if kind == "object" or "properties" in schema:
            return {name: self.build(sub, (*path, name)) for name, sub in schema.get("properties", {}).items()}
        if kind == "array":
            return [self.build(schema.get("items", {}), (*path, "[]")) for _ in range(schema.get("minItems", 0))]
        if kind in ("number", "integer"):
            low, high = schema.get("minimum", 0), schema.get("maximum", 1)
            return low if kind == "integer" else round(low + 0.9 * (high - low), 3)
        if kind == "boolean":
            return False
        if kind == "null":
            return None
        return "As scripted."[: schema.get("maxLength", 100)]

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        if reference := schema.get("$ref"):
            target: Any = self._root
            for part in reference.removeprefix("#/").split("/"):
                target = target[part]
            return self._resolved(target)
        for union in ("anyOf", "oneOf"):
            if union in schema:
                options = [self._resolved(option) for option in schema[union]]
                return next((option for option in options if option.get("type") != "null"), options[0])
        if all_of := schema.get("allOf"):
            return {**schema, **self._resolved(all_of[0])}
        return schema


def _enum_places(schema: Mapping[str, Any], answer: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every value in the answer that the schema restricts to an enum."""
    builder = _Builder(schema, {}, {})

    def walk(sub: Mapping[str, Any], value: Any, container: Any, key: Any) -> Iterator[tuple[Any, Any]]:
        sub = builder._resolved(sub)
        if "enum" in sub and container is not None:
            yield container, key
        elif isinstance(value, dict):
            for name, part in sub.get("properties", {}).items():
                if name in value:
                    yield from walk(part, value[name], value, name)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                yield from walk(sub.get("items", {}), item, value, index)

    yield from walk(schema, answer, None, None)


def _on_labels(change: Callable[[Any], Any]) -> Callable[[Mapping[str, Any], Any], str]:
    def spoil(schema: Mapping[str, Any], answer: Any) -> str:
        for container, key in list(_enum_places(schema, answer)):
            container[key] = change(container[key])
        return json.dumps(answer)

    return spoil


def _missing_field(schema: Mapping[str, Any], answer: Any) -> str:
    places = list(_enum_places(schema, answer))
    container, key = places[-1] if places else (answer, list(answer)[-1])
    del container[key]
    return json.dumps(answer)


SPOILERS: dict[str, Callable[[Mapping[str, Any], Any], str]] = {
    "malformed": lambda schema, answer: json.dumps(answer)[:-1].replace(":", "", 1),
    "prose": lambda schema, answer: f"Sure! Here is my verdict:\n{json.dumps(answer)}\nI hope that helps.",
    "fenced": lambda schema, answer: f"```json\n{json.dumps(answer, indent=2)}\n```",
    "two_objects": lambda schema, answer: json.dumps(answer) + "\n" + json.dumps(answer),
    "raw_newlines": lambda schema, answer: json.dumps(answer).replace("As scripted.", "As\nscripted."),
    "wrong_label": _on_labels(lambda label: "no_such_label"),
    "wrong_case": _on_labels(lambda label: str(label).upper().replace("_", " ")),
    "null_label": _on_labels(lambda label: None),
    "list_label": _on_labels(lambda label: [label]),
    "missing_field": _missing_field,
}
"""Fault name → the spoilt text of a valid answer."""


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content or ""


def _objects(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    position = text.find("{")
    while position >= 0:
        try:
            value, position = decoder.raw_decode(text, position)
        except ValueError:
            position += 1
        else:
            if isinstance(value, dict):
                yield value
        position = text.find("{", position)
