"""The one place where personal data and secrets are taken out, before the judge and on what it says.

Equal values get equal placeholders (`<EMAIL_1>`) within a session, so that a judge can still follow who said
what. If anything here fails, the session is not judged: it fails closed.

Sources of the patterns: RFC 5321 (e-mail lengths), ITU-T E.164 (phone numbers), ISO/IEC 7812-1 (card numbers,
Luhn), ISO 13616 (IBAN, mod 97), RFC 7519 (JWT), RFC 7468 (PEM), RFC 6750 (bearer tokens), and the
vendors' own documentation of their key prefixes.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from otel_evals.judging.national_ids import NATIONAL_IDS
from otel_evals.sessions.model import Session, ToolCall, ToolFailure, Turn

__all__ = ["Redaction", "RedactionError", "Redactor"]

_MAX_DEPTH = 40
_HEAD, _TAIL = 40_000, 20_000
"""Characters that are kept of a long text; more than twice of what a transcript shows."""


class RedactionError(Exception):
    """Redaction failed. The message holds no content."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of value to take out."""

    name: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...] = ()
    """The pattern is only tried on texts whose lower case holds one of these, which is much cheaper to find out."""
    accept: Callable[[str], str | None] | None = None
    """From a match to the part that really is one, or None."""
    digits: int = 0
    """Digits, in groups or not, that a text has to hold for the pattern to be tried: 0, 3 or 9."""
    built_in: bool = True


# Visa, Mastercard (two ranges), American Express, Diners, JCB, Discover and UnionPay, Maestro.
_ISSUED = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[68]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}|6(?:011|5\d\d|4[4-9]\d|2\d\d)\d{12,15}"
    r"|(?:50|5[6-8]|6\d)\d{11,17}"
)


