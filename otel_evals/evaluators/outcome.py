"""The three ways an evaluation can end, built in one place so that none of them can be half filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from otel_evals.evaluation import Evaluation, Evidence
from otel_evals.evaluators.protocol import Evaluator

__all__ = ["not_applicable", "scored", "unscorable"]


def scored(
    evaluator: Evaluator,
    label: str,
    score: float,
    *,
    explanation: str,
    evidence: Sequence[Evidence] = (),
    details: Mapping[str, Any] | None = None,
) -> Evaluation:
    """A label and its score, 0 to 1; passes from the evaluator's threshold on."""
    return Evaluation(
        evaluator=evaluator.name,
        evaluator_version=evaluator.version,
        outcome="scored",
        score=score,
        label=label,
        passed=score >= evaluator.threshold,
        threshold=evaluator.threshold,
        explanation=explanation,
        evidence=tuple(evidence),
        details=dict(details or {}),
    )


def not_applicable(
    evaluator: Evaluator,
    label: str,
    score: float,
    *,
    explanation: str,
    details: Mapping[str, Any] | None = None,
) -> Evaluation:
    """The question did not arise. The documented neutral score is kept, but stays out of rates and means."""
    return Evaluation(
        evaluator=evaluator.name,
        evaluator_version=evaluator.version,
        outcome="not_applicable",
        score=score,
        label=label,
        passed=score >= evaluator.threshold,
        applicable=False,
        threshold=evaluator.threshold,
        explanation=explanation,
        details=dict(details or {}),
    )


def unscorable(
    evaluator: Evaluator,
    error_type: str,
    *,
    explanation: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> Evaluation:
    """No score could be had; `error_type` says why in a word or two (low cardinality)."""
    return Evaluation(
        evaluator=evaluator.name,
        evaluator_version=evaluator.version,
        outcome="unscorable",
        threshold=evaluator.threshold,
        explanation=explanation,
        error_type=error_type,
        details=dict(details or {}),
    )
