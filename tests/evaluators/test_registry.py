"""Evaluators by name: built-in, announced by entry point, unknown."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from otel_evals.evaluators import registry
from otel_evals.evaluators.registry import create_evaluator, create_evaluators, known_evaluators
from otel_evals.settings import EVALUATOR_NAMES


class Politeness:
    """A third party's evaluator, as an entry point would name it."""

    name, version, threshold, rubric = "politeness", "3", 0.5, "Is the agent polite?"
    answer = object
    gate = check = score = staticmethod(lambda *_: None)


class NotAnEvaluator:
    """What a mistaken entry point could name."""


@pytest.fixture
def announced(monkeypatch):
    """Announces objects of this module as entry points."""

    def announce(**names: str) -> None:
        points = [
            EntryPoint(name, f"{__name__}:{attribute}", registry.ENTRY_POINT_GROUP) for name, attribute in names.items()
        ]
        monkeypatch.setattr(registry, "entry_points", lambda group: points)

    return announce


@pytest.mark.parametrize("name", EVALUATOR_NAMES)
def test_a_built_in_evaluator_answers_to_its_name(name):
    assert create_evaluator(name).name == name


def test_the_order_of_the_names_is_kept():
    assert list(create_evaluators(reversed(EVALUATOR_NAMES))) == list(reversed(EVALUATOR_NAMES))


def test_an_entry_point_adds_an_evaluator(announced):
    announced(politeness="Politeness")
    assert create_evaluator("politeness").version == "3"
    assert "politeness" in known_evaluators()


def test_an_unknown_name_is_refused_and_the_known_ones_named():
    with pytest.raises(ValueError, match=r"evaluators='politness'.*failure_communication, failure_rate"):
        create_evaluator("politness")


def test_an_entry_point_that_gives_no_evaluator_is_refused_by_name(announced):
    announced(broken="NotAnEvaluator")
    with pytest.raises(ValueError, match=r"broken.*gives no evaluator"):
        create_evaluator("broken")


def test_built_in_evaluators_are_found_without_looking_at_entry_points(monkeypatch):
    monkeypatch.setattr(registry, "entry_points", lambda group: pytest.fail("looked at entry points"))
    assert create_evaluators(EVALUATOR_NAMES)


def test_importing_the_registry_imports_no_evaluator():
    code = "import sys, otel_evals.evaluators.registry; print('otel_evals.evaluators.failure_rate' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
