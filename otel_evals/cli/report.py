"""What `demo` and `replay` conclude from judged sessions: rates with intervals and the worst sessions.

The figures are weighted by the sampling probability, so they speak about all sessions, not only about
those that were judged.
"""

from __future__ import annotations

import io
import math
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from otel_evals.evaluation import Decision, Evaluation, JudgedSession
from otel_evals.sampling.estimate import Estimate, weighted_mean, weighted_rate
from otel_evals.sessions.model import Session

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["Report", "output_console", "session_row"]

WORST = 3
"""Sessions shown in full."""
PLAIN_WIDTH = 100
"""Columns of output that goes to a file or pipe, so that it does not depend on anybody's window."""
QUOTES = 2
"""Quotes shown for each failed evaluation."""
QUOTE_LENGTH = 160

NOTE = (
    "Weighted by sampling probability. n: sessions to which the question applies; the failure rate is about "
    "those in which the agent did not know, could not, or made something up."
)
FAILURE_RATE = "failure_rate"
TITLES = {
    "failure_rate": "Failure rate",
    "goal_achievement": "Goal achievement",
    "failure_communication": "Failure communication",
}


@dataclass
class Results:
    """What one evaluator found."""

    weights: list[float] = field(default_factory=list)
    passed: list[bool] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    labels: Counter[str] = field(default_factory=Counter)
    """Of the sessions that count."""
    not_applicable: int = 0
    unscorable: Counter[str] = field(default_factory=Counter)
    """By `error.type`."""

    def add(self, evaluation: Evaluation) -> None:
        if evaluation.outcome == "unscorable" or evaluation.score is None:
            self.unscorable[evaluation.error_type or "unknown"] += 1
        elif evaluation.outcome == "not_applicable" or not evaluation.applicable:
            self.not_applicable += 1
        else:
            self.weights.append(evaluation.weight)
            self.passed.append(bool(evaluation.passed))
            self.scores.append(evaluation.score)
            self.labels[evaluation.label or "none"] += 1

    @property
    def fail_rate(self) -> Estimate:
        return weighted_rate(self.weights, [not passed for passed in self.passed])

    @property
    def pass_rate(self) -> Estimate:
        return weighted_rate(self.weights, self.passed)

    @property
    def mean(self) -> Estimate:
        return weighted_mean(self.weights, self.scores)


