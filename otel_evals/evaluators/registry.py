"""Evaluators by name: the built-in ones, and those that other packages announce as entry points.

A package adds an evaluator with an entry point in the group `otel_evals.evaluators` that names a class or
function which, called without arguments, returns an `Evaluator`. Entry points are looked up only for names
that are not built in, and loaded only when asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol, cast

from otel_evals.evaluators.protocol import Evaluator
from otel_evals.evaluators.rubric import Rubric, RubricEvaluator

__all__ = ["ENTRY_POINT_GROUP", "create_evaluator", "create_evaluators", "known_evaluators"]

ENTRY_POINT_GROUP = "otel_evals.evaluators"

_BUILT_IN = {
    "failure_rate": "otel_evals.evaluators.failure_rate:FailureRate",
    "goal_achievement": "otel_evals.evaluators.goal_achievement:GoalAchievement",
    "failure_communication": "otel_evals.evaluators.failure_communication:FailureCommunication",
    "recovery_strategy": "otel_evals.evaluators.recovery_strategy:RecoveryStrategy",
    "partial_completion": "otel_evals.evaluators.partial_completion:PartialCompletion",
}


class ConfiguresRubrics(Protocol):
    """What is read of the settings, which lie above this room."""

    @property
    def rubrics(self) -> tuple[Rubric, ...]: ...


_REQUIRED = ("name", "version", "threshold", "rubric", "answer", "gate", "check", "score")


def known_evaluators() -> tuple[str, ...]:
    """All names that `create_evaluator` accepts, sorted."""
    return tuple(sorted({*_BUILT_IN, *_announced()}))


def create_evaluators(names: Iterable[str], settings: ConfiguresRubrics | None = None) -> dict[str, Evaluator]:
    """Name to evaluator, in the given order; names of `settings.rubrics` are known as well.

    Raises:
        ValueError: a name is unknown or taken twice, or an entry point did not give an evaluator.
    """
    rubrics = {rubric.name: rubric for rubric in (settings.rubrics if settings else ())}
    if taken := sorted(rubrics.keys() & _BUILT_IN.keys()):
        raise ValueError(f"rubrics={taken[0]!r}: a built-in evaluator has this name; choose another")
    return {
        name: RubricEvaluator(rubrics[name]) if name in rubrics else create_evaluator(name, rubrics) for name in names
    }


def create_evaluator(name: str, also_known: Iterable[str] = ()) -> Evaluator:
    """One evaluator with its default threshold.

    Args:
        name: Of a built-in evaluator or an entry point.
        also_known: Further names to mention when this one is unknown.

    Raises:
        ValueError: the name is unknown, or its entry point did not give an evaluator.
    """
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        return cast(Evaluator, getattr(importlib.import_module(module), attribute)())
    if entry_point := _announced().get(name):
        return _checked(name, entry_point.load()())
    known = sorted({*known_evaluators(), *also_known})
    raise ValueError(f"evaluators={name!r}: no such evaluator; known are {', '.join(known)}")


def _announced() -> dict[str, EntryPoint]:
    return {entry_point.name: entry_point for entry_point in entry_points(group=ENTRY_POINT_GROUP)}


def _checked(name: str, evaluator: Any) -> Evaluator:
    if missing := [attribute for attribute in _REQUIRED if not hasattr(evaluator, attribute)]:
        raise ValueError(f"evaluators={name!r}: its entry point gives no evaluator ({missing[0]} is missing)")
    return cast(Evaluator, evaluator)
