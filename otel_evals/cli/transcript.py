"""Sessions as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from otel_evals.dialects.decoding import plain_text
from otel_evals.sessions.model import Session, ToolCall, Turn

__all__ = ["show"]

WIDTH = 400
"""Characters shown of a tool's arguments or result."""


def show(files: Sequence[Path], sessions: Sequence[Session], *, explain: bool = False) -> None:
    """Prints each session's transcript, failures marked."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(", ".join(str(path) for path in files), style="dim"))
    if not sessions:
        console.print("no agent session in here")
    for session in sessions:
        _session(console, session, explain)


def _session(console: Console, session: Session, explain: bool) -> None:
    head = Text("\nsession ", style="bold")
    head.append(session.session_id, style="bold cyan")
    head.append(f"  ({'derived from the trace' if session.derived else session.session_key})", style="dim")
    console.print(head)
    facts = {
        "service": session.service_name,
        "agents": ", ".join(session.agents),
        "models": ", ".join(session.models),
        "user": session.user_id,
        "goal": session.goal,
        "tokens": _tokens(session),
        "not evaluable": session.not_evaluable_reason,
        "incomplete": "spans are missing" if session.incomplete else None,
    }
    console.print(Text("  " + "  ".join(f"{name}: {value}" for name, value in facts.items() if value), style="dim"))
    for index, turn in enumerate(session.turns):
        _turn(console, index, turn)
        for source in turn.sources if explain else ():
            console.print(Text(f"      · {source}", style="dim"))


def _turn(console: Console, index: int, turn: Turn) -> None:
    _line(console, f"{index + 1:>3} user  ", turn.user, "green")
    for said in turn.interim:
        _line(console, "    agent ", said, "dim")
    for call in turn.tool_calls:
        _tool(console, call)
    if turn.error:
        _line(console, "    error ", f"{turn.error.type or 'failed'}: {turn.error.message or ''}", "bold red")
    _line(console, "    agent ", turn.agent, "blue")


def _tool(console: Console, call: ToolCall) -> None:
    arguments = plain_text(call.arguments)[:WIDTH] if call.arguments is not None else ""
    _line(console, "    tool  ", f"{call.name}({arguments})", "yellow")
    if call.error:
        reason = ": ".join(part for part in (call.error.type, call.error.message) if part) or "failed"
        _line(console, "     FAILED ", reason[:WIDTH], "bold red")
    elif call.result is not None:
        _line(console, "     → ", plain_text(call.result)[:WIDTH], "dim")


def _line(console: Console, label: str, text: str | None, style: str) -> None:
    line = Text(label, style="dim")
    line.append(text if text else "(nothing exported)", style=style if text else "dim italic")
    console.print(line)


def _tokens(session: Session) -> str | None:
    usage = session.usage
    if usage.input_tokens is None and usage.output_tokens is None:
        return None
    return f"{usage.input_tokens or 0} in, {usage.output_tokens or 0} out"