class Report:
    """Takes in sessions in any order and says the same in the end."""

    def __init__(self) -> None:
        self.decisions: Counter[Decision] = Counter()
        self.results: defaultdict[str, Results] = defaultdict(Results)
        self.worst: list[JudgedSession] = []
        self.models: set[str] = set()
        self.calls = 0
        self.tokens = 0
        self.cost_usd: float | None = None
        """None: no call had a known price."""

    def decided(self, decision: Decision) -> None:
        """A session completed with this decision."""
        self.decisions[decision] += 1

    def judged(self, judged: JudgedSession) -> None:
        """A session has its results."""
        judgement = judged.judgement
        self.models.add(judgement.model)
        self.calls += judgement.calls
        self.tokens += judgement.input_tokens + judgement.output_tokens
        if judgement.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + judgement.cost_usd
        for evaluation in judged.evaluations:
            self.results[evaluation.evaluator].add(evaluation)
        if any(evaluation.passed is False for evaluation in judged.evaluations):
            self.worst = sorted([*self.worst, judged], key=_badness)[:WORST]

    @property
    def completed(self) -> int:
        return sum(self.decisions.values())

    @property
    def fruitless(self) -> bool:
        """No session came, or the judge failed on everything that it was asked."""
        asked_in_vain = any(results.unscorable for results in self.results.values())
        return not self.completed or (asked_in_vain and not any(r.scores for r in self.results.values()))

    def evaluators(self) -> list[str]:
        """Built-in ones in their usual order, then further ones by name."""
        known = [name for name in TITLES if name in self.results]
        return known + sorted(set(self.results) - set(TITLES))

    # --- JSON -----------------------------------------------------------------------------------------------

    def summary(self) -> dict[str, Any]:
        """The figures as JSON; NaN and infinite bounds (nothing to estimate from) become null."""
        return {
            "sessions": self.completed,
            "decisions": dict(sorted(self.decisions.items())),
            "judge": {
                "models": sorted(self.models),
                "calls": self.calls,
                "tokens": self.tokens,
                "cost_usd": self.cost_usd,
            },
            "evaluators": {name: self._summary_of(name) for name in self.evaluators()},
            "worst": [judged.session.session_id for judged in self.worst],
        }

    def _summary_of(self, name: str) -> dict[str, Any]:
        results = self.results[name]
        figures = {"pass_rate": results.pass_rate, "mean_score": results.mean}
        if name == FAILURE_RATE:
            figures = {"failure_rate": results.fail_rate, **figures}
        return {
            **{figure: _json_of(estimate) for figure, estimate in figures.items()},
            "labels": dict(sorted(results.labels.items())),
            "not_applicable": results.not_applicable,
            "unscorable": dict(sorted(results.unscorable.items())),
        }

    # --- Table ----------------------------------------------------------------------------------------------

    def render(self, console: Console) -> None:
        """Print decisions, figures, labels and the worst sessions."""
        console.print(f"Judge: {self._judge_line()}", highlight=False, markup=False)
        decisions = ", ".join(f"{number} {name}" for name, number in sorted(self.decisions.items()))
        console.print(f"Sessions: {self.completed} completed ({decisions or 'none'})", highlight=False)
        if self.results:
            console.print("\nScores", style="bold", highlight=False)
            console.print(NOTE, style="dim", highlight=False)
            console.print(self._figures())
            self._render_labels(console)
        self._render_worst(console)

    def _judge_line(self) -> str:
        if not self.models:
            return "none was needed"
        names = ", ".join(
            "rules (deterministic checks, no language model)" if name == "rules" else name
            for name in sorted(self.models)
        )
        cost = "cost unknown" if self.cost_usd is None else f"{self.cost_usd:.4f} USD"
        return f"{names}; {self.calls} model calls, {self.tokens} tokens, {cost}"

    def _figures(self) -> Table:
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD)
        table.add_column("measure", no_wrap=True)
        for column in ("value", "95 % interval", "n", "not applicable", "unscorable"):
            table.add_column(column, justify="right")
        for name in self.evaluators():
            results = self.results[name]
            counts = (str(results.not_applicable), str(results.unscorable.total()))
            title = TITLES.get(name, name)
            if name == FAILURE_RATE:
                table.add_row(title, *_percent(results.fail_rate), *counts)
            else:
                table.add_row(f"{title}, mean score", *_plain(results.mean), *counts)
                table.add_row(f"{title}, passed", *_percent(results.pass_rate), "", "")
        return table

    def _render_labels(self, console: Console) -> None:
        for name in self.evaluators():
            results = self.results[name]
            labels = ", ".join(f"{label} {number}" for label, number in results.labels.most_common())
            errors = ", ".join(f"{error} {number}" for error, number in results.unscorable.most_common())
            parts = [part for part in (labels, f"unscorable: {errors}" if errors else "") if part]
            if parts:
                console.print(f"  {TITLES.get(name, name)}: {'; '.join(parts)}", highlight=False, markup=False)

    def _render_worst(self, console: Console) -> None:
        if not self.worst:
            return
        console.print(f"\nWorst {len(self.worst)} sessions", style="bold", highlight=False)
        for rank, judged in enumerate(self.worst, start=1):
            session = judged.session
            agent = f", {session.agent_name}" if session.agent_name else ""
            turns = "1 turn" if len(session.turns) == 1 else f"{len(session.turns)} turns"
            head = f"{rank}. {session.session_id}{agent}, {turns}"
            console.print(head, highlight=False, markup=False)
            for evaluation in judged.evaluations:
                if evaluation.passed is False:
                    _render_failure(console, evaluation)


