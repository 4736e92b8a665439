"""Recorded files: one request a line, or one document."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from otel_evals.spans.files import FileError, logs_beside, read_file

REQUEST = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "0" * 31 + "1", "spanId": "0" * 15 + "2"}]}]}]}


def test_json_lines_are_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    path.write_bytes(orjson.dumps(REQUEST) + b"\n\n" + orjson.dumps(REQUEST) + b"\n")
    assert len(list(read_file(path))) == 2


def test_an_indented_document_is_read_as_one(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_bytes(orjson.dumps(REQUEST, option=orjson.OPT_INDENT_2))
    assert len(list(read_file(path))) == 1


def test_a_list_of_requests_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_bytes(orjson.dumps([REQUEST, REQUEST], option=orjson.OPT_INDENT_2))
    assert len(list(read_file(path))) == 2


def test_the_log_file_beside_is_found_by_its_name(tmp_path: Path) -> None:
    spans, logs = tmp_path / "x.jsonl", tmp_path / "x.logs.jsonl"
    spans.write_text("")
    assert logs_beside(spans) is None
    logs.write_text("")
    assert logs_beside(spans) == logs
    assert logs_beside(logs) is None


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text("\n")
    assert list(read_file(path)) == []


@pytest.mark.parametrize("content", ["nonsense", '{"a": \n nonsense'])
def test_what_is_no_json_is_refused_with_the_name_of_the_file(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(FileError, match=r"bad\.json"):
        list(read_file(path))
