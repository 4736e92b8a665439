"""Fixtures that several rooms share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.scripted_judge import ScriptedJudge

pytest_plugins = ["tests.components.fixtures"]


@pytest.fixture
def scripted_judge() -> Iterator[ScriptedJudge]:
    """An OpenAI-compatible server on loopback that answers by script."""
    with ScriptedJudge() as judge:
        yield judge
