"""Values as exporters wrap them: JSON in strings, JSON in JSON, Python `repr`, redaction placeholders."""

from __future__ import annotations

import ast
import functools
import re
from typing import Any

import orjson

__all__ = [
    "LONGEST_REDACTED",
    "decode",
    "decode_repr",
    "fold",
    "is_cut_dump",
    "is_object_repr",
    "is_redacted",
    "lacks_keys",
    "plain_text",
    "serialisable",
    "valid_text",
]

MAX_DEPTH = 3
"""Levels of JSON in JSON that real exporters produce."""
MAX_NESTING = 100
"""Levels of a value that are kept: beyond, nobody reads it and serialisers recurse."""
SHORT_REPR = 4_000
"""Characters up to which the last parsed `repr`s are remembered: wrappers repeat them."""
MAX_REPR = 200_000
"""Characters of Python `repr` that are worth parsing: `literal_eval` is slow."""
LONGEST_REDACTED = 120
"""Characters from which a text is no placeholder."""

_OPENERS = ("{", "[", '"')
_OPENING = frozenset(_OPENERS)
_CONSTRUCTOR = re.compile(r"^\s*[A-Z]\w*\(\w+=.*\)\s*$", re.DOTALL)
_PRINTED = re.compile(r"\w+=(?:None|True|False|-?\d|['\"\[{<]|\w+\()")
_NEXT_FIELD = re.compile(r" \w+=")
_FIELD = re.compile(
    r""" (\w+)=('[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*"|None|True|False|-?[\d.]+)(?= \w+=|$)""",
    re.DOTALL,
)
_CONSTANTS = {"None": None, "True": True, "False": False}
_ENUM = re.compile(r"<\w+(?:\.\w+)*: ('[^']*'|\"[^\"]*\"|-?\d+)>")
_REPR_OPENERS = ("{'", "[{'", "['", "[{}", "({", "[(", "{}", "[]")
_REDACTED = re.compile(
    r"^[\W_]*(?:redacted(?:[ _-]by[ _-][\w.-]+)?|<?elided>?|scrubbed(?: due to [^\]]*)?|filtered|hidden|masked|omitted|"
    r"content[ _-](?:hidden|redacted|not captured|omitted))[\W_]*$",
    re.IGNORECASE,
)
_CUT = re.compile(r"\[(?:max ?depth|circular|array|truncated|object(?: \w+)?)\]", re.IGNORECASE)
"""What serialisers put in place of what they do not follow."""
_BEGINNINGS = {
    **dict.fromkeys("rR", "eE"),
    **dict.fromkeys("eE", "lL"),
    **dict.fromkeys("sS", "cC"),
    **dict.fromkeys("cCoO", "oOmM"),
    **dict.fromkeys("fFhH", "iIİı"),
    **dict.fromkeys("mM", "aA"),
}
"""First letter → second letters of the words in `_REDACTED`: no other text need be matched."""
_AROUND = "[]{}<>()\"'*_-#. "


def decode(value: Any) -> Any:
    """The object inside a string, through several levels; the value itself where it holds none."""
    if not isinstance(value, str) or not value or (value[0] not in _OPENING and not value[0].isspace()):
        return value
    for _ in range(MAX_DEPTH):
        if not isinstance(value, str) or (value[:1] not in _OPENING and not value.lstrip().startswith(_OPENERS)):
            return value
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            inner = _from_repr(value)
            if inner is value:
                return value
            value = inner
        except RecursionError:
            return value
    return value


def _from_repr(text: str) -> Any:
    """A Python literal; the text itself where it is none, or a long one."""
    if text.lstrip().startswith(_REPR_OPENERS) and len(text) <= MAX_REPR:
        return _literal(text) if len(text) <= SHORT_REPR else _literal.__wrapped__(text)
    return text


_DUMP = re.compile(r'\s*(?:\{"(?:messages|input|output|state|values)": ?[\[{]|\[?\{"(?:lc|role|type)": ?["\d])')
CUT_FROM = 500
"""Characters from which a text may have been cut by an exporter."""


def is_cut_dump(text: str) -> bool:
    """Whether a text begins as a dump of messages does but is no JSON: cut by an exporter, and nobody's words."""
    return len(text) >= CUT_FROM and _DUMP.match(text) is not None and isinstance(decode(text), str)


def lacks_keys(text: str, *keys: str) -> bool:
    """Whether a text that begins as JSON surely holds none of some keys, so that it need not be parsed for them."""
    if (text[:2] != '{"' and text[:3] != '[{"') or "\\" in text:
        return False
    for key in keys:  # noqa: SIM110 — a generator costs more than the search
        if key in text:
            return False
    return True


@functools.lru_cache(maxsize=256)
def _literal(text: str) -> Any:
    """A Python literal; the text itself where it is none. Never changed by callers."""
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


