"""Renders the dashboards from the answers of a real Prometheus: `python -m docs.render_dashboards`.

Writes docs/images/dashboard-*.svg. No Grafana runs here, so these are drawings of what its panels would be given, by
the same queries; Grafana itself looks better. What Prometheus holds is made by the fixture of the tests, in more and
smaller steps: two minutes in which a new version with a worse model and another judge takes over.
"""

from __future__ import annotations

import argparse
import math
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from docs.drawing import Box, Curve, curves, frame, numbers, table, words
from tests.components.collector import find_collector
from tests.components.prometheus import find_prometheus
from tests.grafana.asking import ask_instant, ask_range
from tests.grafana.dashboards import dashboards, filled_in
from tests.grafana.events import evaluation_events
from tests.grafana.filled import Filled, Part, filled_prometheus

IMAGES = Path(__file__).parent / "images"
COLUMN, ROW, GAP, MARGIN, HEAD = 54, 34, 6, 16, 66
POINTS = 120
SCORED_BY = ("failure_rate", "failure_communication", "goal_achievement")
CHOSEN = {
    "otel-evals-quality": {"window": "1h"},
    "otel-evals-health": {"window": "1h"},
    "otel-evals-agent": {
        "window": "1h",
        "service": "shop-api",
        "agent": "bank-assistant",
        "compare": "service_version",
    },
}
NOTE = (
    "Rendered by docs/render_dashboards.py from real Prometheus answers to the panels' own queries; "
    "not a screenshot of Grafana."
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=2100, help="of the first version; the second has half of it")
    given = parser.parse_args()
    parts = {"first": Part(given.sessions, 36), "second": Part(given.sessions // 2, 24)}
    with (
        tempfile.TemporaryDirectory() as folder,
        filled_prometheus(find_collector(), find_prometheus(), Path(folder), **parts) as filled,
    ):
        for uid, dashboard in dashboards().items():
            target = IMAGES / f"dashboard-{uid.removeprefix('otel-evals-')}.svg"
            target.write_text(drawn(filled, dashboard, CHOSEN[uid]))


def drawn(filled: Filled, dashboard: Mapping[str, Any], chosen: Mapping[str, str]) -> str:
    """The whole dashboard as one picture."""
    parts, bottom = [], 0.0
    for panel, box, values in placed(dashboard, chosen):
        bottom = max(bottom, box.y + box.height)
        title = filled_in(panel["title"], values)
        if panel["type"] == "row":
            parts.append(words(box.x, box.y + 22, f"▾ {title}", size=15))
        else:
            parts.append(frame(box, title) + content(filled, panel, box, values))
    width, height = 24 * COLUMN + 2 * MARGIN, bottom + 34
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height:.0f}'"
        f" viewBox='0 0 {width} {height:.0f}' font-family='Inter,Helvetica,Arial,sans-serif'>"
        "<rect width='100%' height='100%' fill='#111217'/>"
        + words(MARGIN, 30, str(dashboard["title"]), size=20)
        + words(MARGIN, 50, "   ".join(f"{name}: {value}" for name, value in chosen.items()), size=12, colour="#8e9297")
        + "".join(parts)
        + words(MARGIN, height - 12, NOTE, size=11, colour="#8e9297")
        + "</svg>\n"
    )


def placed(
    dashboard: Mapping[str, Any], chosen: Mapping[str, str]
) -> Iterator[tuple[Mapping[str, Any], Box, dict[str, str]]]:
    """Each panel with its place and its variables; a repeated one once for each evaluator, side by side."""
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        copies = SCORED_BY if panel.get("repeat") == "evaluator" else ("",)
        width = place["w"] * COLUMN / len(copies)
        for index, evaluator in enumerate(copies):
            box = Box(
                MARGIN + place["x"] * COLUMN + index * width,
                HEAD + place["y"] * ROW,
                width - GAP,
                place["h"] * ROW - GAP,
            )
            yield panel, box, {**chosen, "evaluator": evaluator} if evaluator else dict(chosen)


def content(filled: Filled, panel: Mapping[str, Any], box: Box, values: Mapping[str, str]) -> str:
    if panel["targets"][0]["datasource"]["type"] == "loki":
        return sessions(filled, panel, box, values)
    defaults = panel["fieldConfig"]["defaults"]
    unit, decimals = defaults.get("unit", "short"), defaults.get("decimals")
    if panel["type"] == "table":
        return rates(filled, panel, box, values)
    if panel["type"] == "stat":
        return numbers(box, now(filled, panel["targets"][0], values), unit, decimals)
    lines = [line for target in panel["targets"] for line in over_time(filled, target, values)]
    if "stacking" in defaults["custom"] and defaults["custom"]["stacking"].get("mode") == "normal":
        lines = stacked(lines)
    marks = [
        mark for target in panel["targets"] if target.get("exemplar") for mark in exemplars(filled, target, values)
    ]
    return curves(box, lines, unit, defaults.get("max"), (filled.begin, filled.end), marks, decimals)


