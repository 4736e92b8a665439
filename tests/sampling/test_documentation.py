"""`docs/sampling.md`: its numbers are computed anew, its settings are read."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from otel_evals.sampling.sampler import Sampler
from otel_evals.settings import load_settings
from otel_evals.signals import SIGNAL_NAMES

PAGE = Path(__file__).parents[2] / "docs" / "sampling.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_every_number_of_the_examples_is_what_the_code_computes() -> None:
    results = doctest.testfile(str(PAGE), module_relative=False, verbose=False)
    assert results.attempted > 20
    assert results.failed == 0


@pytest.mark.parametrize("block", re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL))
def test_every_settings_file_is_accepted(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(block, encoding="utf-8")
    monkeypatch.setenv("OTEL_EVALS_CONFIG", str(path))
    assert Sampler(load_settings()).rates()


def test_every_signal_is_in_the_table() -> None:
    assert re.findall(r"^\| `(\w+)` \| ", TEXT, re.MULTILINE) == list(SIGNAL_NAMES)
