"""Which judge a model string names."""

from __future__ import annotations

import subprocess
import sys

import pytest

from otel_evals.judging.models.callable import CallableModel
from otel_evals.judging.models.rules import RulesModel
from otel_evals.judging.select import create_model, parse_model_string
from otel_evals.settings import Settings, SettingsError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpt-4o", ("openai", "gpt-4o")),
        ("openai:gpt-4o", ("openai", "gpt-4o")),
        ("openai/gpt-4o", ("openai", "gpt-4o")),
        ("anthropic:claude-3-5-sonnet-latest", ("anthropic", "claude-3-5-sonnet-latest")),
        ("google:gemini-2.0-flash", ("gemini", "gemini-2.0-flash")),
        ("gemini/gemini-2.0-flash", ("gemini", "gemini-2.0-flash")),
        ("ollama:llama3", ("ollama", "llama3")),
        ("ollama:llama3:8b", ("ollama", "llama3:8b")),
        ("ollama/llama3:8b", ("ollama", "llama3:8b")),
        ("llama3:8b", ("openai", "llama3:8b")),
        ("ft:gpt-4o-mini:acme::abc", ("openai", "ft:gpt-4o-mini:acme::abc")),
        ("bedrock/anthropic.claude-v2:1", ("bedrock", "anthropic.claude-v2:1")),
        ("openrouter/meta-llama/llama-3:free", ("openrouter", "meta-llama/llama-3:free")),
        ("openrouter:meta-llama/llama-3:free", ("openrouter", "meta-llama/llama-3:free")),
        ("some_new_provider/model-x", ("some_new_provider", "model-x")),
        (" Anthropic:claude-x ", ("anthropic", "claude-x")),
    ],
)
def test_provider_and_model_are_told_apart(text, expected):
    assert parse_model_string(text) == expected


@pytest.mark.parametrize("text", ["", "  ", "anthropic:", "openai/"])
def test_a_string_without_a_model_is_refused(text):
    with pytest.raises(SettingsError, match="no model is named"):
        parse_model_string(text)


@pytest.mark.parametrize("name", ["rules", "Rules", " rules "])
def test_rules_is_the_judge_without_a_model(name):
    assert isinstance(create_model(Settings(model=name)), RulesModel)


async def test_with_a_base_url_the_endpoint_is_asked_directly_whatever_the_provider():
    model = create_model(Settings(model="ollama:llama3:8b", base_url="http://localhost:11434/v1"))
    assert (type(model).__name__, model.name) == ("OpenAICompatibleModel", "llama3:8b")
    await model.close()


async def test_openai_models_need_no_litellm():
    model = create_model(Settings(model="gpt-4o", api_key="k"))
    assert (type(model).__name__, model.name) == ("OpenAICompatibleModel", "gpt-4o")
    await model.close()


async def test_openais_own_variable_is_used_for_its_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
    await create_model(Settings(model="gpt-4o")).close()


def test_openai_without_a_key_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SettingsError, match="OTEL_EVALS_API_KEY"):
        create_model(Settings(model="gpt-4o"))


def test_a_provider_without_litellm_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"pip install 'otel-evals\[litellm\]'"):
        create_model(Settings(model="anthropic:claude-x"))


class Client:
    """The `CustomLLMClient` shape."""

    def get_model_name(self):
        return "in-house"

    async def chat_complete(self, messages, temperature):
        return "{}", 0.5


def test_an_object_with_chat_complete_is_a_judge():
    model = create_model(Settings(), Client())
    assert isinstance(model, CallableModel)
    assert model.name == "in-house"


def test_a_judge_model_object_is_used_as_it_is():
    model = RulesModel()
    assert create_model(Settings(), model) is model


def test_any_other_object_is_refused():
    with pytest.raises(SettingsError, match="chat_complete"):
        create_model(Settings(), object())


def test_choosing_rules_imports_no_client_library():
    code = (
        "import sys; from otel_evals.settings import Settings; from otel_evals.judging.select import create_model;"
        "create_model(Settings(model='rules')); print(sorted({'litellm', 'aiohttp'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
