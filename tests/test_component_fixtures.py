"""A missing component skips its tests on a laptop, with the remedy, and fails them in CI."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

USES_A_MISSING_COMPONENT = """
import pytest
from tests.components import fixtures
from tests.components.fixtures import *

def nowhere():
    raise FileNotFoundError("no collector: run 'make components'")

@pytest.fixture(scope="session", autouse=True)
def no_collector():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fixtures, "find_collector", nowhere)
        yield

def test_that_needs_it(collector):
    pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(USES_A_MISSING_COMPONENT)
    pytester.syspathinsert(Path(__file__).parents[1])
    return pytester


def test_outside_ci_the_test_is_skipped_and_the_remedy_shown(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)

    result = project.runpytest("-rs", "-p", "no:cacheprovider")

    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*run 'make components'*"])


def test_in_ci_the_test_fails_and_the_remedy_is_shown(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")

    result = project.runpytest("-p", "no:cacheprovider")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*run 'make components'*"])
