"""Runs the demo and saves what it prints as a picture: `python docs/render_demo.py` writes docs/images/demo.svg."""

from __future__ import annotations

import argparse
import io
from pathlib import Path

from rich.console import Console

from otel_evals.cli.demo import IDLE_S, DemoOptions, run_demo
from otel_evals.settings import load_settings

TARGET = Path(__file__).parent / "images" / "demo.svg"
WIDTH = 100
SPEED = 150.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=300)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--target", type=Path, default=TARGET)
    given = parser.parse_args()
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    settings = load_settings(rate=1.0, model="rules", idle_timeout=IDLE_S / SPEED)
    run_demo(DemoOptions(given.sessions, given.seed, SPEED, settings), console)
    given.target.parent.mkdir(parents=True, exist_ok=True)
    # A fixed id: the picture changes only when the output does.
    console.save_svg(str(given.target), title="otel-evals demo", unique_id="demo")


if __name__ == "__main__":
    main()