def exemplars(filled: Filled, target: Mapping[str, Any], values: Mapping[str, str]) -> list[tuple[float, float]]:
    found = filled.prometheus.exemplars(filled_in(target["expr"], values))
    marks = {(float(e["timestamp"]), float(e["value"])) for series in found for e in series["exemplars"]}
    return sorted(mark for mark in marks if filled.begin <= mark[0] <= filled.end)


def over_time(filled: Filled, target: Mapping[str, Any], values: Mapping[str, str]) -> list[Curve]:
    step = (filled.end - filled.begin) / POINTS
    found = ask_range(filled.prometheus, filled_in(target["expr"], values), filled.begin, filled.end, step)
    lines = [
        Curve(name_of(target, series["metric"]), [(float(t), float(v)) for t, v in series["values"]])
        for series in found
    ]
    for line in lines:
        line.thin = bool(re.search(r"(lower|upper)$", line.name))
    return lines


def stacked(lines: Sequence[Curve]) -> list[Curve]:
    """Each line on top of those before it; where one has no value it is 0."""
    times = sorted({time for line in lines for time, _ in line.points})
    heights = dict.fromkeys(times, 0.0)
    piled = []
    for line in lines:
        values = {time: value for time, value in line.points if math.isfinite(value)}
        base = [heights[time] for time in times]
        piled.append(Curve(line.name, [(time, values.get(time, 0.0)) for time in times], base=base))
        for time, value in values.items():
            heights[time] += value
    return piled


def now(filled: Filled, target: Mapping[str, Any], values: Mapping[str, str]) -> list[tuple[str, float]]:
    found = ask_instant(filled.prometheus, filled_in(target["expr"], values), filled.end)
    return [(name_of(target, series["metric"]), float(series["value"][1])) for series in found]


def name_of(target: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), target["legendFormat"]).strip()


def rates(filled: Filled, panel: Mapping[str, Any], box: Box, values: Mapping[str, str]) -> str:
    """A table of several queries, joined by their labels."""
    heads = panel["transformations"][-1]["options"]["renameByName"]
    shares = {o["matcher"]["options"] for o in panel["fieldConfig"]["overrides"]}
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    labels = [name for name in heads if not name.startswith("Value")]
    for target in panel["targets"]:
        head = heads[f"Value #{target['refId']}"]
        for series in ask_instant(filled.prometheus, filled_in(target["expr"], values), filled.end):
            key = tuple(series["metric"].get(label, "") for label in labels)
            number = float(series["value"][1])
            rows.setdefault(key, {})[head] = f"{100 * number:.1f}%" if head in shares else f"{number:,.0f}"
    used = [index for index in range(len(labels)) if any(key[index] for key in rows)]
    columns = [head for name, head in heads.items() if name.startswith("Value")]
    cells = [[*(key[i] for i in used), *(row.get(c, "") for c in columns)] for key, row in sorted(rows.items())]
    heads_shown = [*(heads[labels[i]] for i in used), *columns]
    return table(box, heads_shown, cells, [1 / len(heads_shown)] * len(heads_shown))


def sessions(filled: Filled, panel: Mapping[str, Any], box: Box, values: Mapping[str, str]) -> str:
    """What Loki would find, from the events that were sent: Loki itself cannot be had here."""
    wanted = {"service_name": values.get("service", ".*"), "gen_ai_agent_name": values.get("agent", ".*")}
    failed = [
        event
        for event in evaluation_events(filled.collector)
        if event.get("otel_evals_passed") == "false"
        and all(re.fullmatch(value, event.get(name, "")) for name, value in wanted.items())
    ]
    failed.sort(key=lambda event: float(event["gen_ai_evaluation_score_value"]))
    if panel["type"] == "logs":
        lines = [
            [f"{e['gen_ai_evaluation_score_label']}: {e.get('gen_ai_evaluation_explanation', '')}"] for e in failed
        ]
        return table(box, ["event"], lines, [1.0])
    fields = {
        "otel_evals_session_id": ("session", 0.19),
        "gen_ai_evaluation_name": ("evaluator", 0.14),
        "gen_ai_evaluation_score_value": ("score", 0.05),
        "gen_ai_evaluation_score_label": ("label", 0.09),
        "gen_ai_agent_name": ("agent", 0.1),
        "service_name": ("service", 0.08),
        "gen_ai_evaluation_explanation": ("why", 0.15),
        "trace_id": ("trace", 0.2),
    }
    rows = [[event.get(name, "") for name in fields] for event in failed]
    return table(box, [head for head, _ in fields.values()], rows, [width for _, width in fields.values()])


if __name__ == "__main__":
    main()
