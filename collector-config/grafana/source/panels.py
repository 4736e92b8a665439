"""How the questions are drawn: panels, variables, annotations and links that the dashboards share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import logs, loki, prometheus, stat, table, timeseries
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as models

from source import queries

__all__ = [
    "AGENTS",
    "EVALUATORS",
    "FULL",
    "HALF",
    "NO_EVENTS",
    "SERVICES",
    "THIRD",
    "WINDOW",
    "built",
    "curves",
    "custom_variable",
    "dotted",
    "events",
    "failed_sessions",
    "for_each_evaluator",
    "new_dashboard",
    "number",
    "numbers",
    "query",
    "query_variable",
    "stacked",
]

METRICS = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
EVENTS = common.DataSourceRef(type_val="loki", uid="${events}")
TRACES = "jaeger"
"""Plugin of the trace store: `tempo` is the other one."""
FULL, HALF, THIRD, HEIGHT = 24, 12, 8, 8
NO_EVENTS = "No such session in this range, or no evaluation events: they need Loki (see docs/operations.md)."

GREEN, YELLOW, RED = "green", "yellow", "red"

# --- variables --------------------------------------------------------------------------------------------------


def query_variable(
    name: str, label: str, series: str, value: str, *, several: bool = True, everything: str = ".*"
) -> builders.QueryVariable:
    """Values of a label. "All" is `everything`; `.*` takes in what has no such label."""
    asked = f"label_values({series}, {value})"
    made = (
        builders.QueryVariable(name)
        .label(label)
        .datasource(METRICS)
        .query({"query": asked, "refId": f"variable-{name}"})
        .definition(asked)
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
    )
    if not several:
        return made
    all_of_them = models.VariableOption(selected=True, text=["All"], value=["$__all"])
    return made.multi(True).include_all(True).all_value(everything).current(all_of_them)


def custom_variable(name: str, label: str, values: str, default: str) -> builders.CustomVariable:
    return (
        builders.CustomVariable(name)
        .label(label)
        .values(values)
        .current(models.VariableOption(selected=True, text=default, value=default))
    )


# Loki refuses a selector that nothing but `.*` narrows; every service has a name.
SERVICES = query_variable("service", "Service", "otel_evals_sessions_completed_total", "job", everything=".+")
AGENTS = query_variable(
    "agent", "Agent", f"otel_evals_sessions_completed_total{{{queries.SERVICE}}}", "gen_ai_agent_name"
)
EVALUATORS = query_variable(
    "evaluator", "Evaluator", f"otel_evals_evaluations_total{{{queries.AGENT}}}", "gen_ai_evaluation_name"
)
WINDOW = custom_variable("window", "Each point covers", "15m,1h,6h,1d", "1h")

# --- dashboard --------------------------------------------------------------------------------------------------


def new_dashboard(
    uid: str, title: str, about: str, variables: Sequence[Any], *, sessions: bool = True
) -> builders.Dashboard:
    """An empty dashboard with these variables, the data sources, the annotations and links to its siblings.

    Args:
        sessions: it shows single sessions, so it needs the stores of events and traces too.
    """
    made = (
        builders.Dashboard(title)
        .uid(uid)
        .description(about)
        .tags(["otel-evals"])
        .time("now-24h", "now")
        .refresh("1m")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .link(
            builders.DashboardLink("Agent evaluation")
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags(["otel-evals"])
            .include_vars(True)
            .keep_time(True)
        )
    )
    sources = [("datasource", "Metrics", "prometheus")]
    if sessions:
        sources += [("events", "Events", "loki"), ("traces", "Traces", TRACES)]
    for name, label, plugin in sources:
        made.with_variable(builders.DatasourceVariable(name).label(label).type(plugin))
    for variable in variables:
        made.with_variable(variable)
    made.annotation(_annotation("Judge model changed", queries.MODEL_CHANGED, "otel_evals_judge_model", "purple"))
    made.annotation(_annotation("Judge prompt changed", queries.PROMPT_CHANGED, "otel_evals_judge_prompt_hash", "blue"))
    return made


def built(made: builders.Dashboard) -> models.Dashboard:
    """The finished dashboard, its panels numbered: Grafana tells them apart by that."""
    finished = made.build()
    for number, panel in enumerate(finished.panels or (), start=1):
        panel.id_val = number
    return finished


def _annotation(name: str, expression: str, label: str, colour: str) -> builders.AnnotationQuery:
    return (
        builders.AnnotationQuery()
        .name(name)
        .datasource(METRICS)
        .enable(True)
        .icon_color(colour)
        .expr(expression)
        .target(query(expression).ref_id("Anno"))
        .title_format(name)
        .text_format(f"{{{{job}}}}: {{{{{label}}}}}. A step in a rate here may be the judge's.")
        .step("60s")
    )


# --- queries ----------------------------------------------------------------------------------------------------


def query(expression: str, legend: str = "", *, now: bool = False, exemplars: bool = False) -> prometheus.Dataquery:
    """A Prometheus query; `now`: one value per series, as a table."""
    made = prometheus.Dataquery().datasource(METRICS).expr(expression).legend_format(legend or "__auto")
    if exemplars:
        made.exemplar(True)
    return made.instant().format("table") if now else made.range()


def _lettered(targets: Sequence[Any]) -> list[Any]:
    return [target.ref_id(chr(ord("A") + index)) for index, target in enumerate(targets)]


# --- panels -----------------------------------------------------------------------------------------------------


def _framed(panel: Any, title: str, about: str, width: int, height: int = HEIGHT) -> Any:
    return panel.title(title).description(about).span(width).height(height)


def curves(
    title: str,
    about: str,
    targets: Sequence[Any],
    *,
    unit: str = "percentunit",
    width: int = HALF,
    top: float | None = None,
    threshold: float | None = None,
    decimals: int | None = None,
    no_value: str | None = None,
) -> Any:
    """Lines over time."""
    panel = (
        _framed(timeseries.Panel(), title, about, width)
        .datasource(METRICS)
        .targets(_lettered(targets))
        .unit(unit)
        .min(0)
        .fill_opacity(0)
        .line_width(2)
        .show_points(common.VisibilityMode.AUTO)
        .span_nulls(900_000)  # ms: a gap of a quarter of an hour is shown
        .legend(_legend())
        .tooltip(common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI))
    )
    if top is not None:
        panel.max(top)
    if decimals is not None:
        panel.decimals(decimals)
    if no_value is not None:
        panel.no_value(no_value)
    if threshold is not None:
        steps = [models.Threshold(value=None, color="transparent"), models.Threshold(value=threshold, color=YELLOW)]
        panel.thresholds(builders.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps))
        panel.thresholds_style(
            common_builders.GraphThresholdsStyleConfig().mode(common.GraphThresholdsStyleMode.DASHED)
        )
    return panel


def dotted(panel: Any) -> Any:
    """Draw the ends of intervals thin and dashed, and fill between them where there is but one interval."""
    thin = [
        models.DynamicConfigValue(id_val="custom.lineWidth", value=1),
        models.DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": [4, 6]}),
    ]
    band = [
        models.DynamicConfigValue(id_val="custom.fillBelowTo", value="lower"),
        models.DynamicConfigValue(id_val="custom.fillOpacity", value=15),
    ]
    return panel.override_by_regexp("/(lower|upper)$/", thin).override_by_name("upper", band)


def for_each_evaluator(panel: Any) -> Any:
    """The panel once for every chosen evaluator, three in a line."""
    return panel.span(FULL).repeat("evaluator").repeat_direction("h").max_per_row(3)


def stacked(
    title: str,
    about: str,
    targets: Sequence[Any],
    *,
    unit: str = "percentunit",
    width: int = HALF,
    top: float | None = None,
) -> Any:
    """Parts of a whole over time."""
    panel = curves(title, about, targets, unit=unit, width=width, top=top)
    return panel.fill_opacity(60).stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL))


def number(
    title: str,
    about: str,
    targets: Sequence[Any],
    *,
    unit: str = "short",
    width: int = 4,
    steps: Sequence[tuple[float | None, str]] = ((None, "text"),),
    decimals: int | None = None,
    height: int = 5,
    no_value: str = "–",
) -> Any:
    """The last value, large, with its course behind it. `steps`: from this value on, this colour."""
    panel = (
        _framed(stat.Panel(), title, about, width, height)
        .datasource(METRICS)
        .targets(_lettered(targets))
        .unit(unit)
        .no_value(no_value)
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
        .graph_mode(common.BigValueGraphMode.AREA)
        .thresholds(
            builders.ThresholdsConfig()
            .mode(models.ThresholdsMode.ABSOLUTE)
            .steps([models.Threshold(value=value, color=colour) for value, colour in steps])
        )
    )
    return panel if decimals is None else panel.decimals(decimals)


def numbers(
    title: str,
    about: str,
    columns: Sequence[tuple[str, Any]],
    labels: dict[str, str],
    *,
    shares: Sequence[str] = (),
    width: int = FULL,
) -> Any:
    """A table: one column per query, in this order, after the columns of the labels.

    Args:
        columns: heading and query of each.
        labels: label to heading; all other labels are left out.
        shares: headings of the columns that are shares, 0 to 1.
    """
    targets = _lettered([target for _, target in columns])
    values = {f"Value #{chr(ord('A') + index)}": heading for index, (heading, _) in enumerate(columns)}
    if len(values) == 1:
        values = {"Value": columns[0][0]}
    names = {**labels, **values}
    panel = (
        _framed(table.Panel(), title, about, width)
        .datasource(METRICS)
        .targets(targets)
        .with_transformation(models.DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(_only(names))
        .with_transformation(_renamed(names))
        .decimals(3)
    )
    for heading in shares:
        panel.override_by_name(
            heading,
            [
                models.DynamicConfigValue(id_val="unit", value="percentunit"),
                models.DynamicConfigValue(id_val="decimals", value=1),
            ],
        )
    return panel


def _only(names: dict[str, str]) -> models.DataTransformerConfig:
    return models.DataTransformerConfig(id_val="filterFieldsByName", options={"include": {"names": list(names)}})


def _renamed(names: dict[str, str]) -> models.DataTransformerConfig:
    order = {name: index for index, name in enumerate(names)}
    return models.DataTransformerConfig(id_val="organize", options={"renameByName": names, "indexByName": order})


def _legend() -> common_builders.VizLegendOptions:
    return (
        common_builders.VizLegendOptions()
        .display_mode(common.LegendDisplayMode.TABLE)
        .placement(common.LegendPlacement.BOTTOM)
        .show_legend(True)
        .calcs(["lastNotNull"])
    )


# --- sessions ---------------------------------------------------------------------------------------------------

_FIELDS = {
    "Time": "time",
    "timestamp": "time",
    "otel_evals_session_id": "session",
    "gen_ai_evaluation_name": "evaluator",
    "gen_ai_evaluation_score_value": "score",
    "gen_ai_evaluation_score_label": "label",
    "gen_ai_agent_name": "agent",
    "service_name": "service",
    "gen_ai_evaluation_explanation": "why",
    "trace_id": "trace",
}
"""Attribute of an evaluation event, as Loki names it, to its column; the time has either name, by Grafana's version."""


