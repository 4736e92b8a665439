"""Evaluation health: may the scores be trusted, do they keep up, and what do they cost."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import dashboard as models

from source import panels
from source.queries import PICKED, SERVICE, growth, hourly, increase

__all__ = ["UID", "dashboard"]

UID = "otel-evals-health"
ABOUT = "May the scores be trusted, do they keep up with the sessions, and what do they cost."

COMPLETED = f"otel_evals_sessions_completed_total{{{SERVICE}}}"
DECIDED = f"otel_evals_sessions_total{{{SERVICE}}}"
COST = f"otel_evals_judge_cost_USD_total{{{SERVICE}}}"
DURATION = f"otel_evals_judge_duration_seconds_%s{{{SERVICE}}}"
SPANS = f"otel_evals_spans_total{{{SERVICE}}}"
KEPT_SPAN_S, IGNORED_SPAN_S = 1.5e-6, 0.1e-6
"""Time of the hooks for one span, as `make bench` measures it: upper ends, rounded up."""


def dashboard() -> models.Dashboard:
    made = panels.new_dashboard(UID, "Evaluation health", ABOUT, [panels.SERVICES, panels.WINDOW], sessions=False)
    made.with_row(builders.Row("Does every session get its decision?"))
    for panel in (_ledger(), _balance(), _coverage(), _decisions(), _rates()):
        made.with_panel(panel)
    made.with_row(builders.Row("Does the judge keep up?"))
    for panel in (_queue(), _age(), _latency(), _errors()):
        made.with_panel(panel)
    made.with_row(builders.Row("What does it cost?"))
    for panel in (_cost_now(), _cost_day(), _cost_sessions(), _cost_judged(), _money(), _tokens()):
        made.with_panel(panel)
    made.with_row(builders.Row("What does it take from the app?"))
    for panel in (_spans(), _overhead(), _held(), _drops()):
        made.with_panel(panel)
    return panels.built(made)


def _ledger() -> object:
    return panels.numbers(
        "Ledger",
        "Since each instance started: completed sessions, those with a decision, and those still waiting for a judge. "
        "completed = decided + waiting, up to what is with a judge right now.",
        [
            ("completed", panels.query(f"sum by (job, instance) ({COMPLETED})", now=True)),
            ("decided", panels.query(f"sum by (job, instance) ({DECIDED})", now=True)),
            ("waiting", panels.query(f"sum by (job, instance) (otel_evals_queue_size{{{SERVICE}}})", now=True)),
        ],
        {"job": "service", "instance": "instance"},
        width=panels.HALF,
    )


def _balance() -> object:
    missing = (
        f"sum by (job) ({COMPLETED}) - sum by (job) ({DECIDED}) - sum by (job) (otel_evals_queue_size{{{SERVICE}}})"
    )
    return panels.number(
        "Ledger: sessions without a decision",
        "completed − decided − waiting. Anything up to the judge's concurrency (8) is in work. More, or below 0, for "
        "ten minutes means that rates cannot be trusted: report it with the table beside.",
        [panels.query(missing, "{{job}}")],
        width=6,
        height=panels.HEIGHT,
        steps=((None, "red"), (0, "green"), (100, "red")),
    )


def _coverage() -> object:
    return panels.number(
        "Picked sessions that got a score",
        "Of the sessions that sampling picked, those judged. Below 90 % what is missing is not missing at random, and "
        "rates lean: look at the decisions for the reason.",
        [panels.query(f'otel_evals:coverage:ratio{{window="$window", {SERVICE}}}', "{{job}}")],
        unit="percentunit",
        width=6,
        height=panels.HEIGHT,
        decimals=1,
        steps=((None, "red"), (0.9, "green")),
    )


def _decisions() -> object:
    return panels.stacked(
        "Decisions",
        "Completed sessions by decision in the window. judged and sampled_out are by design; over_budget, queue_full, "
        "expired and unscorable are sessions that should have been judged and were not.",
        [panels.query(growth(DECIDED, "job, otel_evals_decision"), "{{job}} {{otel_evals_decision}}")],
        unit="short",
    )


def _rates() -> object:
    rates = (
        f"max by (job, otel_evals_sampling_rule, gen_ai_evaluation_name) (otel_evals_sampling_rate_ratio{{{SERVICE}}})"
    )
    return panels.curves(
        "Sampling rates",
        "Rate in force per rule and evaluator. A fall that nobody made is the budget thinning: weights make up for it, "
        "intervals widen.",
        [panels.query(rates, "{{job}} {{otel_evals_sampling_rule}} {{gen_ai_evaluation_name}}")],
        top=1,
    )


def _queue() -> object:
    return panels.curves(
        "Sessions waiting for a judge",
        "Waiting, and the room there is (capacity). When it is full, further sessions are counted as queue_full: raise "
        "OTEL_EVALS_JUDGE_CONCURRENCY if the provider allows it, else lower the rates.",
        [
            panels.query(f"sum by (job) (otel_evals_queue_size{{{SERVICE}}})", "{{job}} waiting"),
            panels.query(f"sum by (job) (otel_evals_queue_capacity{{{SERVICE}}})", "{{job}} capacity"),
        ],
        unit="short",
    )


def _age() -> object:
    return panels.curves(
        "Age of the oldest waiting session",
        "Above OTEL_EVALS_JUDGE_DEADLINE (300 s) sessions expire unjudged. Rising: the judge is slower than the "
        "sessions come.",
        [panels.query(f"max by (job) (otel_evals_queue_oldest_age_seconds{{{SERVICE}}})", "{{job}}")],
        unit="s",
    )


def _latency() -> object:
    buckets = increase(DURATION % "bucket", "job, otel_evals_judge_model, le")
    return panels.curves(
        "Time to a verdict",
        "Median and 95th percentile, retries included. A step up with errors beside it is the provider's; without, "
        "longer sessions.",
        [
            panels.query(f"histogram_quantile(0.5, {buckets})", "{{job}} {{otel_evals_judge_model}} median"),
            panels.query(f"histogram_quantile(0.95, {buckets})", "{{job}} {{otel_evals_judge_model}} p95"),
        ],
        unit="s",
    )


def _errors() -> object:
    errors = growth(f"otel_evals_judge_errors_total{{{SERVICE}}}", "job, otel_evals_judge_model, error_type")
    return panels.curves(
        "Failed judge calls",
        "By kind, those mended by a retry included. auth and quota are yours to mend; rate_limited and server_error "
        "the provider's; malformed_answer asks for a better judge.",
        [panels.query(errors, "{{job}} {{otel_evals_judge_model}} {{error_type}}")],
        unit="short",
        no_value="No call failed.",
    )


def _money_panel(title: str, about: str, expression: str, decimals: int = 2) -> object:
    return panels.number(
        title,
        about,
        [panels.query(expression, "{{job}}")],
        unit="currencyUSD",
        width=6,
        decimals=decimals,
    )


def _cost_now() -> object:
    return _money_panel(
        "Judge cost per hour",
        "At the pace of the window. Calls whose price is unknown add nothing: set OTEL_EVALS_INPUT_PRICE.",
        hourly(COST, "job"),
        4,
    )


def _cost_day() -> object:
    return _money_panel(
        "Judge cost per day",
        "At the pace of the window, for 24 hours. Too much: lower the rates, or set OTEL_EVALS_BUDGET_USD_PER_DAY.",
        f"24 * {hourly(COST, 'job')}",
    )


def _cost_sessions() -> object:
    return _money_panel(
        "Judge cost per 1,000 sessions",
        "Of all completed sessions, judged or not: what it costs to watch this traffic at these rates.",
        f"1000 * {growth(COST, 'job')} / ({growth(COMPLETED, 'job')} > 0)",
        4,
    )


def _cost_judged() -> object:
    judged = growth(f'otel_evals_sessions_total{{{SERVICE}, otel_evals_decision="judged"}}', "job")
    return _money_panel(
        "Judge cost per 1,000 judged sessions",
        "What a judgement costs, whatever the rates. A rise: longer sessions, more retries, or a dearer judge.",
        f"1000 * {growth(COST, 'job')} / ({judged} > 0)",
        4,
    )


def _money() -> object:
    return panels.curves(
        "Judge cost by model",
        "USD in the window.",
        [panels.query(growth(COST, "job, otel_evals_judge_model"), "{{job}} {{otel_evals_judge_model}}")],
        unit="currencyUSD",
    )


def _tokens() -> object:
    tokens = growth(f"otel_evals_judge_tokens_total{{{SERVICE}}}", "job, otel_evals_judge_model, gen_ai_token_type")
    return panels.stacked(
        "Judge tokens",
        "Tokens in the window. Input grows with the length of sessions (OTEL_EVALS_TRANSCRIPT_TOKENS is the cap).",
        [panels.query(tokens, "{{job}} {{otel_evals_judge_model}} {{gen_ai_token_type}}")],
        unit="short",
    )


def _spans() -> object:
    return panels.curves(
        "Spans seen",
        "In the window, by outcome. ignored: not of an agent. dropped: see 'Lost before judging'.",
        [panels.query(growth(SPANS, "job, otel_evals_outcome"), "{{job}} {{otel_evals_outcome}}")],
        unit="short",
    )


def _overhead() -> object:
    kept = f'sum by (job) (rate(otel_evals_spans_total{{{SERVICE}, otel_evals_outcome!="ignored"}}[$window]))'
    ignored = f'sum by (job) (rate(otel_evals_spans_total{{{SERVICE}, otel_evals_outcome="ignored"}}[$window]))'
    return panels.curves(
        "Overhead in the app's threads",
        "Share of one CPU core spent in the hooks: spans per second times the measured time for each (1.5 µs kept, "
        "0.1 µs ignored). An estimate; run `make bench` on your machine for its own figures.",
        [panels.query(f"{KEPT_SPAN_S} * {kept} + ({IGNORED_SPAN_S} * {ignored} or 0 * {kept})", "{{job}}")],
        decimals=4,
    )


def _held() -> object:
    return panels.curves(
        "Content held for open sessions",
        "Bytes, bounded by OTEL_EVALS_MAX_OPEN_BYTES and OTEL_EVALS_BUFFER_BYTES. Steadily rising: sessions that "
        "never end; lower OTEL_EVALS_IDLE_TIMEOUT.",
        [
            panels.query(f"sum by (job) (otel_evals_sessions_buffered_bytes{{{SERVICE}}})", "{{job}} bytes"),
        ],
        unit="bytes",
    )


def _drops() -> object:
    dropped = f'otel_evals_spans_total{{{SERVICE}, otel_evals_outcome="dropped"}}'
    evicted = f"otel_evals_sessions_evictions_total{{{SERVICE}}}"
    lost = f'otel_evals_sessions_total{{{SERVICE}, {PICKED}, otel_evals_decision!="judged"}}'
    return panels.curves(
        "Lost before judging",
        "Picked sessions that got no score, dropped spans (raise OTEL_EVALS_BUFFER_SPANS), and sessions completed by a "
        "cap. Nothing to be seen is what you want.",
        [
            panels.query(growth(lost, "job, otel_evals_decision"), "{{job}} picked, {{otel_evals_decision}}"),
            panels.query(growth(dropped, "job, error_type"), "{{job}} spans dropped: {{error_type}}"),
            panels.query(growth(evicted, "job, error_type"), "{{job}} sessions cut: {{error_type}}"),
        ],
        unit="short",
        no_value="Nothing was lost.",
    )
