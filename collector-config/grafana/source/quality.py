"""Agent quality: how often agents fail their users, how sure that is, and which sessions to read."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import dashboard as models

from source import panels
from source.queries import AGENT, EVALUATOR, FIRST, SCORED, failures, growth, increase, share

__all__ = ["UID", "dashboard"]

UID = "otel-evals-quality"
ABOUT = "How often agents fail their users, how sure that is, and which sessions to read. Start at the table."

WHO = {"job": "service", "service_name": "judged service", "gen_ai_agent_name": "agent"}
PER_AGENT = "job, service_name, gen_ai_agent_name, gen_ai_evaluation_name"
WEIGHT = "otel_evals_evaluations_weight_total"
COMPLETED = f"otel_evals_sessions_completed_total{{{AGENT}}}"
DECIDED = f"otel_evals_sessions_total{{{AGENT}}}"


def dashboard() -> models.Dashboard:
    made = panels.new_dashboard(
        UID, "Agent quality", ABOUT, [panels.SERVICES, panels.AGENTS, panels.EVALUATORS, panels.WINDOW]
    )
    made.with_row(builders.Row("Now"))
    for panel in (_rates(), _completed(), _judged(), _goals(), _communication()):
        made.with_panel(panel)
    made.with_row(builders.Row("Over time"))
    for panel in (_failures(), _labels(), _signals(), _coverage(), _effective_n(), _scores()):
        made.with_panel(panel)
    made.with_row(builders.Row("Which sessions"))
    for panel in (_worst(), _explanations()):
        made.with_panel(panel)
    return panels.built(made)


def _rates() -> object:
    return panels.numbers(
        "Failure rates in the last window",
        "Share of sessions below the threshold of each evaluator, weighted back to all sessions. The truth lies "
        "between lower and upper 95 times in 100. n is what the sample is worth: below 30 the interval is too wide to "
        "act on, so raise the rate or choose a longer window. Act when LOWER is above the objective.",
        [
            ("failure rate", panels.query(failures("ratio"), now=True)),
            ("lower", panels.query(failures("lower"), now=True)),
            ("upper", panels.query(failures("upper"), now=True)),
            ("n", panels.query(failures("effective_n"), now=True)),
            (
                "judged sessions",
                panels.query(growth(f"otel_evals_evaluations_total{{{EVALUATOR}, {SCORED}}}", PER_AGENT), now=True),
            ),
        ],
        {**WHO, "gen_ai_evaluation_name": "evaluator"},
        shares=("failure rate", "lower", "upper"),
    )


def _completed() -> object:
    return panels.number(
        "Completed sessions",
        "All sessions that ended in the window, judged or not. A fall is a change of traffic, or of the app's tracing.",
        [panels.query(growth(COMPLETED, "job"), "{{job}}")],
        width=6,
        decimals=0,
    )


def _judged() -> object:
    return panels.number(
        "Share judged",
        "Of all completed sessions, those with a score. Rates are weighted for it; a low share only widens them.",
        [
            panels.query(
                share(f'otel_evals_sessions_total{{{AGENT}, otel_evals_decision="judged"}}', COMPLETED, "job", "job"),
                "{{job}}",
            )
        ],
        unit="percentunit",
        width=6,
        decimals=1,
    )


def _achieved(evaluator: str) -> str:
    asked = f'otel_evals:failures:ratio{{window="$window", {AGENT}, gen_ai_evaluation_name="{evaluator}"}}'
    return f"1 - {asked}"


def _goals() -> object:
    return panels.number(
        "Goals achieved",
        "Share of sessions whose user left with what they came for. Read the worst sessions of an agent that falls.",
        [panels.query(_achieved("goal_achievement"), "{{job}} {{gen_ai_agent_name}}")],
        unit="percentunit",
        width=6,
        decimals=1,
    )


def _communication() -> object:
    return panels.number(
        "Failures well told",
        "Of the sessions in which a tool failed, those whose user was told so acceptably. Low: mend the prompt for "
        "failing tools first, that is cheaper than the tools.",
        [panels.query(_achieved("failure_communication"), "{{job}} {{gen_ai_agent_name}}")],
        unit="percentunit",
        width=6,
        decimals=1,
    )


def _failures() -> object:
    who = "{{job}} {{gen_ai_agent_name}} {{gen_ai_evaluation_name}}"
    panel = panels.curves(
        "$evaluator: failure rate with its 95 % band",
        "Solid: the rate; dashed: its 95 % interval. Two agents differ, or an agent changed, if the bands are apart. "
        "A wide band means few judged sessions, not a bad agent.",
        [
            panels.query(failures("ratio"), who),
            panels.query(failures("lower"), f"{who} lower"),
            panels.query(failures("upper"), f"{who} upper"),
        ],
        top=1,
    )
    return panels.for_each_evaluator(panels.dotted(panel))


def _effective_n() -> object:
    return panels.curves(
        "n: what the sample is worth",
        "Evenly sampled sessions that would be as precise. Below the dashed line (30) do not act on a rate: raise the "
        "sampling rate or the window. 100 gives about ± 10 points, 400 about ± 5, 2,400 about ± 2.",
        [panels.query(failures("effective_n"), "{{job}} {{gen_ai_agent_name}} {{gen_ai_evaluation_name}}")],
        unit="short",
        threshold=30,
    )


def _labels() -> object:
    scored = f"{WEIGHT}{{{EVALUATOR}, {SCORED}}}"
    panel = panels.stacked(
        "$evaluator: label mix",
        "What kind of outcome: share of each label among the scored sessions, weighted back to all. One rate can hide "
        "two causes; fabrications (hallucination) are worse than stalls.",
        [panels.query(share(scored, scored, "gen_ai_evaluation_score_label"), "{{gen_ai_evaluation_score_label}}")],
        top=1,
    )
    return panels.for_each_evaluator(panel)


def _signals() -> object:
    signals = f"otel_evals_signals_total{{{AGENT}, {FIRST}}}"
    completed = f"otel_evals_sessions_completed_total{{{AGENT}, {FIRST}}}"
    return panels.curves(
        "Signals on all sessions",
        "Share of ALL sessions with evidence that needs no judge: failed tools, repeated questions, frustration, "
        "attempts on the judge. No sampling, so a rise here is real at once; look at the failure rate next.",
        [panels.query(share(signals, completed, "job, otel_evals_signal", "job"), "{{job}} {{otel_evals_signal}}")],
    )


def _coverage() -> object:
    return panels.stacked(
        "Coverage: what became of the sessions",
        "Every completed session has exactly one decision. judged and sampled_out are by design. over_budget: raise "
        "the budget or lower the rates. queue_full, expired: the judge is too slow. unscorable: the judge failed. "
        "not_evaluable: the app exports no content.",
        [panels.query(share(DECIDED, COMPLETED, "otel_evals_decision"), "{{otel_evals_decision}}")],
        top=1,
    )


def _scores() -> object:
    score = f"gen_ai_evaluation_score_%s{{{EVALUATOR}}}"
    total, count = (increase(score % part, "gen_ai_evaluation_name") for part in ("sum", "count"))
    buckets = increase(score % "bucket", "gen_ai_evaluation_name, le")
    return panels.curves(
        "Scores and exemplars: click a low diamond to open its trace",
        "Lines: mean score of the judged sessions, and the score that the lowest tenth stays below (not weighted, so "
        "compare them with themselves only). Diamonds: single "
        "sessions; each links to the trace of its last turn, and from there to its evaluation events. None to be "
        "seen: see 'Exemplars' in docs/operations.md.",
        [
            panels.query(f"{total} / ({count} > 0)", "{{gen_ai_evaluation_name}}: mean"),
            panels.query(
                f"histogram_quantile(0.1, {buckets})", "{{gen_ai_evaluation_name}}: lowest tenth", exemplars=True
            ),
        ],
        unit="short",
        top=1,
    )


def _worst() -> object:
    return panels.failed_sessions(
        "Worst recent sessions",
        "Sessions below the threshold, lowest score first. Click a session: its trace, or all that was said about it. "
        "Read five before you change anything.",
    )


def _explanations() -> object:
    return panels.events(
        "What the judge said",
        "Label and explanation of each failed evaluation. Empty texts: OTEL_EVALS_EXPLANATIONS is off, or a collector "
        "with the privacy configuration removed them.",
    )
