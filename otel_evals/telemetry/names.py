"""Every name of the telemetry contract. Dashboards, alerts and tests depend on them.

Standard names where the OpenTelemetry GenAI conventions have one (all *development*), our own below `otel_evals.`.
"""

from __future__ import annotations

SCOPE = "otel_evals"
SPAN_NAME = "evaluate session"
EVENT_NAME = "gen_ai.evaluation.result"

# --- standard: OpenTelemetry GenAI semantic conventions -------------------------------------------------------
GEN_AI_AGENT_NAME = "gen_ai.agent.name"
GEN_AI_CONVERSATION_ID = "gen_ai.conversation.id"
GEN_AI_EVALUATION_EXPLANATION = "gen_ai.evaluation.explanation"
GEN_AI_EVALUATION_NAME = "gen_ai.evaluation.name"
GEN_AI_EVALUATION_SCORE_LABEL = "gen_ai.evaluation.score.label"
GEN_AI_EVALUATION_SCORE_VALUE = "gen_ai.evaluation.score.value"
GEN_AI_TOKEN_TYPE = "gen_ai.token.type"
GEN_AI_USAGE_INPUT_TOKENS = "gen_ai.usage.input_tokens"
GEN_AI_USAGE_OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
ERROR_TYPE = "error.type"
SERVICE_NAME = "service.name"

# --- ours: attributes -----------------------------------------------------------------------------------------
INTERNAL = "otel_evals.internal"
SESSION_ID = "otel_evals.session.id"
SESSION_KEY = "otel_evals.session.key"
SESSION_TURNS = "otel_evals.session.turns"
SESSION_GENERATION = "otel_evals.session.generation"
SESSION_INCOMPLETE = "otel_evals.session.incomplete"
SESSION_TRUNCATED = "otel_evals.session.truncated"
TURN_INDEX = "otel_evals.turn.index"
SAMPLING_RULE = "otel_evals.sampling.rule"
SAMPLING_PROBABILITY = "otel_evals.sampling.probability"
SAMPLING_WEIGHT = "otel_evals.sampling.weight"
JUDGE_MODEL = "otel_evals.judge.model"
JUDGE_CALLS = "otel_evals.judge.calls"
JUDGE_COST = "otel_evals.judge.cost_usd"
JUDGE_PROMPT_HASH = "otel_evals.judge.prompt_hash"
JUDGE_PLAN = "otel_evals.judge.plan"
EVALUATION_ID = "otel_evals.evaluation.id"
EVALUATOR_VERSION = "otel_evals.evaluator.version"
PASSED = "otel_evals.passed"
APPLICABLE = "otel_evals.applicable"
EVIDENCE = "otel_evals.evidence"
OUTCOME = "otel_evals.outcome"
DECISION = "otel_evals.decision"
SIGNAL = "otel_evals.signal"

# --- instruments ----------------------------------------------------------------------------------------------
M_SCORE = "gen_ai.evaluation.score"
M_EVALUATIONS = "otel_evals.evaluations"
M_WEIGHT = "otel_evals.evaluations.weight"
M_WEIGHT_SQUARED = "otel_evals.evaluations.weight_squared"
M_SESSIONS = "otel_evals.sessions"
M_SESSIONS_COMPLETED = "otel_evals.sessions.completed"
M_SESSIONS_OPEN = "otel_evals.sessions.open"
M_SESSIONS_BUFFERED = "otel_evals.sessions.buffered"
M_SIGNALS = "otel_evals.signals"
M_QUEUE_SIZE = "otel_evals.queue.size"
M_QUEUE_CAPACITY = "otel_evals.queue.capacity"
M_QUEUE_OLDEST_AGE = "otel_evals.queue.oldest_age"
M_JUDGE_DURATION = "otel_evals.judge.duration"
M_JUDGE_TOKENS = "otel_evals.judge.tokens"
M_JUDGE_COST = "otel_evals.judge.cost"
M_JUDGE_ERRORS = "otel_evals.judge.errors"
M_SPANS = "otel_evals.spans"
M_SAMPLING_RATE = "otel_evals.sampling.rate"
M_EVICTIONS = "otel_evals.sessions.evictions"


def evaluator_attribute(evaluator: str, field: str) -> str:
    """Span attribute of one evaluator's result, e.g. `otel_evals.failure_rate.score`."""
    return f"otel_evals.{evaluator}.{field}"