def failed_sessions(title: str, about: str) -> Any:
    """The worst sessions in range, each with links to its trace and to its events."""
    asked = f'{queries.EVENTS} | otel_evals_passed="false"'
    fields = models.DataTransformerConfig(
        id_val="extractFields", options={"source": "labels", "format": "json", "keepTime": True, "replace": False}
    )
    numeric = models.DataTransformerConfig(
        id_val="convertFieldType",
        options={"conversions": [{"targetField": "gen_ai_evaluation_score_value", "destinationType": "number"}]},
    )
    links = [_link("Open the trace", _trace()), _link("All events of this session", _session_events())]
    return (
        _framed(table.Panel(), title, about, FULL, 10)
        .datasource(EVENTS)
        .targets(_lettered([loki.Dataquery().datasource(EVENTS).expr(asked).max_lines(500).query_type("range")]))
        .with_transformation(fields)
        .with_transformation(numeric)
        .with_transformation(_only(_FIELDS))
        .with_transformation(_renamed(_FIELDS))
        .no_value(NO_EVENTS)
        .sort_by([common_builders.TableSortByFieldState().display_name("score").desc(False)])
        .override_by_name("session", [models.DynamicConfigValue(id_val="links", value=links)])
        .override_by_name("trace", [models.DynamicConfigValue(id_val="links", value=links[:1])])
        .override_by_name("score", [models.DynamicConfigValue(id_val="decimals", value=2)])
    )