def _render_failure(console: Console, evaluation: Evaluation) -> None:
    """Label and score, then the words it rests on; praise is no evidence of a failure and stays out."""
    title = TITLES.get(evaluation.evaluator, evaluation.evaluator)
    head = f"   {title}: {evaluation.label} ({evaluation.score:g})"
    console.print(head, highlight=False, markup=False, style="red")
    praise = evaluation.details.get("positive_signals", ())
    for evidence in [each for each in evaluation.evidence if each.quote not in praise][:QUOTES]:
        mark = "" if evidence.verified else " (not found in the session)"
        line = f"     turn {evidence.turn + 1}, {evidence.role}: {_quoted(evidence.quote)}{mark}"
        console.print(line, highlight=False, markup=False)
    for request in evaluation.details.get("unmet_requests", ())[:QUOTES]:
        console.print(f"     not reached: {_quoted(str(request))}", highlight=False, markup=False)


def _quoted(text: str) -> str:
    """On one line and not too long."""
    line = " ".join(text.split())
    return f'"{line[:QUOTE_LENGTH]}…"' if len(line) > QUOTE_LENGTH else f'"{line}"'


def session_row(session: Session, decision: Decision, rule: str, judged: JudgedSession | None) -> dict[str, Any]:
    """One session as JSON; wall-clock durations stay out, so that the same recording gives the same text."""
    row: dict[str, Any] = {
        "session_id": session.session_id,
        "session_key": session.session_key,
        "generation": session.generation,
        "turns": len(session.turns),
        "agent": session.agent_name,
        "service": session.service_name,
        "start_ns": session.start_ns,
        "end_ns": session.end_ns,
        "completion": session.completion,
        "decision": decision,
        "rule": rule,
    }
    if session.not_evaluable_reason:
        row["not_evaluable_reason"] = session.not_evaluable_reason
    if judged is not None:
        row["evaluations"] = [
            {"id": judged.evaluation_id(each), **each.model_dump(mode="json")} for each in judged.evaluations
        ]
        row["judgement"] = judged.judgement.model_dump(mode="json", exclude={"duration_s"})
    return row


def output_console() -> Console:
    """Standard output: as wide as the window on a terminal, of fixed width elsewhere."""
    from rich.console import Console

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without Unicode gets question marks, not an exception
    return Console() if sys.stdout.isatty() else Console(width=PLAIN_WIDTH)


def _badness(judged: JudgedSession) -> tuple[float, int, str]:
    """Lowest mean score first, then most failed evaluators; ties by id, so that the order never matters."""
    scored = [e for e in judged.evaluations if e.score is not None and e.applicable]
    mean = sum(e.score or 0.0 for e in scored) / len(scored) if scored else 1.0
    failed = sum(e.passed is False for e in judged.evaluations)
    return mean, -failed, judged.session.session_id


def _json_of(estimate: Estimate) -> dict[str, Any]:
    def finite(value: float) -> float | None:
        return round(value, 6) if math.isfinite(value) else None

    return {
        "value": finite(estimate.value),
        "low": finite(estimate.low),
        "high": finite(estimate.high),
        "n": estimate.n,
        "effective_n": round(estimate.effective_n, 3),
    }


def _percent(estimate: Estimate) -> tuple[str, str, str]:
    if not estimate.n:
        return "–", "–", "0"
    interval = f"{estimate.low * 100:.1f} – {estimate.high * 100:.1f} %"
    return f"{estimate.value * 100:.1f} %", interval, str(estimate.n)


def _plain(estimate: Estimate) -> tuple[str, str, str]:
    if not estimate.n:
        return "–", "–", "0"
    if not math.isfinite(estimate.low):
        return f"{estimate.value:.2f}", "–", str(estimate.n)
    # A mean of scores from 0 to 1 lies there itself; the interval's tails beyond are cut for the reader.
    low, high = max(0.0, estimate.low), min(1.0, estimate.high)
    return f"{estimate.value:.2f}", f"{low:.2f} – {high:.2f}", str(estimate.n)
