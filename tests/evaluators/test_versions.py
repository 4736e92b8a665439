"""Results of different questions must not be mixed: whoever changes a rubric or schema gives it a new version."""

from __future__ import annotations

import hashlib
import json

import pytest

from otel_evals.evaluators.registry import create_evaluator, known_evaluators
from otel_evals.judging.answer_schema import answer_schema

ASKED = {
    "failure_communication": ("2", "437bf84f98dc"),
    "failure_rate": ("2", "78da0a863691"),
    "goal_achievement": ("2", "d3405d26b47f"),
    "partial_completion": ("1", "33332ae1b65e"),
    "recovery_strategy": ("1", "81d500fc089d"),
}
"""Name → version, and a hash of rubric and schema. Change both together."""


@pytest.mark.parametrize("name", known_evaluators())
def test_a_changed_question_has_a_new_version(name):
    evaluator = create_evaluator(name)
    asked = evaluator.rubric + json.dumps(answer_schema(evaluator.answer))
    assert ASKED[name] == (evaluator.version, hashlib.sha256(asked.encode()).hexdigest()[:12])
