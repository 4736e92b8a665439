"""Sampling rules: which sessions form a stratum, and at which rate the evaluators judge it.

Rules are tried in order; the first that matches names the stratum. What no rule matches is the stratum `default`.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from otel_evals.sampling.rate import Rate
from otel_evals.sessions.model import Session
from otel_evals.signals import SIGNAL_NAMES

__all__ = [
    "DEFAULT_RULE",
    "EVIDENCE_RULE",
    "EXPERIMENTS_RULE",
    "CompiledRule",
    "Match",
    "Rule",
    "check_rules",
    "compile_rule",
]

DEFAULT_RULE = "default"
"""The stratum of all sessions that no rule matches."""


def _one_or_more(value: Any) -> Any:
    """One item may be written without the brackets of a list."""
    return [value] if isinstance(value, (Mapping, BaseModel)) else value


def _patterns(value: Any) -> Any:
    """One pattern may be written without brackets, and numbers and booleans as such."""
    items = [value] if isinstance(value, (str, int, float)) else value
    if not isinstance(items, (list, tuple)):
        return value
    return [str(item) if isinstance(item, (int, float)) else item for item in items]


def _known_signal(value: tuple[str, ...]) -> tuple[str, ...]:
    if unknown := [name for name in value if name not in SIGNAL_NAMES]:
        raise ValueError(f"{unknown[0]!r} is no signal: give some of {', '.join(SIGNAL_NAMES)}")
    return value


Patterns: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_patterns)]
"""Alternatives; `*` stands for any text, and one such pattern has to fit the whole value."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Match(_Model):
    """Conditions that must all hold; within one condition any of its alternatives. Empty: every session."""

    service: Patterns = ()
    """`service.name`."""
    version: Patterns = ()
    """`service.version`."""
    environment: Patterns = ()
    agent: Patterns = ()
    """Any agent that took part."""
    model: Patterns = ()
    """Any model that the agents used."""
    tag: Patterns = ()
    attributes: dict[str, Patterns] = Field(default_factory=dict)
    """Attribute name to patterns; `*`: the attribute is there. All named attributes have to match."""
    signal: Patterns = ()
    """Any of these signals was found on the session."""
    min_turns: int | None = Field(default=None, ge=1)
    max_turns: int | None = Field(default=None, ge=1)
    min_duration: float | None = Field(default=None, ge=0)
    """Seconds from the first span's start to the last one's end."""
    max_duration: float | None = Field(default=None, ge=0)
    min_tokens: int | None = Field(default=None, ge=0)
    """Input and output tokens of the agents' own model calls; a session without a count never matches."""
    max_tokens: int | None = Field(default=None, ge=0)
    min_failed_tools: int | None = Field(default=None, ge=0)
    max_failed_tools: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _consistent(self) -> Match:
        _known_signal(self.signal)
        for name in ("turns", "duration", "tokens", "failed_tools"):
            low, high = getattr(self, f"min_{name}"), getattr(self, f"max_{name}")
            if low is not None and high is not None and low > high:
                raise ValueError(f"min_{name} {low} is above max_{name} {high}: nothing can match")
        return self


class Rule(_Model):
    """One stratum and its rates."""

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    """Appears in metrics as `otel_evals.sampling.rule`."""
    match: Annotated[tuple[Match, ...], BeforeValidator(_one_or_more)] = (Match(),)
    """One set of conditions, or a list of which any has to match."""
    rate: Rate | None = None
    """For every evaluator without a rate of its own in `rates`. None: the general rate."""
    rates: dict[str, Rate] = Field(default_factory=dict)
    """Rates per evaluator."""
    exclude: bool = False
    """Never judge these sessions; they are counted as `filtered` and no rate can bring them in."""
    priority: int = Field(default=0, ge=-100, le=100)
    """When the budget is short, strata with lower priority are thinned first."""

    @model_validator(mode="after")
    def _no_rate_for_excluded(self) -> Rule:
        if self.name == DEFAULT_RULE:
            raise ValueError(f"{DEFAULT_RULE!r} is what no rule matches; set the general rate, or choose another name")
        if self.exclude and (self.rate is not None or self.rates):
            raise ValueError(f"rule {self.name!r} excludes sessions and gives a rate: remove one of the two")
        return self


EXPERIMENTS_RULE = Rule(
    name="experiments",
    exclude=True,
    match=(
        Match(environment=("sdk-experiment", "experiment", "experiments")),
        Match(tag=("experiment", "experiments")),
        Match(attributes={"langfuse.environment": ("sdk-experiment",)}),
        Match(attributes={"langfuse.experiment.id": ("*",)}),
        Match(attributes={"otel_evals.experiment": ("*",)}),
    ),
)
"""Traffic of experiments and offline evaluations says nothing about production: excluded unless asked for."""

EVIDENCE_RULE = Rule(
    name="evidence",
    match=(Match(signal=("tool_error_unacknowledged", "judge_injection_suspected")),),
    rate=1.0,
    priority=10,
)
"""Part of the defaults: plain evidence of trouble is always judged."""


