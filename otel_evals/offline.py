"""Evaluate conversations that are at hand, without any telemetry: the same judge, called directly.

The names are those of eval-ai-library and strands-agents-evals, so that code written for them runs with
another import line. Metrics that use the same model share one judge call per conversation.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from otel_evals.evaluation import Evaluation, JudgedSession, JudgeTask
from otel_evals.evaluators.failure_communication import FailureCommunication
from otel_evals.evaluators.failure_rate import FailureRate
from otel_evals.evaluators.goal_achievement import GoalAchievement
from otel_evals.evaluators.protocol import Evaluator
from otel_evals.judging.plan import Judge
from otel_evals.judging.select import create_model
from otel_evals.sessions.model import Session, ToolCall, Turn
from otel_evals.settings import Settings, load_settings

__all__ = [
    "ConversationResult",
    "ConversationalEvalTestCase",
    "EvalTestCase",
    "FailureCommunicationEvaluator",
    "FailureRateMetric",
    "GoalAchievementRateMetric",
    "Metric",
    "MetricResult",
    "evaluate_conversations",
]

Model: TypeAlias = Any
"""A model string, a `JudgeModel`, or an object with `chat_complete` and `get_model_name`."""


# --- What is evaluated ---


class EvalTestCase(BaseModel):
    """One turn: what the user said and what the agent answered. Further fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    input: str
    actual_output: str | None = None
    tools: list[ToolCall] = Field(default_factory=list)
    """The turn's tool calls, failed ones with their `error`."""


class ConversationalEvalTestCase(BaseModel):
    """One conversation. Further fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    turns: list[EvalTestCase]
    name: str | None = None
    chatbot_role: str | None = None
    """Shown to the judge as the agent's instructions."""


Conversation: TypeAlias = ConversationalEvalTestCase | Session


# --- What is asked ---


class Metric:
    """One question to one model."""

    def __init__(
        self, evaluator: Evaluator, *, model: Model = None, goal: str | None = None, verbose: bool = False
    ) -> None:
        """A metric.

        Args:
            evaluator: The question.
            model: Who answers it. Default: the settings' model.
            goal: The user's goal, for all conversations. Default: inferred.
            verbose: Print each result.
        """
        self.evaluator = evaluator
        self.model = model
        self.goal = goal
        self.verbose = verbose

    @property
    def name(self) -> str:
        """As in the results."""
        return self.evaluator.name

    @property
    def threshold(self) -> float:
        """Scores from here on pass."""
        return self.evaluator.threshold


class FailureRateMetric(Metric):
    """How the agent behaves when it does not know or cannot: see `evaluators.failure_rate`."""

    def __init__(self, model: Model = None, threshold: float = 0.7, verbose: bool = False) -> None:
        super().__init__(FailureRate(threshold=threshold), model=model, verbose=verbose)


class GoalAchievementRateMetric(Metric):
    """Whether the user got what they came for: see `evaluators.goal_achievement`."""

    def __init__(
        self,
        model: Model = None,
        threshold: float = 0.7,
        verbose: bool = False,
        user_goal: str | None = None,
    ) -> None:
        super().__init__(GoalAchievement(threshold=threshold), model=model, goal=user_goal, verbose=verbose)


class FailureCommunicationEvaluator(Metric):
    """How well failed tools are explained to the user: see `evaluators.failure_communication`."""

    def __init__(self, model: Model = None, threshold: float = 0.5, verbose: bool = False) -> None:
        super().__init__(FailureCommunication(threshold=threshold), model=model, verbose=verbose)


# --- What comes back ---


class MetricResult(BaseModel):
    """The answer to one metric for one conversation."""

    model_config = ConfigDict(frozen=True)

    name: str
    outcome: Literal["scored", "not_applicable", "unscorable"]
    score: float | None
    """0 to 1; None when unscorable."""
    label: str | None
    success: bool | None
    """The score is at or above the threshold; None when unscorable."""
    threshold: float
    reason: str | None
    error_type: str | None = None
    """Why it is unscorable."""
    evaluation_model: str
    evaluation_cost: float | None = None
    """USD of the judge call(s) that answered this metric, maybe together with others. None: unknown."""
    evaluation_log: dict[str, Any] = Field(default_factory=dict)
    """`verdict`, `evidence` (quotes), `evidence_verified`, and the evaluator's details."""

    @property
    def test_pass(self) -> bool:
        """As strands-agents-evals calls it: False also when unscorable."""
        return bool(self.success)


class ConversationResult(BaseModel):
    """All metrics of one conversation, in the order of the metrics."""

    model_config = ConfigDict(frozen=True)

    name: str | None
    metrics: tuple[MetricResult, ...]

    @property
    def success(self) -> bool:
        """Every metric passed."""
        return all(metric.success for metric in self.metrics)

    def __getitem__(self, name: str) -> MetricResult:
        """The first metric of this name."""
        for metric in self.metrics:
            if metric.name == name:
                return metric
        raise KeyError(name)


