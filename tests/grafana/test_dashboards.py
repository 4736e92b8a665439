"""The committed dashboards are what their source says, and complete."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from tests.grafana.dashboards import FOLDER, dashboards, panels

ALL_PANELS = [(uid, panel) for uid, dashboard in dashboards().items() for panel in panels(dashboard)]
UIDS = ["otel-evals-agent", "otel-evals-health", "otel-evals-quality"]


def test_the_committed_files_are_what_the_source_makes() -> None:
    pytest.importorskip(
        "grafana_foundation_sdk", reason="needs Python 3.11: pip install grafana-foundation-sdk==0.0.21"
    )
    checked = subprocess.run(
        [sys.executable, FOLDER / "build_dashboards.py", "--check"], capture_output=True, text=True, check=False
    )

    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("uid", UIDS)
def test_the_schema_of_grafana_knows_every_field(uid: str) -> None:
    models = pytest.importorskip("grafana_foundation_sdk.models.dashboard", reason="needs Python 3.11")
    encoder = pytest.importorskip("grafana_foundation_sdk.cog.encoder").JSONEncoder
    committed = dashboards()[uid]

    read = models.Dashboard.from_json(committed)

    assert json.loads(json.dumps(read, cls=encoder)) == committed


def test_there_are_three_dashboards() -> None:
    assert sorted(dashboards()) == UIDS


@pytest.mark.parametrize(("uid", "panel"), ALL_PANELS, ids=lambda value: value if isinstance(value, str) else "")
def test_every_panel_says_what_it_means(uid: str, panel: dict[str, Any]) -> None:
    assert len(panel["description"]) > 10, panel["title"]


@pytest.mark.parametrize("uid", UIDS)
def test_panels_have_numbers_of_their_own(uid: str) -> None:
    numbers = [panel["id"] for panel in dashboards()[uid]["panels"]]

    assert sorted(numbers) == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("uid", UIDS)
def test_panels_fill_the_grid_and_do_not_overlap(uid: str) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboards()[uid]["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + dx, place["y"] + dy) for dx in range(place["w"]) for dy in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells


@pytest.mark.parametrize("uid", UIDS)
def test_every_variable_that_is_used_is_defined(uid: str) -> None:
    dashboard = dashboards()[uid]
    defined = {variable["name"] for variable in dashboard["templating"]["list"]}

    used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps(dashboard)))

    assert used - {"__data"} == defined


@pytest.mark.parametrize("uid", UIDS)
def test_a_change_of_judge_model_or_prompt_is_marked(uid: str) -> None:
    marks = {annotation["name"] for annotation in dashboards()[uid]["annotations"]["list"]}

    assert {"Judge model changed", "Judge prompt changed"} <= marks


@pytest.mark.parametrize("uid", ["otel-evals-quality", "otel-evals-agent"])
def test_a_session_links_to_its_trace_and_to_its_events(uid: str) -> None:
    [table] = [panel for panel in panels(dashboards()[uid]) if panel["title"] == "Worst recent sessions"]
    overrides = {o["matcher"]["options"]: o["properties"] for o in table["fieldConfig"]["overrides"]}
    [links] = [p["value"] for p in overrides["session"] if p["id"] == "links"]

    panes = [json.loads(parse_qs(urlsplit(link["url"]).query)["panes"][0])["a"] for link in links]

    assert [(pane["datasource"], pane["queries"]) for pane in panes] == [
        ("${traces}", [{"refId": "A", "query": "${__data.fields.trace}"}]),
        (
            "${events}",
            [
                {
                    "refId": "A",
                    "expr": '{service_name="${__data.fields.service}"}'
                    ' | otel_evals_session_id="${__data.fields.session}"',
                }
            ],
        ),
    ]


def test_exemplars_lead_to_the_trace_store() -> None:
    sources = yaml.safe_load((FOLDER / "provisioning" / "datasources" / "datasources.yaml").read_text())["datasources"]
    by_type = {source["type"]: source for source in sources}

    [destination] = by_type["prometheus"]["jsonData"]["exemplarTraceIdDestinations"]

    assert destination == {"name": "trace_id", "datasourceUid": by_type["jaeger"]["uid"]}
