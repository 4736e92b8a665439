"""Decides for each completed session which evaluators judge it, and with which probability each was picked.

All rates live in one immutable plan; changing a rate replaces the plan, so deciding never takes a lock.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from otel_evals.evaluation import JudgedSession
from otel_evals.sampling.draw import draw
from otel_evals.sampling.rate import check_rate
from otel_evals.sampling.rules import (
    DEFAULT_RULE,
    EVIDENCE_RULE,
    EXPERIMENTS_RULE,
    CompiledRule,
    Rule,
    check_rules,
    compile_rule,
)
from otel_evals.sessions.model import Session
from otel_evals.settings import Settings

if TYPE_CHECKING:
    from otel_evals.sampling.budget import Budget  # brings in sqlite3, which most processes never need

__all__ = ["Sampler", "SamplingDecision", "SamplingOutcome", "rules_of"]

logger = logging.getLogger(__name__)

SamplingOutcome: TypeAlias = Literal["chosen", "sampled_out", "filtered", "over_budget", "paused"]
"""`chosen`, or the ledger's word for why not."""


@dataclass(frozen=True, slots=True)
class SamplingDecision:
    """What was decided about one session, and how probable that was."""

    outcome: SamplingOutcome
    rule: str
    """The stratum: the first rule that matched."""
    probabilities: Mapping[str, float]
    """Evaluator name to inclusion probability, 0 to 1, for all evaluators."""
    chosen: Mapping[str, float]
    """The evaluators that judge this session; empty unless the outcome is `chosen`."""


@dataclass(frozen=True)
class _Plan:
    rules: tuple[CompiledRule, ...]
    """In the order in which they are tried; the last one matches everything."""
    rates: Mapping[str, Mapping[str, float]]
    """Rule to evaluator to rate, for the rules that do not exclude."""
    paused: bool = False

    @cached_property
    def highest(self) -> float:
        """The highest rate of all."""
        return self.ceiling({})

    def ceiling(self, known: Mapping[str, Any]) -> float:
        """The highest rate that a session with these facts can still get."""
        highest = 0.0
        for rule in self.rules:
            foreseen = rule.foresee(known)
            if foreseen is not False and not rule.exclude:
                highest = max(highest, *self.rates[rule.name].values())
            if foreseen:
                break
        return highest


