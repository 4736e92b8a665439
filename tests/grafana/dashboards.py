"""Reads the committed dashboards as Grafana does: every query of every panel, variable and annotation, filled in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

__all__ = ["FOLDER", "Query", "dashboards", "filled_in", "panels", "queries", "query_of"]

FOLDER = Path(__file__).parents[2] / "collector-config" / "grafana"


@dataclass(frozen=True)
class Query:
    """One question that Grafana asks."""

    dashboard: str
    """Its uid."""
    owner: str
    """Title of the panel, name of the variable or of the annotation."""
    ref: str
    text: str
    store: Literal["prometheus", "loki"] = "prometheus"
    kind: Literal["range", "instant", "variable"] = "range"
    exemplars: bool = False

    def __str__(self) -> str:
        return f"{self.dashboard}: {self.owner} {self.ref}"


def dashboards() -> dict[str, dict[str, Any]]:
    """The committed dashboards by uid."""
    found = [json.loads(path.read_text()) for path in sorted((FOLDER / "dashboards").glob("*.json"))]
    return {dashboard["uid"]: dashboard for dashboard in found}


def panels(dashboard: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All panels but the rows."""
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield from panel.get("panels", ())
        else:
            yield panel


def queries() -> Iterator[Query]:
    """Every query of every dashboard."""
    for uid, dashboard in dashboards().items():
        for panel in panels(dashboard):
            for target in panel["targets"]:
                yield Query(
                    uid,
                    panel["title"],
                    target["refId"],
                    target["expr"],
                    store=target["datasource"]["type"],
                    kind="instant" if target.get("instant") else "range",
                    exemplars=target.get("exemplar", False),
                )
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                yield Query(uid, variable["name"], "variable", variable["query"]["query"], kind="variable")
        for annotation in dashboard["annotations"]["list"]:
            if "expr" in annotation:
                yield Query(uid, annotation["name"], "annotation", annotation["target"]["expr"])


def query_of(dashboard: str, panel: str, ref: str) -> Query:
    """One query by its place."""
    [found] = [q for q in queries() if (q.dashboard, q.owner, q.ref) == (dashboard, panel, ref)]
    return found


def filled_in(text: str, values: Mapping[str, str]) -> str:
    """The query with its variables replaced; what is not given is "All"."""
    return re.sub(r"\$\{?(\w+)\}?", lambda found: values.get(found[1]) or _all_of()[found[1]], text)


@cache
def _all_of() -> dict[str, str]:
    """Variable to what "All" stands for."""
    return {
        variable["name"]: variable["allValue"]
        for dashboard in dashboards().values()
        for variable in dashboard["templating"]["list"]
        if variable.get("includeAll")
    }