def _card(text: str) -> str | None:
    number = re.sub(r"\D", "", text)
    if not _ISSUED.fullmatch(number):
        return None
    digits = [int(c) for c in number]
    doubled = (2 * d - 9 if d > 4 else 2 * d for d in digits[-2::-2])
    return text if (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0 else None


def _iban(text: str) -> str | None:
    """The longest beginning, in whole groups, that passes the check: capitals may follow a number in a sentence."""
    groups = text.split(" ")
    while groups:
        compact = "".join(groups)
        if 15 <= len(compact) <= 34 and int("".join(str(int(c, 36)) for c in compact[4:] + compact[:4])) % 97 == 1:
            return " ".join(groups)
        groups.pop()
    return None


def _ip(text: str) -> str | None:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return None
    return text if text not in ("::", "0.0.0.0") else None


def _phone(text: str) -> str | None:
    return text if 8 <= sum(c.isdigit() for c in text) <= 15 else None


def _if(check: Callable[[str], bool]) -> Callable[[str], str | None]:
    return lambda text: text if check(text) else None


def _national_phone(text: str) -> str | None:
    return text if sum(c.isdigit() for c in text) >= 9 else None


_SECRET_WORDS = (
    r"pass(?:word|wd|phrase)?|pwd|secret|api[_-]?key|apikey|access[_-]?key|access[_-]?token|auth[_-]?token|"
    r"refresh[_-]?token|client[_-]?secret|private[_-]?key|credential"
)
_SECRET_KEY = re.compile(rf"(?i)(?:^|[_\-.])(?:{_SECRET_WORDS}|authorization|token)s?$")

_GIT_HINTS = ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-")
_KINDS = (
    _Kind(
        "SECRET",
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)", re.S
        ),
        ("private key",),
    ),
    _Kind("SECRET", re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), ("eyj",)),
    _Kind(
        "SECRET",
        re.compile(r"\b(?:sk|pk|rk|gsk|xai|whsec|shpat|dop_v1)[-_][\w-]{16,}"),
        ("sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "xai-", "xai_", "whsec", "shpat", "dop_v1"),
    ),
    _Kind("SECRET", re.compile(r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"), ("akia", "asia", "abia", "acca")),
    _Kind("SECRET", re.compile(r"\b(?:gh[pousr]_\w{30,}|github_pat_\w{22,}|glpat-[\w-]{18,})"), _GIT_HINTS),
    _Kind("SECRET", re.compile(r"\b(?:xox[abeoprs]|xapp)-[\w-]{10,}"), ("xox", "xapp")),
    _Kind("SECRET", re.compile(r"\b(?:AIza[\w-]{35}|ya29\.[\w-]{20,})"), ("aiza", "ya29.")),
    _Kind(
        "SECRET",
        re.compile(r"\b(?:hf_\w{30,}|npm_\w{30,}|pypi-[\w-]{50,}|SG\.[\w-]{16,}\.[\w-]{16,})"),
        ("hf_", "npm_", "pypi-", "sg."),
    ),
    _Kind(
        "SECRET",
        re.compile(r"(?i)\b(?:bearer|basic|token)\s+(?=\S*\d)(?P<value>[\w.~+/=-]{16,})"),
        ("bearer", "basic", "token"),
    ),
    _Kind("SECRET", re.compile(r"(?i)://[^\s/:@]{0,100}:(?P<value>[^\s/@]{1,200})@"), ("://",)),
    _Kind(
        "SECRET",
        re.compile(
            rf"(?i)(?:{_SECRET_WORDS})[\"']?\s{{0,3}}(?:[:=]|\bis\b(?=\s*\S*\d))\s{{0,3}}[\"']?(?P<value>[^\s\"',;{{}}<>]{{4,}})"
        ),
        ("password", "passwd", "passphrase", "pwd", "secret", "key", "token", "credential"),
    ),
    _Kind("EMAIL", re.compile(r"(?<![\w.%+-])[\w.%+'-]{1,64}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}"), ("@",)),
    _Kind("IBAN", re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b"), (), _iban, digits=3),
    _Kind("CARD", re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])"), (), _card, digits=9),
    *(_Kind("NATIONAL_ID", form, (), _if(check), digits) for form, digits, check in NATIONAL_IDS),
    _Kind("IP", re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)"), (".",), _ip, digits=3),
    _Kind("IP", re.compile(r"(?<![\w:.])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:])"), (":",), _ip),
    _Kind("PHONE", re.compile(r"(?<![\w.,/:+-])(?:\+|00)[1-9][\d ()./-]{6,18}\d(?!\w)"), ("+", "00"), _phone, digits=9),
    _Kind("PHONE", re.compile(r"(?<![\w.,/:+-])(?:\([2-9]\d\d\) ?|[2-9]\d\d[ .-])\d{3}[ .-]\d{4}(?![\w-])"), digits=9),
    _Kind(
        "PHONE",
        re.compile(r"(?<![\w.,/:+-])0\d{1,4}[ /-]\d{3,4}[ -]?\d{2,5}(?:[ -]?\d{2,4})?(?![\w-])"),
        (),
        _national_phone,
        digits=9,
    ),
)
_SHORTEST = 8
"""No built-in pattern matches fewer characters without three digits in them."""
_NAME = re.compile(r"[a-z_]{1,40}")
"""Keys and labels, such as `failure_rate`: by far the most texts there are."""
_THREE_DIGITS = re.compile(r"(?:\d[^\d]{0,3}){3}")
_NINE_DIGITS = re.compile(r"(?:\d[ .()/+-]{0,2}){9}")


def _digits(text: str) -> int:
    """Class of a text by its digits: 0, 3 or 9. Most texts can be told to hold no number by one search."""
    if not _THREE_DIGITS.search(text):
        return 0
    return 9 if _NINE_DIGITS.search(text) else 3


class Redactor:
    """What is taken out, decided once; `for_session` gives the numbering of one session."""

    def __init__(
        self,
        patterns: Mapping[str, str] | None = None,
        custom: Callable[[str], str] | None = None,
        *,
        built_in: bool = True,
    ) -> None:
        """What to take out.

        Args:
            patterns: Further regular expressions by the name of their placeholder, e.g. `{"ORDER":
            r"O-\\d+"}`. A group named `value` limits what is replaced.
            custom: Called with every distinct text of a session after the patterns; returns the text to use.
            built_in: False leaves only the patterns and the callable given here.

        Raises:
            ValueError: a pattern is no regular expression.
        """
        self._kinds = (*_user_kinds(patterns or {}), *(_KINDS if built_in else ()))
        self._custom = custom
        self._secret_keys = built_in

    def for_session(self) -> Redaction:
        """A fresh numbering of placeholders."""
        return Redaction(self._kinds, self._custom, self._secret_keys)


class Redaction:
    """Redacts one session and what is said about it."""

    def __init__(self, kinds: Sequence[_Kind], custom: Callable[[str], str] | None, secret_keys: bool) -> None:
        self._kinds = kinds
        self._own_kinds = [kind for kind in kinds if not kind.built_in]
        self._custom = custom
        self._secret_keys = secret_keys
        self._done: dict[str, str] = {}
        """Texts that were redacted already: keys, labels and quotes come many times in a session."""
        self._placeholders: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    def session(self, session: Session) -> Session:
        """The session with all its content redacted; ids and times stay.

        Raises:
            RedactionError: something could not be redacted; the session must not leave.
        """
        try:
            return session.model_copy(
                update={
                    "turns": tuple(self._turn(turn) for turn in session.turns),
                    "system_prompt": self._optional(session.system_prompt),
                    "goal": self._optional(session.goal),
                }
            )
        except RedactionError:
            raise
        except Exception as error:  # fails closed, whatever the user's callable or odd data raised
            raise RedactionError(type(error).__name__) from None

    def value(self, value: Any) -> Any:
        """Text, or data with text anywhere in it.

        Raises:
            RedactionError: it could not be redacted.
        """
        try:
            return self._value(value, 0)
        except RedactionError:
            raise
        except Exception as error:  # as above
            raise RedactionError(type(error).__name__) from None

    # --- parts of a session
    # -----------------------------------------------------------------------------------

    def _turn(self, turn: Turn) -> Turn:
        return turn.model_copy(
            update={
                "user": self._optional(turn.user),
                "agent": self._optional(turn.agent),
                "interim": tuple(map(self._text, turn.interim)),
                "tool_calls": tuple(map(self._tool_call, turn.tool_calls)),
                "error": self._failure(turn.error),
            }
        )

    def _tool_call(self, call: ToolCall) -> ToolCall:
        return call.model_copy(
            update={
                "arguments": self._value(call.arguments, 0),
                "result": self._value(call.result, 0),
                "error": self._failure(call.error),
            }
        )

    def _failure(self, failure: ToolFailure | None) -> ToolFailure | None:
        return failure and failure.model_copy(update={"message": self._optional(failure.message)})

    # --- values
    # -----------------------------------------------------------------------------------------------

    def _optional(self, text: str | None) -> str | None:
        return text if text is None else self._text(text)

    def _value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if value is None or isinstance(value, (bool, float)):
            return value
        if isinstance(value, int):
            text = str(value)
            return value if len(text) < 8 or self._text(text) == text else self._text(text)
        if depth > _MAX_DEPTH:
            return "<TOO_DEEP>"
        if isinstance(value, Mapping):
            return {self._key(k): self._entry(k, v, depth + 1) for k, v in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self._value(item, depth + 1) for item in value]
        if isinstance(value, (bytes, bytearray)):
            return "<BYTES>"
        return self._text(str(value))

    def _key(self, key: Any) -> str:
        return self._text(str(key))

    def _entry(self, key: Any, value: Any, depth: int) -> Any:
        """`{"password": "x"}` gives no pattern a chance, so secrets are also known by their key."""
        if self._secret_keys and isinstance(value, str) and value and _SECRET_KEY.search(str(key)):
            return self._placeholder("SECRET", value)
        return self._value(value, depth)

    def _text(self, text: str) -> str:
        done = self._done.get(text)
        if done is None:
            done = self._done[text] = self._redacted(text)
        return done

    def _redacted(self, text: str) -> str:
        if len(text) > _HEAD + _TAIL:
            # Nobody is shown more than that of one text, and a megabyte takes patterns a tenth of a second.
            # The cut may halve a secret, but far from the parts that the transcript shows.
            text = f"{text[:_HEAD]} […{len(text) - _HEAD - _TAIL} characters left out…] {text[-_TAIL:]}"
        lower = text.lower()
        named = _NAME.fullmatch(text) is not None
        digits = 0 if named else _digits(text)
        plain = named or (not digits and len(text) < _SHORTEST)
        for kind in self._own_kinds if plain else self._kinds:
            if kind.digits > digits:
                continue
            if kind.hints and not _holds_one(lower, kind.hints):
                continue
            text = kind.pattern.sub(lambda match, kind=kind: self._replaced(kind, match), text)  # type: ignore[misc]
        if self._custom is not None:
            text = self._custom(text)
            if not isinstance(text, str):
                raise RedactionError("the redaction callable returned no text")
        return text

    def _replaced(self, kind: _Kind, match: re.Match[str]) -> str:
        whole = match.group()
        named = "value" in match.re.groupindex and match.group("value") is not None
        found: str | None = match.group("value") if named else whole
        if kind.accept is not None and found is not None:
            found = kind.accept(found)
        if not found or _PLACEHOLDER.fullmatch(found):
            return whole
        start = match.start("value") - match.start() if named else 0
        return whole[:start] + self._placeholder(kind.name, found) + whole[start + len(found) :]

    def _placeholder(self, kind: str, found: str) -> str:
        # Digits may be grouped in several ways and are the same number; elsewhere dots and dashes matter.
        same = re.sub(r"[\s().-]", "", found) if kind in _NUMBERS else found
        identity = (kind, same.casefold())
        if identity not in self._placeholders:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._placeholders[identity] = f"<{kind}_{self._counts[kind]}>"
        return self._placeholders[identity]


_NUMBERS = frozenset({"CARD", "IBAN", "PHONE", "NATIONAL_ID"})
_PLACEHOLDER = re.compile(r"<[A-Z_]+_\d+>")


def _holds_one(text: str, words: tuple[str, ...]) -> bool:
    for word in words:  # noqa: SIM110 - asked of every text, and any() takes twice as long
        if word in text:
            return True
    return False


def _user_kinds(patterns: Mapping[str, str]) -> list[_Kind]:
    kinds = []
    for name, pattern in patterns.items():
        try:
            kinds.append(_Kind(re.sub(r"\W", "_", name).upper(), re.compile(pattern), built_in=False))
        except re.error as error:
            raise ValueError(f"redaction pattern {name!r}: {error}; give a regular expression") from None
    return kinds
