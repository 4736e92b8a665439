"""What docs/operations.md and the panels say agrees with the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from otel_evals.sampling.estimate import wilson
from otel_evals.settings import Settings
from tests.grafana.dashboards import dashboards

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "operations.md").read_text()


@pytest.mark.parametrize("text", [TEXT, json.dumps(dashboards())], ids=["operations.md", "dashboards"])
def test_every_setting_that_is_named_exists(text: str) -> None:
    named = {name.lower() for name in re.findall(r"OTEL_EVALS_([A-Z_]+)", text)}

    assert named
    assert named <= set(Settings.model_fields)


def test_the_defaults_that_are_named_are_the_defaults() -> None:
    told = re.findall(r"`OTEL_EVALS_([A-Z_]+)` \(([\d,]+)( MiB)?\)", TEXT)
    defaults = {name: Settings.model_fields[name.lower()].default for name, _, _ in told}

    assert len(told) > 4
    assert {name: int(number.replace(",", "")) * (2**20 if mib else 1) for name, number, mib in told} == defaults


def test_the_table_of_intervals_is_wilsons() -> None:
    rows = re.findall(
        r"^\| ([\d,]+) \| ([\d.]+) – (\d+) % \| (\d+) – (\d+) % \| (\d+) – (\d+) % \|", TEXT, re.MULTILINE
    )

    assert len(rows) == 5
    for n, *told in rows:
        exact = [100 * end for rate in (0.05, 0.1, 0.3) for end in wilson(rate, float(n.replace(",", "")))]
        assert [float(number) for number in told] == pytest.approx(exact, abs=0.51), n


def test_links_lead_to_files_that_exist() -> None:
    links = {link.partition("#")[0] for link in re.findall(r"\]\(([^)#][^)]*)\)", TEXT)}

    assert [link for link in links if not (DOCS / link).exists()] == []
