"""From a judge's text to validated answers: strictly first, then leniently, never by guessing a label.

Lenient means: fences and prose around the object, raw newlines, trailing commas, several objects, enum values
in another case, a list of one where one value is due. What is still wrong afterwards is named, so that it can
be asked again once.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from otel_evals.evaluators.protocol import Answer, Evaluator
from otel_evals.judging.answer_schema import CANARY, answer_schema

__all__ = ["Parsed", "parse_answers"]

_MAX_CHARS = 400_000
_MAX_OBJECTS = 40
_MAX_LITERAL = 20_000
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_NOT_WORD = re.compile(r"[\W_]+")
_INTEGER = re.compile(r"-?\d+")


@dataclass
class Parsed:
    """What could be read from one text."""

    answers: dict[str, Answer] = field(default_factory=dict)
    problems: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Evaluator to what is wrong with its answer, in words for the judge."""
    error_types: dict[str, str] = field(default_factory=dict)
    """The same as an `error.type`: `empty_answer`, `malformed_answer`, `canary_mismatch`, `missing_field`,
    `unknown_label`."""

    def refuse(self, name: str, error_type: str, *problems: str) -> None:
        self.problems[name] = problems
        self.error_types[name] = error_type


def parse_answers(text: str, evaluators: Mapping[str, Evaluator], canary: str | None) -> Parsed:
    """All answers that the text holds. `canary` is None for models that read the session itself."""
    objects = list(_objects(text[:_MAX_CHARS]))
    if not objects:
        kind = "malformed_answer" if text.strip() else "empty_answer"
        return _refused(evaluators, kind, "the text holds no complete JSON object")
    if canary is not None:
        echoed = [o for o in objects if str(_get(o, CANARY, "")).strip() == canary]
        if not echoed:
            kind = "canary_mismatch" if any(_get(o, CANARY) for o in objects) else "malformed_answer"
            return _refused(evaluators, kind, "`canary` is not the value that was asked for")
        objects = echoed
    parsed = Parsed()
    for name, evaluator in evaluators.items():
        _parse_one(name, evaluator, objects, parsed, alone=len(evaluators) == 1)
    return parsed


def _parse_one(name: str, evaluator: Evaluator, objects: list[dict[str, Any]], parsed: Parsed, *, alone: bool) -> None:
    """Of several objects the last usable one counts: a judge that writes two corrects itself."""
    refusal: tuple[str, tuple[str, ...]] | None = None
    schema = answer_schema(evaluator.answer)
    for candidate in reversed(objects):
        value = _get(candidate, name)
        if value is None and alone and "label" in {_word(key) for key in candidate}:
            value = candidate  # asked one question only, some models leave the wrapper out
        if value is None:
            continue
        try:
            parsed.answers[name] = evaluator.answer.model_validate(value)
            return
        except ValidationError:
            pass
        try:
            parsed.answers[name] = evaluator.answer.model_validate(_coerced(value, schema))
            return
        except (ValidationError, RecursionError) as error:
            refusal = refusal or _described(error)
    kind, problems = refusal or ("missing_field", ("its answer is missing",))
    parsed.refuse(name, kind, *problems)


def _refused(evaluators: Mapping[str, Evaluator], error_type: str, problem: str) -> Parsed:
    parsed = Parsed()
    for name in evaluators:
        parsed.refuse(name, error_type, problem)
    return parsed


def _described(error: ValidationError | RecursionError) -> tuple[str, tuple[str, ...]]:
    """An `error.type` and sentences that name the fields but repeat nothing of what stood in them."""
    if isinstance(error, RecursionError):
        return "malformed_answer", ("it is nested too deeply",)
    kind = "malformed_answer"
    problems = []
    for item in error.errors(include_url=False, include_input=False)[:8]:
        where = ".".join(str(part) for part in item["loc"]) or "answer"
        problems.append(f"`{where}`: {item['msg']}")
        if item["type"] == "literal_error":
            kind = "unknown_label"
        elif item["type"] == "missing" and kind == "malformed_answer":
            kind = "missing_field"
        elif str(item["loc"][-1:]) == "('label',)":
            kind = "unknown_label"
    return kind, tuple(problems)


# --- Finding objects ---


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """All JSON objects in a text that are not part of another one, in order; then those that need mending."""
    whole = yield from _decoded(text)
    if whole:
        return
    without_commas = _TRAILING_COMMA.sub(r"\1", text)
    if without_commas != text:
        yield from _decoded(without_commas)
    start, end = text.find("{"), text.rfind("}")
    if 0 <= start < end <= start + _MAX_LITERAL:
        try:
            value = ast.literal_eval(text[start : end + 1])  # single quotes, None, True
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return
        if isinstance(value, dict):
            yield value


def _decoded(text: str) -> Generator[dict[str, Any], None, bool]:
    """Yields the objects; returns whether every brace outside of them was only prose, i.e. nothing failed."""
    decoder = json.JSONDecoder(strict=False)  # raw newlines inside strings are common
    position = text.find("{")
    whole = position >= 0
    for _ in range(_MAX_OBJECTS):
        if position < 0:
            break
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            whole, end = False, position + 1
        else:
            yield value
        position = text.find("{", end)
    return whole


# --- Coercion ---


def _word(text: Any) -> str:
    return _NOT_WORD.sub("", str(text)).casefold()


def _get(value: Mapping[str, Any], key: str, default: Any = None) -> Any:
    """A key as given, or written in another case or with other separators."""
    if key in value:
        return value[key]
    wanted = _word(key)
    return next((item for name, item in value.items() if _word(name) == wanted), default)


def _coerced(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value in the schema's shape where only the form differs; what is unclear is returned as it is."""
    if isinstance(value, list) and len(value) == 1 and schema.get("type") != "array":
        value = value[0]
    if "enum" in schema:
        return next((e for e in schema["enum"] if isinstance(value, str) and _word(e) == _word(value)), value)
    return _COERCE.get(schema.get("type", ""), _unchanged)(value, schema)


def _unchanged(value: Any, schema: Mapping[str, Any]) -> Any:
    return value


def _object(value: Any, schema: Mapping[str, Any]) -> Any:
    if not isinstance(value, Mapping):
        return value
    missing = object()
    found = {name: _get(value, name, missing) for name in schema["properties"]}
    return {n: _coerced(v, schema["properties"][n]) for n, v in found.items() if v is not missing}


def _array(value: Any, schema: Mapping[str, Any]) -> Any:
    if value is None:
        return []
    items = value if isinstance(value, list) else [value]
    return [_coerced(item, schema["items"]) for item in items]


def _string(value: Any, schema: Mapping[str, Any]) -> Any:
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    return str(value) if isinstance(value, (int, float)) else value


def _integer(value: Any, schema: Mapping[str, Any]) -> Any:
    numbers = _INTEGER.findall(value) if isinstance(value, str) else ()
    return int(numbers[0]) if len(numbers) == 1 else value


def _boolean(value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        return {"true": True, "yes": True, "false": False, "no": False}.get(value.strip().lower(), value)
    return value


_COERCE = {"object": _object, "array": _array, "string": _string, "integer": _integer, "boolean": _boolean}