async def evaluate_conversations(
    conversations: Iterable[Conversation],
    metrics: Sequence[Metric],
    *,
    settings: Settings | None = None,
    progress: bool | None = None,
) -> list[ConversationResult]:
    """Evaluate conversations with metrics.

    Args:
        conversations: Test cases, or sessions as the pipeline assembles them.
        metrics: The questions.
        settings: Endpoint, key, plan, limits, concurrency. Default: environment and file.
        progress: Show a progress bar on standard error. Default: if that is a terminal.

    Returns:
        One result per conversation, in their order, whatever happened to single ones.

    Raises:
        SettingsError: a model or setting cannot be used.
    """
    settings = settings or load_settings()
    cases = list(conversations)
    groups = list(_grouped(metrics, settings))
    limit = asyncio.Semaphore(settings.judge_concurrency)
    show = sys.stderr.isatty() if progress is None else progress
    try:
        with _progress(len(cases), show) as advance:

            async def one(case: Conversation) -> ConversationResult:
                async with limit:
                    try:
                        result = await _evaluate(case, metrics, groups)
                    except Exception as error:  # whatever is wrong with one conversation, the others count
                        result = _lost(case, metrics, type(error).__name__)
                advance()
                return result

            results = await asyncio.gather(*map(one, cases))
    finally:
        for group in groups:
            await group.judge.close()
    if any(metric.verbose for metric in metrics):
        _print(results, {metric.name for metric in metrics if metric.verbose})
    return results


# --- How ---


class _Group:
    """Metrics that one judge can answer together: same model, and no two different goals or names."""

    def __init__(self, first: Metric) -> None:
        self.model = first.model
        self.goal = first.goal
        self.members: dict[str, Metric] = {}
        self.judge: Judge

    def takes(self, metric: Metric) -> bool:
        same_model = metric.model is self.model or (isinstance(metric.model, str) and metric.model == self.model)
        same_goal = metric.goal in (None, self.goal) or self.goal is None
        return same_model and same_goal and metric.name not in self.members

    def add(self, metric: Metric) -> None:
        self.members[metric.name] = metric
        self.goal = self.goal or metric.goal


def _grouped(metrics: Sequence[Metric], settings: Settings) -> Iterator[_Group]:
    groups: list[_Group] = []
    for metric in metrics:
        group = next((g for g in groups if g.takes(metric)), None)
        if group is None:
            group = _Group(metric)
            groups.append(group)
        group.add(metric)
    for group in groups:
        evaluators = {name: metric.evaluator for name, metric in group.members.items()}
        group.judge = Judge(create_model(settings, group.model), evaluators, settings)
        yield group


async def _evaluate(case: Conversation, metrics: Sequence[Metric], groups: Sequence[_Group]) -> ConversationResult:
    session = case if isinstance(case, Session) else _session(case)
    results: dict[int, MetricResult] = {}
    for group in groups:
        shown = session.model_copy(update={"goal": group.goal}) if group.goal else session
        judged = await group.judge.judge(JudgeTask(session=shown, probabilities=dict.fromkeys(group.members, 1.0)))
        results |= {id(group.members[e.evaluator]): _result(e, judged) for e in judged.evaluations}
    name = session.session_id if isinstance(case, Session) else case.name
    return ConversationResult(name=name, metrics=tuple(results[id(metric)] for metric in metrics))


def _lost(case: Conversation, metrics: Sequence[Metric], error_type: str) -> ConversationResult:
    lost = tuple(
        MetricResult(
            name=metric.name,
            outcome="unscorable",
            score=None,
            label=None,
            success=None,
            threshold=metric.threshold,
            reason=None,
            error_type=error_type,
            evaluation_model="",
        )
        for metric in metrics
    )
    return ConversationResult(name=getattr(case, "name", None), metrics=lost)


def _session(case: ConversationalEvalTestCase) -> Session:
    turns = tuple(Turn(user=t.input, agent=t.actual_output, tool_calls=tuple(t.tools)) for t in case.turns)
    return Session(
        session_id=case.name or "offline", session_key="offline", turns=turns, system_prompt=case.chatbot_role
    )


def _result(evaluation: Evaluation, judged: JudgedSession) -> MetricResult:
    evidence = [item.quote for item in evaluation.evidence]
    return MetricResult(
        name=evaluation.evaluator,
        outcome=evaluation.outcome,
        score=evaluation.score,
        label=evaluation.label,
        success=evaluation.passed,
        threshold=evaluation.threshold,
        reason=evaluation.explanation,
        error_type=evaluation.error_type,
        evaluation_model=judged.judgement.model,
        evaluation_cost=judged.judgement.cost_usd,
        evaluation_log={
            "verdict": evaluation.label,
            "evidence": evidence,
            "evidence_verified": evaluation.evidence_verified,
            **evaluation.details,
        },
    )


@contextmanager
def _progress(total: int, show: bool) -> Iterator[Callable[[], None]]:
    if not show:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("conversations", total=total)
        yield lambda: bar.advance(task)


def _print(results: Iterable[ConversationResult], names: set[str]) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console()
    colours: Mapping[bool | None, str] = {True: "green", False: "red", None: "yellow"}
    for index, result in enumerate(results):
        for metric in result.metrics:
            if metric.name in names:
                score = "unscorable" if metric.score is None else f"{metric.score:.2f}"
                said = escape(f"{metric.label or metric.error_type}: {metric.reason or ''}")
                colour = colours[metric.success]
                console.print(f"{result.name or index} {metric.name} [{colour}]{score}[/{colour}] {said}")
