"""Every query of every panel, variable and annotation, asked of a real Prometheus that real sessions have filled."""

from __future__ import annotations

import math
import re

import pytest

from tests.grafana.asking import ask_instant, ask_label_values, ask_range
from tests.grafana.dashboards import Query, filled_in, queries, query_of
from tests.grafana.events import Event, evaluation_events
from tests.grafana.filled import Filled

pytestmark = [
    pytest.mark.components,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("filled"),  # with --dist loadgroup one worker fills, not each
]

QUERIES = list(queries())
PROMETHEUS = [query for query in QUERIES if query.store == "prometheus"]
LOKI = [query for query in QUERIES if query.store == "loki"]
WINDOWS = ("15m", "1h", "6h", "1d")
ONE_AGENT = {"service": "shop-api", "agent": "bank-assistant"}
COMPARED = ("service_version", "gen_ai_request_model", "deployment_environment_name")
NOTHING_HAPPENED = {
    ("otel-evals-health", "Lost before judging", "C"),  # no session was cut
}


@pytest.fixture(scope="module")
def sent(filled: Filled) -> list[Event]:
    """The evaluation events of the whole run."""
    return evaluation_events(filled.collector)


def choices(query: Query) -> list[dict[str, str]]:
    """What a user may have chosen; what is not named is All."""
    if query.dashboard != "otel-evals-agent":
        return [{"window": window} for window in WINDOWS]
    if "$compare" not in query.text:
        return [{**ONE_AGENT, "window": window} for window in WINDOWS]
    return [{**ONE_AGENT, "window": window, "compare": label} for window in WINDOWS for label in COMPARED]


@pytest.mark.parametrize("query", PROMETHEUS, ids=str)
def test_prometheus_answers_the_query_with_numbers(filled: Filled, query: Query) -> None:
    for chosen in choices(query):
        text = filled_in(query.text, chosen)
        if query.kind == "variable":
            assert ask_label_values(filled.prometheus, text), text
            continue
        numbers = answered(filled, query, text)
        if (query.dashboard, query.owner, query.ref) in NOTHING_HAPPENED:
            assert not numbers
        else:
            assert any(math.isfinite(number) for number in numbers), text


def answered(filled: Filled, query: Query, text: str) -> list[float]:
    if query.kind == "instant":
        return [float(series["value"][1]) for series in ask_instant(filled.prometheus, text, filled.end)]
    found = ask_range(filled.prometheus, text, filled.exact_at - 2, filled.end)
    return [float(value) for series in found for _, value in series["values"]]


def test_queries_of_curves_give_as_many_series_as_there_are_things_to_compare(filled: Filled) -> None:
    rate = query_of("otel-evals-quality", "$evaluator: failure rate with its 95 % band", "A")
    everything = ask_instant(filled.prometheus, filled_in(rate.text, {"window": "1h"}), filled.exact_at)
    chosen = {"window": "1h", "service": "shop-api", "evaluator": "failure_rate"}
    some = ask_instant(filled.prometheus, filled_in(rate.text, chosen), filled.exact_at)

    assert (len(everything), len(some)) == (12, 2), "two agents in each of two services, three evaluators"


def test_a_version_stands_beside_the_one_before(filled: Filled) -> None:
    query = query_of("otel-evals-agent", "Side by side, last window", "A")
    for label, values in (
        ("service_version", {"1.4.0", "1.5.0"}),
        ("gen_ai_request_model", {"simulated-large", "simulated-small"}),
    ):
        text = filled_in(query.text, {**ONE_AGENT, "window": "1h", "compare": label, "evaluator": "failure_rate"})
        found = ask_instant(filled.prometheus, text, filled.end)
        assert {series["metric"][label] for series in found} == values


@pytest.mark.parametrize(("name", "label"), [("model", "scripted-2"), ("prompt", None)])
def test_another_judge_model_or_prompt_is_marked_when_it_comes(filled: Filled, name: str, label: str | None) -> None:
    query = query_of("otel-evals-quality", f"Judge {name} changed", "annotation")
    text = filled_in(query.text, {"service": "shop-api"})
    before = ask_instant(filled.prometheus, text, filled.exact_at)
    after = ask_instant(filled.prometheus, text, filled.end)

    assert len(before) == 1
    assert len(after) == 2
    assert label is None or label in {series["metric"]["otel_evals_judge_model"] for series in after}


@pytest.mark.parametrize("query", [query for query in PROMETHEUS if query.exemplars], ids=str)
def test_the_query_has_exemplars_of_judged_traces(filled: Filled, sent: list[Event], query: Query) -> None:
    found = filled.prometheus.exemplars(filled_in(query.text, {**ONE_AGENT, "window": "1h"}))
    shown = {exemplar["labels"]["trace_id"] for series in found for exemplar in series["exemplars"]}
    judged = {event["trace_id"] for event in sent if event["service_name"] == "shop-api"}

    assert shown
    assert shown <= judged


# --- Loki: its binary cannot be had, so its queries are read and applied to the events that were sent -------------

_PIPELINE = re.compile(r'(\w+)(=~|=)"((?:[^"\\]|\\.)*)"')


@pytest.mark.parametrize("query", LOKI, ids=str)
def test_the_query_finds_failed_sessions_among_the_events_that_were_sent(sent: list[Event], query: Query) -> None:
    text = filled_in(query.text, {**ONE_AGENT, "evaluator": "failure_rate"})
    conditions = _PIPELINE.findall(text.partition("line_format")[0])
    found = [event for event in sent if all(holds(event, *condition) for condition in conditions)]

    assert {name for name, _, _ in conditions} <= set().union(*sent)
    assert found
    assert {(event["gen_ai_evaluation_name"], event["otel_evals_passed"]) for event in found} == {
        ("failure_rate", "false")
    }


@pytest.mark.parametrize("query", LOKI, ids=str)
def test_loki_would_not_refuse_the_selector_of_all_services(query: Query) -> None:
    selector = filled_in(query.text, {}).partition("}")[0]
    [(_, _, pattern)] = _PIPELINE.findall(selector)

    assert not re.fullmatch(pattern, ""), "a selector needs a matcher that does not match an empty value"


def test_the_columns_of_the_table_are_attributes_of_the_events(sent: list[Event]) -> None:
    attributes = set().union(*sent)
    shown = {
        "otel_evals_session_id",
        "gen_ai_evaluation_name",
        "gen_ai_evaluation_score_value",
        "gen_ai_evaluation_score_label",
        "gen_ai_agent_name",
        "gen_ai_evaluation_explanation",
    }

    assert shown <= attributes


def holds(event: Event, name: str, operator: str, value: str) -> bool:
    found = event.get(name, "")
    return bool(re.fullmatch(value, found)) if operator == "=~" else found == value
