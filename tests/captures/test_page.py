"""The page about instrumentations says what the corpus shows."""

from __future__ import annotations

from benchmarks.instrumentations import PAGE, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m benchmarks.instrumentations"
