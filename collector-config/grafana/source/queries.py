"""The questions in PromQL and LogQL. `$window` is the trailing window of each point: 15m, 1h, 6h or 1d."""

from __future__ import annotations

__all__ = [
    "AGENT",
    "COMPARED",
    "EVALUATOR",
    "EVENTS",
    "FIRST",
    "MODEL_CHANGED",
    "PICKED",
    "PROMPT_CHANGED",
    "SCORED",
    "SERVICE",
    "compared",
    "failures",
    "growth",
    "hourly",
    "increase",
    "share",
    "wilson",
]

Z = 1.959963984540054
"""Normal quantile of a two-sided 95 % interval, as in `prometheus/build_rules.py`."""

SERVICE = 'job=~"$service"'
AGENT = f'{SERVICE}, gen_ai_agent_name=~"$agent"'
EVALUATOR = f'{AGENT}, gen_ai_evaluation_name=~"$evaluator"'
# A session that was judged again after it resumed is counted under `update`; a rate counts each session once.
FIRST = 'otel_evals_session_generation="first"'
SCORED = f'{FIRST}, otel_evals_outcome=~"passed|failed"'
PICKED = 'otel_evals_decision=~"judged|unscorable|over_budget|queue_full|expired"'
COMPARED = "service_version,gen_ai_request_model,deployment_environment_name"
"""Resource attributes, as labels of `target_info`, that versions of an agent may be told apart by."""

EVENTS = '{service_name=~"$service"} | gen_ai_evaluation_name=~"$evaluator" | gen_ai_agent_name=~"$agent"'
"""Evaluation events in Loki."""


def failures(figure: str) -> str:
    """A recorded figure per service, agent and evaluator: `ratio`, `lower`, `upper` or `effective_n`."""
    return f'otel_evals:failures:{figure}{{window="$window", {EVALUATOR}}}'


def growth(series: str, by: str) -> str:
    """By how much counters grew within the window, summed; a counter that is new counts from zero."""
    return f"sum by ({by}) ({_grown(series)})"


def increase(series: str, by: str) -> str:
    """As `growth` but blind to first samples, at half the cost: for the many series of a histogram."""
    return f"sum by ({by}) (increase({series}[$window]))"


def hourly(series: str, by: str) -> str:
    """Growth per hour, at the pace of the window."""
    return f"sum by ({by}) (rate({series}[$window])) * 3600"


def share(part: str, whole: str, by: str, of: str = "") -> str:
    """Growth of `part` by the labels `by`, as a share of that of `whole` by the labels `of`, which `by` contains."""
    return f"{growth(part, by)} / on ({of}) group_left () ({growth(whole, of)} > 0)"


def compared(series: str) -> str:
    """Growth by what `$compare` names: the label comes from the resource, which Prometheus has as `target_info`."""
    # An instance id that was taken over by a new version would match twice; one is enough.
    resource = 'topk by (job, instance) (1, last_over_time(target_info{job=~"$service"}[$window]))'
    return (
        f"sum by ($compare, gen_ai_evaluation_name) (({_grown(series)})"
        f" * on (job, instance) group_left ($compare) {resource})"
    )


def wilson(failed: str, weight: str, squares: str) -> tuple[str, str]:
    """Ends of the 95 % interval of a weighted rate, Wilson's on the effective n (Σw)²/Σw² (Kish).

    Args:
        failed: Σw of the failed sessions.
        weight: Σw of the scored sessions.
        squares: Σw² of the scored sessions.
    """
    # (p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n) with p = F/W and n = W²/Q, times W²: each sum but few times.
    f, w, q = f"({failed})", f"({weight})", f"({Z**2} * {squares})"
    reach = f"sqrt({q} * ({f} * ({w} - {f}) + {q} / 4))"
    scale = f"({w} ^ 2 + {q})"
    return f"({f} * {w} + {q} / 2 - {reach}) / {scale}", f"({f} * {w} + {q} / 2 + {reach}) / {scale}"


def _grown(series: str) -> str:
    # `increase` sees a new counter only from its first sample on, and for a rare label that first one is often all
    # there is: what was not there before the window has grown by all that it is.
    new = f"last_over_time({series}[$window]) unless last_over_time({series}[1d] offset $window)"
    return f"({new}) or increase({series}[$window])"


def _appeared(label: str) -> str:
    """The values of a judge's label per service that were not there five minutes before, in the last day."""
    series = f"otel_evals_judge_duration_seconds_count{{{SERVICE}}}"
    return f"count by (job, {label}) ({series}) unless count by (job, {label}) (last_over_time({series}[1d] offset 5m))"


MODEL_CHANGED = _appeared("otel_evals_judge_model")
PROMPT_CHANGED = _appeared("otel_evals_judge_prompt_hash")
