"""All settings, with their bounds: from code, `OTEL_EVALS_*` variables, or the YAML file in `OTEL_EVALS_CONFIG`.

Precedence: arguments, environment, file, defaults. A refused value names the setting, the value and the remedy.
"""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    YamlConfigSettingsSource,
)

from otel_evals.evaluators.rubric import Rubric
from otel_evals.sampling.rate import Rate, check_rate
from otel_evals.sampling.rules import Rule, check_rules

__all__ = ["EVALUATOR_NAMES", "Rate", "Settings", "SettingsError", "check_rate", "load_settings"]

EVALUATOR_NAMES = ("failure_rate", "goal_achievement", "failure_communication")
CONFIG_VARIABLE = "OTEL_EVALS_CONFIG"


class SettingsError(ValueError):
    """A setting was refused; the message names the setting, the value and the remedy."""


def _split(value: Any) -> Any:
    """`a, b` from an environment variable becomes `["a", "b"]`."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _pairs(value: Any) -> Any:
    """`a=0.1,b=1` from an environment variable becomes `{"a": "0.1", "b": "1"}`."""
    if isinstance(value, str):
        parts = [part.partition("=") for part in value.split(",") if part.strip()]
        if bad := [name for name, sep, _ in parts if not sep]:
            raise ValueError(f"{bad[0]!r} has no value: write name=value,name=value")
        return {name.strip(): number.strip() for name, _, number in parts}
    return value


def _document(value: Any) -> Any:
    """JSON or YAML text from an environment variable."""
    if not isinstance(value, str):
        return value
    try:
        return yaml.safe_load(value) or ()
    except yaml.YAMLError as error:
        raise ValueError(f"neither JSON nor YAML ({str(error).splitlines()[0]})") from None


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]


class Settings(BaseSettings):
    """What to judge, with which model, how much of it, and within which limits."""

    model_config = SettingsConfigDict(env_prefix="OTEL_EVALS_", extra="forbid", frozen=True)

    # What to judge
    enabled: bool = True
    """False: the processor accepts nothing."""
    evaluators: Names = EVALUATOR_NAMES
    rate: Rate = 0.1
    """Share of completed sessions to judge, 0 to 1, for every evaluator without a rate of its own."""
    rates: Annotated[dict[str, Rate], NoDecode, BeforeValidator(_pairs)] = Field(default_factory=dict)
    """Rates per evaluator; in the environment `failure_rate=0.5,goal_achievement=0.1`."""
    rules: Annotated[tuple[Rule, ...], NoDecode, BeforeValidator(_document)] = ()
    """Sampling rules, tried in order. Default: evidence of trouble always, `rate` of the rest."""
    judge_experiments: bool = False
    """True: sessions of experiments and offline evaluations are sampled like all others."""
    salt: str = ""
    """Change it to draw a fresh cohort of sessions."""
    paused: bool = False
    """Judge nothing until somebody resumes."""
    early_decision: bool = True
    """Keep no content of sessions that no rule can pick at the rates as their first span finds them. False: all content
    is kept until a session is complete, which takes more memory (a fifth to a half) and less CPU (a third)."""
    remote_sampling_url: str | None = None
    """Standard remote sampling endpoint to take rates from, e.g. `http://jaeger:5778/api/sampling`."""
    remote_sampling_interval: float = Field(default=60.0, gt=0, le=86400)
    """Seconds between two questions to it."""

    # The budget
    budget_evaluations_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Sessions sent to the judge in any 60 seconds."""
    budget_tokens_per_hour: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Judge tokens per hour of UTC; sampling is thinned so that they last."""
    budget_tokens_per_day: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    budget_usd_per_hour: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    budget_usd_per_day: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    budget_file: str | None = None
    """File that processes of one host share the budget by. Default: each process has the budget for itself."""
    goal: str | None = None
    """The goal of every session, where the session has no `otel_evals.goal` attribute. Default: inferred."""
    goal_attributes: Names = ("otel_evals.goal",)
    """Span attributes that carry the caller's goal, first match wins."""
    session_keys: Names = ()
    """Span attributes to read the session id from, before the built-in list."""
    keep_attributes: Names = ()
    """Further span attributes to keep on the session."""
    marker_attributes: Names = ()
    """Spans with one of these attributes are looked at too, beside those of known instrumentations."""

    # The judge
    model: str = "rules"
    """`rules` (no model), `gpt-4o`, `anthropic:claude-…`, any litellm `provider/model`."""
    base_url: str | None = None
    """OpenAI-compatible endpoint, e.g. `http://localhost:8000/v1`. Set: litellm is not needed."""
    api_key: SecretStr | None = None
    judge_timeout: float = Field(default=60.0, gt=0, le=3600)
    """Seconds for one judge call."""
    judge_deadline: float = Field(default=300.0, gt=0, le=86400)
    """Seconds from completion of a session to its scores; then it counts as expired."""
    judge_attempts: int = Field(default=3, ge=1, le=10)
    """Tries per judge call, the first included."""
    judge_concurrency: int = Field(default=8, ge=1, le=1000)
    judge_requests_per_minute: float | None = Field(default=None, gt=0)
    """Calls per minute to one judge model. Default: no limit."""
    judge_tokens_per_minute: float | None = Field(default=None, gt=0)
    """Tokens per minute to and from one judge model. Default: no limit."""
    judge_max_tokens: int = Field(default=2000, ge=64)
    """Output tokens that the judge may use for one session."""
    judge_session_tokens: int | None = Field(default=None, ge=500)
    """Tokens to and from all judges that one session may take; a call that would exceed them is not made."""
    judge_session_usd: float | None = Field(default=None, gt=0)
    """USD that judging one session may cost; likewise. Where no price is known, there is no second call."""
    transcript_tokens: int = Field(default=12_000, ge=500)
    """Longer transcripts are shortened visibly."""
    input_price: float | None = Field(default=None, ge=0)
    """USD per million input tokens of the judge. Default: the provider's or litellm's figure, else unknown."""
    output_price: float | None = Field(default=None, ge=0)
    plan: Literal["single", "separate", "escalate", "jury"] = "single"
    """One call for all evaluators, one call each, a cheap model first, or several models and the majority."""
    escalate_model: str | None = None
    """Plan `escalate`: the stronger model, for what fails or is in doubt."""
    escalate_below: float = Field(default=0.6, ge=0, le=1)
    """Plan `escalate`: confidence of the first judge under which its answer is in doubt."""
    jury: Names = ()
    """Plan `jury`: the models that judge besides `model`."""
    rubrics: tuple[Rubric, ...] = ()
    """Own questions. Name them in `evaluators` to have them asked."""
    redact: bool = True
    """Take personal data and secrets out before the judge, and of what it says."""
    redact_patterns: dict[str, str] = Field(default_factory=dict)
    """Further regular expressions to take out, by the name of their placeholder."""
    queue_capacity: int = Field(default=1000, ge=1)
    """Sessions waiting for a judge; further ones are counted as `queue_full`."""

    # When a session is complete
    idle_timeout: float = Field(default=300.0, ge=0, le=86400)
    """Seconds without a span after which a session is complete."""
    grace: float = Field(default=5.0, ge=0, le=3600)
    """Seconds that late spans and log records are waited for after an explicit end."""
    max_session_age: float = Field(default=14_400.0, gt=0)
    """Seconds after its first span at which a session is completed in any case."""
    max_turns: int = Field(default=200, ge=1)
    max_session_bytes: int = Field(default=4 * 2**20, ge=2**10)
    max_open_sessions: int = Field(default=10_000, ge=1)
    max_open_bytes: int = Field(default=256 * 2**20, ge=2**20)
    """Content held for all open sessions together."""

    # The tap
    buffer_spans: int = Field(default=16_384, ge=1)
    """Snapshots between the hooks and the worker; further ones are dropped and counted."""
    buffer_bytes: int = Field(default=64 * 2**20, ge=2**10)
    poll_interval: float = Field(default=0.1, gt=0, le=10)
    """Seconds between two looks of the worker at the buffer."""

    # What is emitted
    explanations: bool = True
    """False: explanations and quotes stay out of events (privacy)."""

    @field_validator("evaluators")
    @classmethod
    def _some_evaluator(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("name at least one evaluator; to judge nothing set rate to 0")
        return tuple(dict.fromkeys(value))

    @model_validator(mode="after")
    def _rules_fit(self) -> Settings:
        check_rules(self.rules, self.evaluators)
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        sources: tuple[PydanticBaseSettingsSource, ...] = (init_settings, env_settings)
        if path := os.environ.get(CONFIG_VARIABLE):
            sources += (YamlConfigSettingsSource(settings_cls, yaml_file=path),)
        return sources

    def rate_of(self, evaluator: str) -> float:
        """The configured rate of one evaluator, 0 to 1."""
        return self.rates.get(evaluator, self.rate)


def load_settings(**values: Any) -> Settings:
    """Settings from arguments, environment and file.

    Raises:
        SettingsError: one line per refused setting: its name, the value, and what to give instead.
    """
    path = os.environ.get(CONFIG_VARIABLE)
    if path and not os.path.isfile(path):
        raise SettingsError(f"{CONFIG_VARIABLE}={path}: no such file; give the path of a YAML file or unset it")
    try:
        return Settings(**values)
    except ValidationError as error:
        raise SettingsError("\n".join(_explain(item) for item in error.errors(include_url=False))) from None


def _explain(item: Any) -> str:
    name = ".".join(str(part) for part in item["loc"]) or "settings"
    variable = "OTEL_EVALS_" + str(item["loc"][0]).upper() if item["loc"] else "OTEL_EVALS_*"
    shown = "(hidden)" if "key" in name else repr(item.get("input"))[:80]
    if item["type"] == "extra_forbidden":
        return f"{name}: there is no such setting; check the spelling"
    return f"{name}={shown}: {item['msg'].removeprefix('Value error, ')} (argument {name}, variable {variable})"
