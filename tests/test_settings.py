"""Settings at every entrance: code, environment, file. Refusals name the setting, the value and the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from otel_evals.settings import Settings, SettingsError, load_settings


@pytest.mark.parametrize("value", [0, 0.0, 0.25, 1, "1", "0.5"])
def test_rates_from_0_to_1_are_accepted_in_code(value: object) -> None:
    assert load_settings(rate=value).rate == float(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-0.01, 1.01, float("nan"), float("inf"), "half", None, ""])
def test_other_rates_are_refused_in_code(value: object) -> None:
    with pytest.raises(SettingsError, match=r"rate=.*OTEL_EVALS_RATE"):
        load_settings(rate=value)


@pytest.mark.parametrize("value", ["-1", "2", "nan", "inf", "often", ""])
def test_other_rates_are_refused_in_the_environment(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EVALS_RATE", value)
    with pytest.raises(SettingsError, match="OTEL_EVALS_RATE"):
        load_settings()


@pytest.mark.parametrize("value", ["-1", "2", ".nan", "often", "null"])
def test_other_rates_are_refused_in_the_file(value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "evals.yaml"
    path.write_text(f"rate: {value}\n")
    monkeypatch.setenv("OTEL_EVALS_CONFIG", str(path))
    with pytest.raises(SettingsError, match="rate"):
        load_settings()


def test_arguments_win_over_the_environment_and_that_over_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "evals.yaml"
    path.write_text("rate: 0.1\nidle_timeout: 10\nmodel: gpt-4o\n")
    monkeypatch.setenv("OTEL_EVALS_CONFIG", str(path))
    monkeypatch.setenv("OTEL_EVALS_IDLE_TIMEOUT", "20")
    monkeypatch.setenv("OTEL_EVALS_RATE", "0.2")
    settings = load_settings(rate=0.3)
    assert (settings.rate, settings.idle_timeout, settings.model) == (0.3, 20.0, "gpt-4o")


def test_rates_per_evaluator_come_from_one_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EVALS_RATES", "failure_rate=0.5, goal_achievement=0.1")
    settings = load_settings(rate=1.0)
    assert settings.rate_of("failure_rate") == 0.5
    assert settings.rate_of("goal_achievement") == 0.1
    assert settings.rate_of("failure_communication") == 1.0


def test_rates_without_a_value_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EVALS_RATES", "failure_rate")
    with pytest.raises(SettingsError, match="name=value"):
        load_settings()


def test_evaluators_come_as_a_comma_separated_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EVALS_EVALUATORS", "failure_rate, goal_achievement,failure_rate")
    assert load_settings().evaluators == ("failure_rate", "goal_achievement")


def test_no_evaluator_at_all_is_refused_with_the_remedy() -> None:
    with pytest.raises(SettingsError, match="set rate to 0"):
        load_settings(evaluators=())


def test_a_misspelt_setting_is_refused() -> None:
    with pytest.raises(SettingsError, match="idel_timeout: there is no such setting"):
        load_settings(idel_timeout=3)


def test_a_missing_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EVALS_CONFIG", "missing.yaml")
    with pytest.raises(SettingsError, match=r"missing\.yaml: no such file"):
        load_settings()


def test_the_key_is_never_shown() -> None:
    settings = load_settings(api_key="sk-secret")
    assert "sk-secret" not in repr(settings)
    assert "sk-secret" not in settings.model_dump_json()
    with pytest.raises(SettingsError) as refused:
        load_settings(api_key=["sk-secret"])
    assert "sk-secret" not in str(refused.value)


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().rate = 0.5  # type: ignore[misc]
