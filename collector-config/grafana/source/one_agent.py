"""One agent: how its versions, models or environments compare, and what changed when."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import dashboard as models

from source import panels
from source.queries import COMPARED, EVALUATOR, FIRST, SCORED, compared, failures, increase, share, wilson

__all__ = ["UID", "dashboard"]

UID = "otel-evals-agent"
ABOUT = (
    "One agent of one service: its rate with the band, and how its versions, models or environments compare. "
    "Purple and blue marks: another judge model or prompt; compare only between such marks."
)

SERVICE = panels.query_variable("service", "Service", "otel_evals_sessions_completed_total", "job", several=False)
AGENT = panels.query_variable(
    "agent", "Agent", 'otel_evals_sessions_completed_total{job=~"$service"}', "gen_ai_agent_name", several=False
)
COMPARE = panels.custom_variable("compare", "Compare by", COMPARED, "service_version")

COUNT = f"otel_evals_evaluations_total{{{EVALUATOR}, {SCORED}}}"
WEIGHT = f"otel_evals_evaluations_weight_total{{{EVALUATOR}, {SCORED}}}"
SQUARES = f"otel_evals_evaluations_weight_squared_total{{{EVALUATOR}, {SCORED}}}"
FAILED = f'otel_evals_evaluations_weight_total{{{EVALUATOR}, {FIRST}, otel_evals_outcome="failed"}}'
WHICH = "{{service_version}}{{gen_ai_request_model}}{{deployment_environment_name}} {{gen_ai_evaluation_name}}"
"""Only one of the three is there: what `$compare` names."""


def dashboard() -> models.Dashboard:
    made = panels.new_dashboard(UID, "One agent", ABOUT, [SERVICE, AGENT, panels.EVALUATORS, COMPARE, panels.WINDOW])
    made.with_row(builders.Row("$agent of $service"))
    for panel in (_band(), _labels(), _signals(), _scores()):
        made.with_panel(panel)
    made.with_row(builders.Row("Compared by $compare"))
    for panel in (_table(), _rates(), _scored(), _labels_compared()):
        made.with_panel(panel)
    made.with_row(builders.Row("Which sessions"))
    made.with_panel(
        panels.failed_sessions(
            "Worst recent sessions", "Below the threshold, lowest score first. Click a session for its trace or events."
        )
    )
    return panels.built(made)


def _failed() -> str:
    """Σw of the failed sessions; 0, not nothing, where none failed."""
    return f"({compared(FAILED)} or 0 * {compared(WEIGHT)})"


def _band() -> object:
    panel = panels.curves(
        "$evaluator: failure rate with its 95 % band",
        "Solid: share of sessions that fail, weighted back to all. Filled: its 95 % interval. It changed when the band "
        "leaves where it was; before that it is noise.",
        [
            panels.query(failures("ratio"), "rate"),
            panels.query(failures("lower"), "lower"),
            panels.query(failures("upper"), "upper"),
        ],
        top=1,
    )
    return panels.for_each_evaluator(panels.dotted(panel))


def _labels() -> object:
    panel = panels.stacked(
        "$evaluator: label mix",
        "What kind of outcome, weighted back to all sessions.",
        [panels.query(share(WEIGHT, WEIGHT, "gen_ai_evaluation_score_label"), "{{gen_ai_evaluation_score_label}}")],
        top=1,
    )
    return panels.for_each_evaluator(panel)


def _signals() -> object:
    of_agent = f'job=~"$service", gen_ai_agent_name=~"$agent", {FIRST}'
    return panels.curves(
        "Signals on all sessions",
        "Share of ALL sessions with evidence that needs no judge. It moves at once, and no sampling blurs it.",
        [
            panels.query(
                share(
                    f"otel_evals_signals_total{{{of_agent}}}",
                    f"otel_evals_sessions_completed_total{{{of_agent}}}",
                    "job, otel_evals_signal",
                    "job",
                ),
                "{{otel_evals_signal}}",
            )
        ],
    )


def _table() -> object:
    failed, weight, squares = _failed(), compared(WEIGHT), compared(SQUARES)
    lower, upper = wilson(failed, weight, squares)
    return panels.numbers(
        "Side by side, last window",
        "Failure rate of each version (model, environment) with its 95 % interval. Prefer one only if the intervals "
        "are apart, and both were judged by the same judge. n is (Σw)²/Σw²; below 30, wait. Versions come from the "
        "resource attributes of the app (service.version and so on).",
        [
            ("failure rate", panels.query(f"{failed} / ({weight} > 0)", now=True)),
            ("lower", panels.query(lower, now=True)),
            ("upper", panels.query(upper, now=True)),
            ("n", panels.query(f"{weight} ^ 2 / ({squares} > 0)", now=True)),
            ("judged sessions", panels.query(compared(COUNT), now=True)),
        ],
        {
            **{name: name.replace("_", " ") for name in COMPARED.split(",")},
            "gen_ai_evaluation_name": "evaluator",
        },
        shares=("failure rate", "lower", "upper"),
    )


def _rates() -> object:
    return panels.curves(
        "Failure rate, compared",
        "Weighted back to all sessions of each version. Look up the intervals in the table before you believe a gap.",
        [panels.query(f"{_failed()} / ({compared(WEIGHT)} > 0)", WHICH)],
        top=1,
    )


def _scored() -> object:
    return panels.curves(
        "Judged sessions, compared",
        "How many scores each version has in the window. A new version starts low: give it time, or a rate of its own.",
        [panels.query(compared(COUNT), WHICH)],
        unit="short",
        threshold=30,
    )


def _labels_compared() -> object:
    by_label = compared(WEIGHT).replace("$compare, gen_ai_", "$compare, gen_ai_evaluation_score_label, gen_ai_", 1)
    return panels.curves(
        "Label mix, compared",
        "Share of each label within its version: whether a version fails differently, not only more often.",
        [
            panels.query(
                f"{by_label} / on ($compare, gen_ai_evaluation_name) group_left () ({compared(WEIGHT)} > 0)",
                f"{WHICH}: {{{{gen_ai_evaluation_score_label}}}}",
            )
        ],
        top=1,
        width=panels.FULL,
    )


def _scores() -> object:
    score = f"gen_ai_evaluation_score_%s{{{EVALUATOR}}}"
    total, count = (increase(score % part, "gen_ai_evaluation_name") for part in ("sum", "count"))
    buckets = increase(score % "bucket", "gen_ai_evaluation_name, le")
    return panels.curves(
        "Scores and exemplars: click a low diamond to open its trace",
        "Mean score of the judged sessions, and the score that the lowest tenth stays below (not weighted). Each "
        "diamond links to the trace of a session.",
        [
            panels.query(f"{total} / ({count} > 0)", "{{gen_ai_evaluation_name}}: mean"),
            panels.query(
                f"histogram_quantile(0.1, {buckets})", "{{gen_ai_evaluation_name}}: lowest tenth", exemplars=True
            ),
        ],
        unit="short",
        top=1,
    )
