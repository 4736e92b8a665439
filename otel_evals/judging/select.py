"""From the `model` setting to a judge model.

A provider is named by a known word before the first `:` or `/`; a `:` further on, or after a word that names
no provider, belongs to the model's own name (`ollama:llama3:8b`, `llama3:8b`).
"""

from __future__ import annotations

import os
from typing import Any, cast

from otel_evals.judging.models.protocol import JudgeModel
from otel_evals.settings import Settings, SettingsError

__all__ = ["create_model", "further_models", "parse_model_string"]

OPENAI_URL = "https://api.openai.com/v1"

_PROVIDERS = {
    # Names used before a colon by the evaluation libraries that people come from → litellm's provider.
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "gemini",
    "gemini": "gemini",
    "vertex": "vertex_ai",
    "vertex_ai": "vertex_ai",
    "azure": "azure",
    "azure_openai": "azure",
    "ollama": "ollama",
    "mistral": "mistral",
    "cohere": "cohere",
    "groq": "groq",
    "bedrock": "bedrock",
    "deepseek": "deepseek",
    "openrouter": "openrouter",
    "together": "together_ai",
    "together_ai": "together_ai",
    "fireworks": "fireworks_ai",
    "fireworks_ai": "fireworks_ai",
    "xai": "xai",
    "huggingface": "huggingface",
    "perplexity": "perplexity",
    "hosted_vllm": "hosted_vllm",
    "lm_studio": "lm_studio",
    "litellm_proxy": "litellm_proxy",
}


def parse_model_string(text: str) -> tuple[str, str]:
    """Provider and model: `gpt-4o` → `("openai", "gpt-4o")`, `google:gemini-2.0-flash` → `("gemini", …)`.

    A provider before a `/` is handed on as it is, known or not: litellm knows more of them than any list
    here.

    Raises:
        SettingsError: there is no model name in the text.
    """
    text = text.strip()
    head, separator, tail = text.partition(":")
    if separator and "/" not in head and (provider := _PROVIDERS.get(head.strip().lower())):
        return provider, _some(tail.strip(), text)
    head, separator, tail = text.partition("/")
    if separator:
        return _PROVIDERS.get(head.lower(), head), _some(tail, text)
    return "openai", _some(text, text)


def _some(model: str, text: str) -> str:
    if not model:
        raise SettingsError(
            f"model={text!r}: no model is named; give e.g. gpt-4o, anthropic:claude-sonnet-4-5, or rules"
        )
    return model


def create_model(settings: Settings, model: Any = None) -> JudgeModel:
    """The judge that the settings name, or the given object as one.

    Args:
        settings: `model`, `base_url`, `api_key` and prices.
        model: A `JudgeModel`, or an object with `chat_complete` and `get_model_name`. Default: from the
        settings.

    Raises:
        SettingsError: the object is neither, no model is named, or litellm is needed and not installed.
    """
    if model is not None and not isinstance(model, str):
        return _from_object(model)
    name = model or settings.model
    if name.strip().lower() == "rules":
        from otel_evals.judging.models.rules import RulesModel

        return RulesModel()
    key = settings.api_key.get_secret_value() if settings.api_key else None
    if settings.base_url:
        # The endpoint decides what its models are called; only our own words for a provider are taken off.
        return _openai_compatible(_plain_name(name), settings.base_url, key, settings)
    provider, model_name = parse_model_string(name)
    if provider == "openai":
        return _openai_compatible(model_name, OPENAI_URL, key or _environment_key(name), settings)
    return _litellm(f"{provider}/{model_name}", key, settings)


def further_models(settings: Settings) -> list[JudgeModel]:
    """The models that the plan asks besides the first: the stronger one of `escalate`, the other jurors of `jury`."""
    names = {"escalate": (settings.escalate_model,), "jury": settings.jury}.get(settings.plan, ())
    return [create_model(settings.model_copy(update={"model": name})) for name in names if name]


def _from_object(model: Any) -> JudgeModel:
    if hasattr(model, "complete") and hasattr(model, "name"):
        return cast(JudgeModel, model)
    if hasattr(model, "chat_complete") and hasattr(model, "get_model_name"):
        from otel_evals.judging.models.callable import CallableModel

        return CallableModel(model)
    raise SettingsError(
        f"model={type(model).__name__}: neither a JudgeModel nor an object with chat_complete(messages, temperature) "
        "and get_model_name()"
    )


def _plain_name(name: str) -> str:
    head, separator, tail = name.strip().partition(":")
    return _some(tail.strip() if separator and head.strip().lower() in _PROVIDERS else name.strip(), name)


def _environment_key(name: str) -> str:
    if key := os.environ.get("OPENAI_API_KEY"):
        return key
    raise SettingsError(
        f"model={name!r}: OpenAI needs a key; set api_key (OTEL_EVALS_API_KEY) or OPENAI_API_KEY, or set base_url to "
        "an endpoint that needs none"
    )


def _openai_compatible(name: str, base_url: str, key: str | None, settings: Settings) -> JudgeModel:
    from otel_evals.judging.models.openai_compatible import OpenAICompatibleModel

    return OpenAICompatibleModel(name, base_url, key, settings.input_price, settings.output_price)


def _litellm(name: str, key: str | None, settings: Settings) -> JudgeModel:
    from importlib.util import find_spec

    if find_spec("litellm") is None:
        raise SettingsError(
            f"model={settings.model!r}: this provider needs litellm; pip install 'otel-evals[litellm]', or set "
            "base_url to an OpenAI-compatible endpoint of it"
        )
    from otel_evals.judging.models.litellm_model import LiteLLMModel

    return LiteLLMModel(name, key, None, settings.input_price, settings.output_price)
