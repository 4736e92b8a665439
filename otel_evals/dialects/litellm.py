"""LiteLLM's own callbacks, beside the GenAI conventions they follow."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

_PROVIDERS = ("openai", "azure", "anthropic", "bedrock", "gemini", "vertex_ai", "groq", "mistral", "ollama",
              "cohere",
              "openai_like", "hosted_vllm", "deepseek", "openrouter", "together_ai", "fireworks_ai",
              "custom_openai")  # fmt: skip

VOCABULARY = Vocabulary(
    name="litellm",
    kinds={
        "litellm.call_type": {
            "completion": "model",
            "acompletion": "model",
            "responses": "model",
            "aresponses": "model",
        }
    },
    implies={f"llm.{provider}.messages": "model" for provider in _PROVIDERS},
    messages_in=tuple(f"llm.{provider}.messages" for provider in _PROVIDERS),
    messages_out=tuple(
        f"llm.{p}.{name}" for p in _PROVIDERS for name in ("choices", "content", "candidates", "output")
    ),
    user_id=("llm.user", "metadata.user_api_key_end_user_id"),
)
