"""What the judge stage hands to telemetry: one `Evaluation` per evaluator and what the judging cost.

Neutral data, importable by evaluators, judging and telemetry alike.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from otel_evals.sessions.model import Session

__all__ = ["Decision", "Evaluation", "Evidence", "JudgeTask", "JudgedSession", "Judgement", "Outcome"]

Outcome: TypeAlias = Literal["scored", "not_applicable", "unscorable"]

Decision: TypeAlias = Literal[
    "judged",
    "sampled_out",
    "filtered",
    "over_budget",
    "queue_full",
    "not_evaluable",
    "unscorable",
    "expired",
    "paused",
]
"""The ledger: every completed session gets exactly one of these."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Evidence(_Frozen):
    """A quote that a verdict rests on."""

    turn: int
    """Index of the turn, from 0."""
    role: Literal["user", "agent", "tool"]
    quote: str
    verified: bool = False
    """The quote occurs in the named turn (white space, case, quotes and NFKC folded)."""


class Evaluation(_Frozen):
    """The result of one evaluator on one session. A judge error is an outcome, never a score."""

    evaluator: str
    """Name in the telemetry, e.g. `failure_rate`."""
    evaluator_version: str
    outcome: Outcome
    score: float | None = None
    """0 to 1; None exactly when unscorable."""
    label: str | None = None
    passed: bool | None = None
    applicable: bool = True
    """False: the question did not arise; stays out of rates and means."""
    threshold: float = 0.7
    explanation: str | None = None
    evidence: tuple[Evidence, ...] = ()
    evidence_verified: bool | None = None
    """None: the verdict rests on no quotes."""
    error_type: str | None = None
    """Why it is unscorable, low cardinality, e.g. `timeout`, `refusal`, `malformed_answer`."""
    details: dict[str, Any] = Field(default_factory=dict)
    """Evaluator-specific facts, e.g. `negative_signals`."""
    probability: float = 1.0
    """Inclusion probability in (0, 1] of this session for this evaluator."""

    def without_words(self) -> Evaluation:
        """Only what can be counted: no explanation, quotes or details, which all may repeat the conversation."""
        return self.model_copy(update={"explanation": None, "evidence": (), "details": {}})

    @property
    def weight(self) -> float:
        """Sampling weight 1/probability (Horvitz-Thompson)."""
        return 1.0 / self.probability


class JudgeTask(_Frozen):
    """A sampled session on its way to a judge."""

    session: Session
    probabilities: dict[str, float]
    """Evaluator name to inclusion probability in (0, 1]: exactly the evaluators to run."""
    rule: str = "default"
    """The sampling rule that matched."""
    signals: tuple[str, ...] = ()
    """Names of the deterministic signals found on the session."""
    enqueued_ns: int = 0
    """When the session was first put into the queue, epoch nanoseconds; its deadline counts from here."""
    not_before_ns: int = 0
    """The provider asked for a pause until then, epoch nanoseconds."""
    calls: int = 0
    """Judge calls made for it so far, in vain."""
    errors: tuple[str, ...] = ()
    """`error.type` of each of them."""


class Judgement(_Frozen):
    """How a session was judged: by which model, with how many calls, at what price."""

    model: str
    plan: str = "single"
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    """None: the price is unknown. Never 0 for unknown."""
    duration_s: float = 0.0
    prompt_hash: str = ""
    errors: tuple[str, ...] = ()
    """`error.type` of each failed call, also of those that a retry mended."""
    truncated: bool = False
    """The transcript was shortened to fit the judge."""


class JudgedSession(_Frozen):
    """A session with its results."""

    session: Session
    evaluations: tuple[Evaluation, ...]
    judgement: Judgement
    rule: str = "default"
    """The sampling rule that matched."""

    def evaluation_id(self, evaluation: Evaluation) -> str:
        """Deterministic id: the same judgement of the same session generation always has the same one."""
        parts = (
            self.session.session_id,
            str(self.session.generation),
            evaluation.evaluator,
            evaluation.evaluator_version,
            self.judgement.model,
        )
        return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
