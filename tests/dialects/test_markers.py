"""What the hooks keep."""

from __future__ import annotations

import subprocess
import sys

import pytest

from otel_evals.dialects.markers import MARKER_KEYS, is_genai_log, keeps


@pytest.mark.parametrize(
    "attributes", [{"http.request.method": "GET"}, {}, {"db.system": "postgresql"}, {"code.function": "f"}]
)
def test_foreign_spans_are_not_kept(attributes: dict[str, str]) -> None:
    assert MARKER_KEYS.isdisjoint(attributes)
    assert not keeps(attributes)


def test_a_prefix_alone_keeps_a_span_where_there_is_time_to_look() -> None:
    attributes = {"gen_ai.some.new.attribute": 1}
    assert MARKER_KEYS.isdisjoint(attributes)
    assert keeps(attributes)


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("gen_ai.choice", {}),
        ("gen_ai.client.inference.operation.details", {}),
        ("", {"event.name": "gen_ai.user.message"}),
        (None, {"event_name": "gen_ai.content.prompt"}),
        ("", {"gen_ai.input.messages": []}),
    ],
)
def test_genai_events_are_told_by_name_or_content(name: str | None, attributes: dict[str, object]) -> None:
    assert is_genai_log(name, attributes)


@pytest.mark.parametrize(
    ("name", "attributes"), [("", {}), (None, None), ("user.login", {"event.name": "x"}), ("", {"event.name": 3})]
)
def test_other_log_records_are_not_kept(name: str | None, attributes: dict[str, object] | None) -> None:
    assert not is_genai_log(name, attributes)


def test_markers_import_nothing_heavy() -> None:
    code = (
        "import sys, otel_evals.dialects.markers\n"
        "print([m for m in ('pydantic', 'orjson', 'litellm', 'aiohttp', 'typer') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