class Sampler:
    """Rules and rates, applied to the draw of each session.

    Safe to use from any thread. Of two changes at the very same moment one may be lost; rates are set by
    people and pollers, who look at the result (`rates()`).
    """

    def __init__(self, settings: Settings, rules: Sequence[Rule] | None = None, budget: Budget | None = None) -> None:
        """Rates and salt from the settings; rules as given, or those that the settings imply (`rules_of`).

        With a budget every session that comes out as `chosen` has to be handed to `settle` or `release`.

        Raises:
            ValueError: two rules share a name, or a rule names an unknown evaluator.
        """
        self._evaluators = settings.evaluators
        self._salt = settings.salt
        self._budget = budget
        self._plan = self._planned(settings, rules_of(settings) if rules is None else rules, settings.paused)

    def decide(self, session: Session, signals: Collection[str] = ()) -> SamplingDecision:
        """Which evaluators judge this session. Takes some µs.

        Args:
            session: the completed session.
            signals: names of the deterministic signals found on it.
        """
        plan = self._plan
        rule = next(rule for rule in plan.rules if rule.matches(session, signals))
        if rule.exclude:
            return SamplingDecision("filtered", rule.name, dict.fromkeys(self._evaluators, 0.0), {})
        probabilities = plan.rates[rule.name]
        if session.chance < 1.0:  # content that was not kept cannot be judged: the early decision counts
            probabilities = {name: min(rate, session.chance) for name, rate in probabilities.items()}
        if plan.paused:
            return SamplingDecision("paused", rule.name, probabilities, {})
        position = draw(session.session_id, self._salt)
        wanted = max(probabilities.values())
        if self._budget is not None:
            factor = self._budget.factor(rule.name, rule.priority, wanted)
            probabilities = {name: factor * rate for name, rate in probabilities.items()}
        chosen = {name: rate for name, rate in probabilities.items() if position < rate}
        if chosen and (self._budget is None or self._budget.admit(_key(session))):
            return SamplingDecision("chosen", rule.name, probabilities, chosen)
        outcome: SamplingOutcome = "over_budget" if position < wanted else "sampled_out"
        return SamplingDecision(outcome, rule.name, probabilities, {})

    def settle(self, judged: JudgedSession) -> None:
        """Book what judging a chosen session took; also when it failed."""
        if self._budget is not None:
            judgement = judged.judgement
            tokens = judgement.input_tokens + judgement.output_tokens
            self._budget.settle(_key(judged.session), tokens, judgement.cost_usd)

    def release(self, session: Session) -> None:
        """Give back the place of a chosen session that will not be judged after all (queue full, expired)."""
        if self._budget is not None:
            self._budget.release(_key(session))

    def can_pick(self, session_id: str, known: Mapping[str, Any] = MappingProxyType({})) -> bool:
        """False when no rule can pick this session at present rates: its content need not be kept.

        Arguments as for `chance`.
        """
        return self.chance(session_id, known) > 0.0

    def chance(self, session_id: str, known: Mapping[str, Any] = MappingProxyType({})) -> float:
        """The highest probability that a session can still get at present rates; 0.0: no rule can pick it.

        Args:
            session_id: the session's id.
            known: facts that are final at the first span, e.g. `{"service": …, "version": …, "environment": …}`
                or `{"attribute:tenant": …}`; the more there are, the more can be told.
        """
        plan = self._plan
        position = draw(session_id, self._salt)
        if plan.paused or position >= plan.highest:
            return 0.0
        ceiling = plan.ceiling(known) if known else plan.highest
        return ceiling if position < ceiling else 0.0

    @property
    def attributes(self) -> frozenset[str]:
        """Span attributes that the rules look at; sessions have to keep them."""
        return frozenset().union(*(rule.attributes for rule in self._plan.rules))

    def rates(self) -> dict[tuple[str, str], float]:
        """The present rates, 0 to 1, by (rule, evaluator)."""
        return _flat(self._plan)

    def effective_rates(self) -> dict[tuple[str, str], float]:
        """The probabilities of the next decisions: the rates after thinning by the budget; 0 while paused."""
        plan = self._plan
        if plan.paused:
            return dict.fromkeys(_flat(plan), 0.0)
        factors = self._budget.factors() if self._budget is not None else {}
        return {key: rate * factors.get(key[0], 1.0) for key, rate in _flat(plan).items()}

    def set_rate(self, rate: float, evaluator: str | None = None, rule: str | None = None) -> None:
        """Change the rate of one evaluator (None: all) in one rule (None: all), from the next decision on.

        Excluded sessions stay excluded. Every change is logged (INFO) with the old and the new rate.

        Raises:
            ValueError: the rate is no number from 0 to 1, or there is no such evaluator or rule. The message
                names the value and the remedy; the old rates stay.
        """
        self.set_rates({(rule, evaluator): rate})

    def set_rates(self, changes: Mapping[tuple[str | None, str | None], float], source: str = "code") -> None:
        """Several changes at once, by (rule, evaluator) as in `set_rate`: all of them, or none if one is refused.

        More special ones win over more general ones, whatever their order. `source` is for the log line.
        """
        plan = self._plan
        rates = {rule: dict(of_rule) for rule, of_rule in plan.rates.items()}
        for (rule, evaluator), value in sorted(changes.items(), key=_generality):
            checked = check_rate(value)
            _check_known("evaluator", evaluator, self._evaluators)
            _check_known("rule", rule, rates)
            for name in rates if rule is None else (rule,):
                rates[name].update(dict.fromkeys(self._evaluators if evaluator is None else (evaluator,), checked))
        self._change(replace(plan, rates=_frozen(rates)), source)

    def reconfigure(self, settings: Settings, rules: Sequence[Rule] | None = None, source: str = "code") -> None:
        """Take rates and rules anew from settings. Evaluators and salt stay as they were at the start.

        Raises:
            ValueError: as at the start; the old plan stays.
        """
        given = rules_of(settings) if rules is None else rules
        self._change(self._planned(settings, given, self._plan.paused), source)

    @property
    def paused(self) -> bool:
        """Nothing is judged until `resume`."""
        return self._plan.paused

    def pause(self, source: str = "code") -> None:
        """Judge nothing from the next decision on; rates are kept."""
        self._change(replace(self._plan, paused=True), source)

    def resume(self, source: str = "code") -> None:
        """Judge again, at the rates as they are."""
        self._change(replace(self._plan, paused=False), source)

    def _change(self, plan: _Plan, source: str) -> None:
        before, self._plan = self._plan, plan
        if news := _news(before, plan):
            logger.info("otel-evals: sampling changed by %s: %s", source, news)

    def _planned(self, settings: Settings, rules: Sequence[Rule], paused: bool) -> _Plan:
        check_rules(rules, self._evaluators)
        rates = {rule.name: self._rates_of(rule, settings) for rule in rules if not rule.exclude}
        rates[DEFAULT_RULE] = {name: settings.rate_of(name) for name in self._evaluators}
        everything = CompiledRule(DEFAULT_RULE, exclude=False, priority=0, alternatives=((),))
        return _Plan((*map(compile_rule, rules), everything), _frozen(rates), paused)

    def _rates_of(self, rule: Rule, settings: Settings) -> dict[str, float]:
        general = {name: settings.rate_of(name) if rule.rate is None else rule.rate for name in self._evaluators}
        return {**general, **rule.rates}


