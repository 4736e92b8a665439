"""What the panels show, computed a second time from the raw evaluations: equal to 1e-6."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest

from otel_evals.evaluation import Evaluation, JudgedSession
from otel_evals.sampling.estimate import kish, weighted_rate, wilson
from otel_evals.signals import detect, signal_names
from tests.grafana.asking import ask_instant
from tests.grafana.dashboards import filled_in, query_of
from tests.grafana.filled import SESSIONS, Filled

pytestmark = [
    pytest.mark.components,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("filled"),
]

QUALITY, HEALTH, AGENT = "otel-evals-quality", "otel-evals-health", "otel-evals-agent"
RATES = "Failure rates in the last window"
EXACT = {"abs": 1e-6, "rel": 1e-9}
Key = tuple[str, ...]


def shown(filled: Filled, dashboard: str, panel: str, ref: str, labels: Key, **chosen: str) -> dict[Key, float]:
    """The labels of each series to what the panel shows, after the first part of the run."""
    text = filled_in(query_of(dashboard, panel, ref).text, {"window": "1h", **chosen})
    found = ask_instant(filled.prometheus, text, filled.exact_at)
    return {tuple(series["metric"].get(label, "") for label in labels): float(series["value"][1]) for series in found}


def scored(filled: Filled) -> Iterator[tuple[str, JudgedSession, Evaluation]]:
    """(service, session, evaluation) of every score that enters a rate."""
    for service, results in filled.judged.items():
        for result in results:
            for evaluation in result.evaluations:
                if evaluation.outcome == "scored" and evaluation.applicable:
                    yield service, result, evaluation


def by_agent(filled: Filled) -> dict[Key, tuple[list[float], list[bool]]]:
    """(service, agent, evaluator) to weights and failures."""
    found: dict[Key, tuple[list[float], list[bool]]] = defaultdict(lambda: ([], []))
    for service, result, evaluation in scored(filled):
        weights, failed = found[service, str(result.session.agent_name), evaluation.evaluator]
        weights.append(evaluation.weight)
        failed.append(not evaluation.passed)
    return dict(found)


def test_the_run_is_large_enough_to_mean_something(filled: Filled) -> None:
    agents = {session.agent_name for decided in filled.decisions.values() for session, _ in decided}
    assert sum(len(decided) for decided in filled.decisions.values()) >= SESSIONS >= 2000
    assert (len(filled.decisions), len(agents)) == (2, 3)
    assert {e.weight for _, _, e in scored(filled)} == {1.0, 4.0}


@pytest.mark.parametrize(
    ("ref", "figure"), [("A", "value"), ("B", "low"), ("C", "high"), ("D", "effective_n"), ("E", "n")]
)
def test_weighted_rate_interval_and_n(filled: Filled, ref: str, figure: str) -> None:
    expected = {key: getattr(weighted_rate(*judged), figure) for key, judged in by_agent(filled).items()}

    labels = ("job", "gen_ai_agent_name", "gen_ai_evaluation_name")
    assert shown(filled, QUALITY, RATES, ref, labels) == pytest.approx(expected, **EXACT)


@pytest.mark.parametrize("evaluator", ["failure_rate", "goal_achievement", "failure_communication"])
def test_label_mix(filled: Filled, evaluator: str) -> None:
    weights: Counter[str] = Counter()
    for _, _, evaluation in scored(filled):
        if evaluation.evaluator == evaluator:
            weights[str(evaluation.label)] += evaluation.weight
    expected = {(label,): weight / sum(weights.values()) for label, weight in weights.items()}

    labels = ("gen_ai_evaluation_score_label",)
    found = shown(filled, QUALITY, "$evaluator: label mix", "A", labels, evaluator=evaluator)
    assert len(expected) > 2
    assert found == pytest.approx(expected, **EXACT)


def test_cost_per_thousand_sessions(filled: Filled) -> None:
    costs = {s: sum(j.judgement.cost_usd or 0.0 for j in judged) for s, judged in filled.judged.items()}
    expected = {(s,): 1000 * cost / len(filled.decisions[s]) for s, cost in costs.items()}

    assert shown(filled, HEALTH, "Judge cost per 1,000 sessions", "A", ("job",)) == pytest.approx(expected, **EXACT)
    assert expected["shop-api",] > 0


def test_cost_per_thousand_judged_sessions(filled: Filled) -> None:
    expected = {
        (s,): 1000
        * sum(j.judgement.cost_usd or 0.0 for j in judged)
        / sum(decision == "judged" for _, decision in filled.decisions[s])
        for s, judged in filled.judged.items()
    }

    found = shown(filled, HEALTH, "Judge cost per 1,000 judged sessions", "A", ("job",))
    assert found == pytest.approx(expected, **EXACT)


def test_coverage_by_decision(filled: Filled) -> None:
    decided = [decision for decisions in filled.decisions.values() for _, decision in decisions]
    expected = {(decision,): number / len(decided) for decision, number in Counter(decided).items()}

    panel = "Coverage: what became of the sessions"
    assert set(expected) == {("judged",), ("sampled_out",), ("unscorable",)}
    assert shown(filled, QUALITY, panel, "A", ("otel_evals_decision",)) == pytest.approx(expected, **EXACT)


def test_share_of_judged_sessions_by_service(filled: Filled) -> None:
    expected = {
        (service,): sum(decision == "judged" for _, decision in decided) / len(decided)
        for service, decided in filled.decisions.items()
    }

    assert shown(filled, QUALITY, "Share judged", "A", ("job",)) == pytest.approx(expected, **EXACT)


def test_share_of_sessions_with_a_signal(filled: Filled) -> None:
    expected = {
        (service, signal): number / len(decided)
        for service, decided in filled.decisions.items()
        for signal, number in Counter(name for session, _ in decided for name in signal_names(detect(session))).items()
    }

    panel = "Signals on all sessions"
    assert shown(filled, QUALITY, panel, "A", ("job", "otel_evals_signal")) == pytest.approx(expected, **EXACT)


def test_the_ledger_balances(filled: Filled) -> None:
    found = shown(filled, HEALTH, "Ledger: sessions without a decision", "A", ("job",))
    assert found == {("shop-api",): 0, ("travel-web",): 0}


@pytest.mark.parametrize("service", ["shop-api", "travel-web"])
def test_rate_and_interval_of_a_version(filled: Filled, service: str) -> None:
    judged = {
        evaluator: values
        for (of, agent, evaluator), values in by_agent(filled).items()
        if (of, agent) == (service, "bank-assistant")
    }
    expected: dict[str, dict[Key, float]] = {ref: {} for ref in "ABCDE"}
    for evaluator, (weights, failed) in judged.items():
        rate = weighted_rate(weights, failed).value
        low, high = wilson(rate, kish(weights))
        figures = (rate, low, high, kish(weights), float(len(weights)))
        for ref, figure in zip("ABCDE", figures, strict=True):
            expected[ref]["1.4.0", evaluator] = figure

    labels = ("service_version", "gen_ai_evaluation_name")
    chosen = {"service": service, "agent": "bank-assistant", "compare": "service_version"}
    for ref, figures_of_ref in expected.items():
        found = shown(filled, AGENT, "Side by side, last window", ref, labels, **chosen)
        assert found == pytest.approx(figures_of_ref, **EXACT), ref