def decode_repr(text: str) -> Any:
    """The data in the `repr` of an object: `ChatMessage(role='user', …)` → its keyword arguments as a dict.

    The class name is kept under `__class__`; `role='user' content='…'`, as pydantic prints models, is read too.
    Returns the text itself where it is no such thing.
    """
    if len(text) > MAX_REPR:
        return text
    if _CONSTRUCTOR.match(text) is None:
        first = _PRINTED.match(text)
        return text if first is None or _NEXT_FIELD.search(text, first.end()) is None else _printed_model(text)
    return _constructed(text) if len(text) <= SHORT_REPR else _constructed.__wrapped__(text)


@functools.lru_cache(maxsize=256)
def _constructed(text: str) -> Any:
    """The data in the `repr` of an object; the text itself where it is none. Never changed by callers."""
    try:
        tree = ast.parse(_ENUM.sub(r"\1", text.strip()), mode="eval")
        return _data(tree.body, 0)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


def _printed_model(text: str) -> dict[str, Any]:
    """The fields of a printed pydantic model that are plain literals."""
    fields: dict[str, Any] = {}
    for name, value in _FIELD.findall(" " + text):
        if value[0] in "'\"" and "\\" not in value and value.isprintable():
            fields.setdefault(name, value[1:-1])
            continue
        if value in _CONSTANTS:
            fields.setdefault(name, _CONSTANTS[value])
            continue
        try:
            fields.setdefault(name, ast.literal_eval(value))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return fields


def _data(node: ast.expr, depth: int) -> Any:
    """Literals and constructor calls as plain data; anything else is refused.

    Raises:
        ValueError: neither a literal nor a constructor.
    """
    if depth > 60:
        raise ValueError("nested too deeply")
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        fields = {word.arg.lstrip("_"): _data(word.value, depth + 1) for word in node.keywords if word.arg}
        if node.args and not fields:
            return _data(node.args[0], depth + 1)
        return {"__class__": name, **fields}
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [_data(item, depth + 1) for item in node.elts]
    if isinstance(node, ast.Dict):
        keys = [_data(key, depth + 1) if key is not None else None for key in node.keys]
        return {str(key): _data(value, depth + 1) for key, value in zip(keys, node.values, strict=True)}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _data(node.operand, depth + 1)
        return -value if isinstance(value, (int, float)) else value
    if isinstance(node, ast.Name):
        return None
    raise ValueError("no literal")


def is_redacted(value: Any) -> bool:
    """Whether a string stands where content was removed: `[REDACTED]`, `[Scrubbed due to 'session']`, …"""
    if not isinstance(value, str) or not 4 < len(value) < LONGEST_REDACTED:
        return False
    first = value[0]
    if first.isalnum():
        if first not in _BEGINNINGS or value[1] not in _BEGINNINGS[first]:
            return False
    elif first == "[" and _CUT.fullmatch(value) is not None:
        return True
    else:
        start = value.lstrip(_AROUND)
        first = start[:1]
        if first in _BEGINNINGS:
            if start[1:2] not in _BEGINNINGS[first]:
                return False
        elif first.isalnum() and first.isascii():
            return False
    return _REDACTED.match(value) is not None


_ADDRESS = re.compile(r"<[\w.]+(?: [\w.]+)* (?:object )?at 0x[0-9a-f]+>|<[\w.]+ object>")
_CONSTRUCTED = re.compile(r"[A-Z]\w*\((?:\w+=|\))")


def is_object_repr(text: str) -> bool:
    """Whether a text is the `repr` of some Python object, perhaps cut short: nobody said that."""
    text = text.strip()
    if text[:1] == "<":
        return _ADDRESS.fullmatch(text) is not None
    return text.endswith((")", "...")) and _CONSTRUCTED.match(text) is not None


def fold(text: str | None) -> str:
    """White space folded, for comparing texts that travelled different ways."""
    if not text:
        return ""
    if text.isprintable() and "  " not in text and text[0] != " " and text[-1] != " ":
        return text  # of all white space only the space is printable
    return " ".join(text.split())


def plain_text(value: Any) -> str:
    """A value as a person would read it: text as it is, everything else as compact JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except (orjson.JSONEncodeError, TypeError, ValueError, RecursionError):
        return ""


def valid_text(text: str) -> str:
    """Text that can be written as UTF-8: lone surrogates, which Python strings may hold, become question marks."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def serialisable(value: Any, depth: int = 0) -> Any:
    """A value as JSON can hold it, for what applications and frameworks put into arguments and results."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if depth > MAX_NESTING:
        return "…"
    if isinstance(value, dict):
        return {valid_text(str(key)): serialisable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [serialisable(item, depth + 1) for item in value]
    return valid_text(str(value))