def check_rules(rules: Sequence[Rule], evaluators: Collection[str]) -> None:
    """Names are unique and evaluators known.

    Raises:
        ValueError: naming the rule, what is wrong and the remedy.
    """
    seen: set[str] = set()
    for rule in rules:
        if rule.name in seen:
            raise ValueError(f"two rules are named {rule.name!r}: give each a name of its own")
        seen.add(rule.name)
        if unknown := [name for name in rule.rates if name not in evaluators]:
            known = ", ".join(sorted(evaluators))
            raise ValueError(f"rule {rule.name!r}: {unknown[0]!r} is no evaluator here: give one of {known}")


# -- Matching --


class Condition(NamedTuple):
    """One thing to hold of one fact of the session."""

    fact: str
    """A key of `FACTS`, or `attribute:NAME`."""
    read: Callable[[Session, Collection[str]], Any]
    """The fact of a completed session with these signals."""
    test: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A rule made ready to match in a few µs."""

    name: str
    exclude: bool
    priority: int
    alternatives: tuple[tuple[Condition, ...], ...]

    def matches(self, session: Session, signals: Collection[str]) -> bool:
        """Whether the completed session belongs to this rule."""
        for conditions in self.alternatives:
            for _, read, test in conditions:
                if not test(read(session, signals)):
                    break
            else:
                return True
        return False

    def foresee(self, known: Mapping[str, Any]) -> bool | None:
        """Whether a session will match, judged from the facts known so far; None: it cannot be told yet.

        Args:
            known: fact name (`service`, `version`, `environment`, …, `attribute:NAME`) to its final value.
        """
        verdicts = [_foresee_all(conditions, known) for conditions in self.alternatives]
        if True in verdicts:
            return True
        return None if None in verdicts else False

    @property
    def attributes(self) -> frozenset[str]:
        """Span attributes that a session has to carry for this rule to be told."""
        facts = (condition.fact for conditions in self.alternatives for condition in conditions)
        return frozenset(fact.partition(":")[2] for fact in facts if fact.startswith("attribute:"))


def compile_rule(rule: Rule) -> CompiledRule:
    """Patterns compiled, conditions in the order of their cost."""
    alternatives = tuple(tuple(_conditions(match)) for match in rule.match)
    return CompiledRule(rule.name, rule.exclude, rule.priority, alternatives)


FACTS: Mapping[str, Callable[[Session, Collection[str]], Any]] = {
    "service": lambda session, _: (session.service_name,),
    "version": lambda session, _: (session.service_version,),
    "environment": lambda session, _: (session.environment,),
    "agent": lambda session, _: session.agents,
    "model": lambda session, _: session.models,
    "tag": lambda session, _: session.tags,
    "signal": lambda _, signals: signals,
    "turns": lambda session, _: len(session.turns),
    "duration": lambda session, _: (session.end_ns - session.start_ns) / 1e9,
    "tokens": lambda session, _: _tokens(session),
    "failed_tools": lambda session, _: len(session.failed_tools),
}
"""How each fact is read from a completed session; texts as a collection of alternatives."""

TEXTS = ("service", "version", "environment", "agent", "model", "tag", "signal")
NUMBERS = ("turns", "duration", "tokens", "failed_tools")


def _attribute(name: str) -> Callable[[Session, Collection[str]], Any]:
    return lambda session, _: _as_values(session.attributes.get(name))


def _tokens(session: Session) -> int | None:
    counts = (session.usage.input_tokens, session.usage.output_tokens)
    return None if counts == (None, None) else sum(count or 0 for count in counts)


def _conditions(match: Match) -> list[Condition]:
    texts = [Condition(name, FACTS[name], _any_fits(patterns)) for name in TEXTS if (patterns := getattr(match, name))]
    attributes = [
        Condition(f"attribute:{name}", _attribute(name), _any_fits(patterns))
        for name, patterns in match.attributes.items()
    ]
    numbers = [
        Condition(name, FACTS[name], _within(low, high))
        for name in NUMBERS
        for low, high in [(getattr(match, f"min_{name}"), getattr(match, f"max_{name}"))]
        if (low, high) != (None, None)
    ]
    return [*texts, *attributes, *numbers]


def _any_fits(patterns: Sequence[str]) -> Callable[[Any], bool]:
    exact = frozenset(pattern for pattern in patterns if not _WILD.search(pattern))
    wild = [fnmatch.translate(pattern) for pattern in patterns if _WILD.search(pattern)]
    if not wild:
        return lambda values: not exact.isdisjoint(values)
    fits = re.compile("|".join(wild)).match
    return lambda values: (
        not exact.isdisjoint(values) or any(value is not None and fits(value) is not None for value in values)
    )


_WILD = re.compile(r"[*?\[]")


def _within(low: float | None, high: float | None) -> Callable[[Any], bool]:
    least, most = -float("inf") if low is None else low, float("inf") if high is None else high
    return lambda value: value is not None and least <= value <= most


_UNKNOWN = object()


def _foresee_all(conditions: Sequence[Condition], known: Mapping[str, Any]) -> bool | None:
    told = [
        condition.test(value if condition.fact in NUMBERS else _as_values(value))
        for condition in conditions
        for value in [known.get(condition.fact, _UNKNOWN)]
        if value is not _UNKNOWN
    ]
    if not all(told):
        return False
    return True if len(told) == len(conditions) else None


def _as_values(value: Any) -> tuple[str | None, ...]:
    """Any value as texts to match, so that patterns need not know of types."""
    if value is None or isinstance(value, str):
        return (value,)
    return tuple(map(str, value)) if isinstance(value, (list, tuple)) else (str(value),)
