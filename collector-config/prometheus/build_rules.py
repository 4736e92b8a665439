"""Writes `rules/recording.yaml`: the same few expressions for several windows, which YAML cannot say once.

Run it after a change: `python collector-config/prometheus/build_rules.py`. The estimates are those of
`otel_evals.sampling.estimate.weighted_rate`, which says where they come from; a test compares the two.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

__all__ = ["OBJECTIVES", "WINDOWS", "recording_rules"]

FILE = Path(__file__).parent / "rules" / "recording.yaml"

WINDOWS = ("15m", "1h", "6h", "1d")

OBJECTIVES = {"failure_rate": 0.10, "goal_achievement": 0.20, "failure_communication": 0.20}
"""Share of sessions per evaluator that may fail. Yours to set; the alerts compare with it."""

# `service_name` is there when a scoring service judges the sessions of many services; else `job` is the service.
BY = "job, service_name, gen_ai_agent_name, gen_ai_evaluation_name"
BY_RULE = f"{BY}, otel_evals_sampling_rule"
# Sessions that were judged again after they resumed are counted under `update`; rates count each session once.
SCORED = 'otel_evals_outcome=~"passed|failed", otel_evals_session_generation="first"'
FAILED = 'otel_evals_outcome="failed", otel_evals_session_generation="first"'
# What was picked for judging, whatever became of it.
PICKED = 'otel_evals_decision=~"judged|unscorable|over_budget|queue_full|expired"'
Z = 1.959963984540054

HEADER = """\
# Written by build_rules.py; change that, not this.
#
# Per job, service, agent and evaluator, for the windows 15m, 1h, 6h and 1d (label `window`):
#   otel_evals:failures:ratio        share of sessions that fail, weighted back to all sessions
#   otel_evals:failures:lower/upper  its 95 % interval
#   otel_evals:failures:effective_n  how many evenly sampled sessions would be as precise
#   otel_evals:failures:objective    the share that may fail; compare with `lower` before you wake anybody
# and per job and window:
#   otel_evals:coverage:ratio        of the sessions picked for judging, the share that got a score
"""


def recording_rules() -> dict[str, Any]:
    """The content of the rules file."""
    return {
        "groups": [
            {"name": "otel_evals_windows", "rules": [r for w in WINDOWS for r in _sums(w)]},
            {"name": "otel_evals_estimates", "rules": _estimates()},
            {"name": "otel_evals_objectives", "rules": _objectives()},
        ]
    }


def _sums(window: str) -> list[dict[str, Any]]:
    count = "otel_evals_evaluations_total"
    weight = "otel_evals_evaluations_weight_total"
    squared = "otel_evals_evaluations_weight_squared_total"
    picked = _growth(f"otel_evals_sessions_total{{{PICKED}}}", "job", window)
    judged = _growth('otel_evals_sessions_total{otel_evals_decision="judged"}', "job", window)
    rules = {
        "otel_evals:weight:increase": _growth(f"{weight}{{{SCORED}}}", BY, window),
        # Without one failure there is no series of failures, and the rate is 0, not unknown.
        "otel_evals:weight_failed:increase": _or_zero(
            _growth(f"{weight}{{{FAILED}}}", BY, window), "otel_evals:weight:increase", window
        ),
        "otel_evals:scored_by_rule:increase": _growth(f"{count}{{{SCORED}}}", BY_RULE, window),
        "otel_evals:failed_by_rule:increase": _or_zero(
            _growth(f"{count}{{{FAILED}}}", BY_RULE, window), "otel_evals:scored_by_rule:increase", window
        ),
        "otel_evals:weight_squared_by_rule:increase": _growth(f"{squared}{{{SCORED}}}", BY_RULE, window),
        "otel_evals:sessions_picked:increase": picked,
        "otel_evals:sessions_judged:increase": _or_zero(judged, "otel_evals:sessions_picked:increase", window),
    }
    return [_rule(record, expression, window) for record, expression in rules.items()]


def _or_zero(part: str, whole: str, window: str) -> str:
    """`part`, and 0 where only `whole`, a rule further up in the same group, has a value."""
    return f'{part}\nor ignoring (window)\n0 * {whole}{{window="{window}"}}'


def _growth(series: str, by: str, window: str) -> str:
    """By how much counters grew in a window, new ones from zero.

    `increase` sees a new counter only from its first sample on, but a counter of ours appears with its first session
    on it, and a rare label may never grow again: the first sample itself has to be counted too.
    """
    return (
        f"sum by ({by}) (\n"
        f'    label_replace(increase({series}[{window}]), "part", "grown", "", "")\n'
        f"  or\n"
        f"    label_replace(min_over_time({series}[{window}])"
        f' unless last_over_time({series}[1d] offset {window}), "part", "first", "", "")\n'
        f")"
    )


def _estimates() -> list[dict[str, Any]]:
    p, n = "otel_evals:failures:ratio", "otel_evals:failures:effective_n"
    total, squares = "otel_evals:weight:increase", "otel_evals:weight_squared_by_rule:increase"
    share, variance = "otel_evals:failed_by_rule:share", "otel_evals:weight_failed:variance"
    of_all = f"on ({BY}, window) group_left ()"
    rarer = f"(0.5 - abs({p} - 0.5))"
    centre = f"{p} + {Z**2 / 2} / {n}"
    spread = f"{Z} * sqrt({p} * (1 - {p}) / {n} + {Z**2 / 4} / {n} ^ 2)"
    scale = f"(1 + {Z**2} / {n})"
    rules = {
        # Nothing scored in the window: no rate, rather than 0/0.
        p: f"otel_evals:weight_failed:increase / ({total} > 0)",
        # Per sampling rule, whose sessions have the same weight, and drawn towards the overall rate by as many
        # sessions as hold one failure: a rule that had none yet is not certain to have none.
        share: f"(otel_evals:failed_by_rule:increase * {of_all} {rarer} + {of_all} {p})"
        f" / (otel_evals:scored_by_rule:increase * {of_all} {rarer} + 1)",
        variance: f"sum by ({BY}, window) ({squares} * ({share} * (1 - {share}) + ({share} - {of_all} {p}) ^ 2))",
        n: f"({p} * (1 - {p}) * {total} ^ 2 / ({variance} > 0)) or {total} ^ 2 / sum by ({BY}, window) ({squares})",
        "otel_evals:failures:lower": f"clamp_min(({centre} - {spread}) / {scale}, 0)",
        "otel_evals:failures:upper": f"clamp_max(({centre} + {spread}) / {scale}, 1)",
        "otel_evals:coverage:ratio": "otel_evals:sessions_judged:increase / (otel_evals:sessions_picked:increase > 0)",
    }
    return [_rule(record, expression) for record, expression in rules.items()]


def _objectives() -> list[dict[str, Any]]:
    return [
        _rule("otel_evals:failures:objective", f"vector({share})") | {"labels": {"gen_ai_evaluation_name": evaluator}}
        for evaluator, share in OBJECTIVES.items()
    ]


def _rule(record: str, expression: str, window: str | None = None) -> dict[str, Any]:
    rule: dict[str, Any] = {"record": record, "expr": expression}
    return rule if window is None else rule | {"labels": {"window": window}}


class _Dumper(yaml.SafeDumper):
    """Expressions of several lines as blocks."""


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def render() -> str:
    """The text of the rules file."""
    return HEADER + yaml.dump(recording_rules(), Dumper=_Dumper, sort_keys=False, width=1000)


if __name__ == "__main__":
    FILE.write_text(render())