def events(title: str, about: str) -> Any:
    """What the judge said about the failed sessions."""
    line = "{{.gen_ai_evaluation_score_label}}: {{.gen_ai_evaluation_explanation}}"
    asked = f'{queries.EVENTS} | otel_evals_passed="false" | line_format "{line}"'
    return (
        _framed(logs.Panel(), title, about, FULL, 10)
        .datasource(EVENTS)
        .targets(_lettered([loki.Dataquery().datasource(EVENTS).expr(asked).max_lines(100).query_type("range")]))
        .show_time(True)
        .wrap_log_message(True)
        .enable_log_details(True)
    )


def _trace() -> dict[str, Any]:
    return {"datasource": "${traces}", "queries": [{"refId": "A", "query": "${__data.fields.trace}"}]}


def _session_events() -> dict[str, Any]:
    asked = '{service_name="${__data.fields.service}"} | otel_evals_session_id="${__data.fields.session}"'
    return {"datasource": "${events}", "queries": [{"refId": "A", "expr": asked}]}


def _link(title: str, pane: dict[str, Any]) -> dict[str, Any]:
    """A data link into Explore."""
    pane = {**pane, "range": {"from": "${__from}", "to": "${__to}"}}
    panes = quote(json.dumps({"a": pane}, separators=(",", ":")), safe="${}")
    # Grafana fills in `${…}`; all other braces belong to the JSON.
    panes = panes.replace("{", "%7B").replace("}", "%7D").replace("$%7B", "${")
    for name in (
        "traces",
        "events",
        "__from",
        "__to",
        *(f"__data.fields.{f}" for f in ("trace", "session", "service")),
    ):
        panes = panes.replace("${" + name + "%7D", "${" + name + "}")
    return {"title": title, "url": f"/explore?schemaVersion=1&orgId=1&panes={panes}", "targetBlank": True}