def rules_of(settings: Settings) -> tuple[Rule, ...]:
    """The rules that settings imply: their own, or else the defaults; experiments are excluded before all.

    The default that evidence of trouble is always judged holds only while nobody has set a rate: a rate that
    somebody asked for means that rate, for every session.
    """
    excluded = () if settings.judge_experiments else (EXPERIMENTS_RULE,)
    if settings.rules:
        return (*excluded, *settings.rules)
    return excluded if {"rate", "rates"} & settings.model_fields_set else (*excluded, EVIDENCE_RULE)


def _key(session: Session) -> str:
    return f"{session.session_id}\x1f{session.generation}"


def _news(before: _Plan, after: _Plan) -> str:
    """What changed, for the log: `default/failure_rate 0.1 -> 0.5, paused`; empty when nothing did."""
    old, new = _flat(before), _flat(after)
    changed = [
        f"{rule}/{name} {old.get((rule, name), 'none')} -> {new.get((rule, name), 'none')}"
        for rule, name in {**old, **new}
        if old.get((rule, name)) != new.get((rule, name))
    ]
    if before.paused != after.paused:
        changed.append("paused" if after.paused else "resumed")
    return ", ".join(changed)


def _flat(plan: _Plan) -> dict[tuple[str, str], float]:
    return {(rule, name): rate for rule, rates in plan.rates.items() for name, rate in rates.items()}


def _frozen(rates: Mapping[str, Mapping[str, float]]) -> Mapping[str, Mapping[str, float]]:
    return MappingProxyType({rule: MappingProxyType(dict(of_rule)) for rule, of_rule in rates.items()})


def _generality(change: tuple[tuple[str | None, str | None], float]) -> int:
    (rule, evaluator), _ = change
    return (rule is not None) * 2 + (evaluator is not None)


def _check_known(kind: str, name: str | None, known: Iterable[str]) -> None:
    if name is not None and name not in (names := sorted(known)):
        raise ValueError(f"{name!r} is no {kind} here: give one of {', '.join(names)}")
