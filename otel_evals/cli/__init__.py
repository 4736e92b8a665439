"""The `otel-evals` command. Each command is a module of its own, loaded only when it is called."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "demo": "score a few hundred simulated sessions, live",
    "inspect": "show the sessions in recorded OTLP/JSON files",
    "replay": "run the whole pipeline over recorded OTLP/JSON files",
}
"""Command → what it is for. The module `otel_evals.cli.<command>` holds a function `command` for typer."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the console script."""
    import typer

    arguments = list(sys.argv[1:] if arguments is None else arguments)
    app = typer.Typer(name="otel-evals", add_completion=False, no_args_is_help=True)
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    for name, purpose in COMMANDS.items():
        if name == chosen:
            module = importlib.import_module(f"otel_evals.cli.{name}")
            app.command(name, help=module.command.__doc__)(module.command)
        else:
            app.command(name, help=purpose)(_unloaded)
    app.callback()(_overview)
    app(args=arguments, prog_name="otel-evals")


def _unloaded() -> None:
    """Stands for a command in the overview; never runs."""


def _overview() -> None:
    """Scores for live AI-agent sessions, from the OpenTelemetry spans you already have."""
