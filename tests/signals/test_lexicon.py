"""The word list: found at word starts, refused when it could not be found fast."""

from __future__ import annotations

import pytest

from otel_evals.signals.lexicon import Lexicon


def test_an_entry_is_found_at_the_start_of_a_word_only() -> None:
    assert Lexicon(en="fail").find("it failed") == "en"
    assert Lexicon(en="fail").find("unfailing") is None


def test_each_alternative_of_a_leading_group_is_found() -> None:
    lexicon = Lexicon(en="(?:cannot|could not) help")
    assert lexicon.find("i could not help") == lexicon.find("i cannot help") == "en"


def test_languages_without_spaces_are_found_anywhere() -> None:
    assert Lexicon(zh="失败").find("操作失败了") == "zh"


@pytest.mark.parametrize("entry", ["no", "ab?c", "(?:o|oft)x", r"\w+ing"])
def test_an_entry_without_three_plain_characters_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="begin it with at least 3 plain characters"):
        Lexicon(en=entry)
