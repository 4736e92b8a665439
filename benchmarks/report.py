"""How every benchmark reports: readable lines first, then one JSON object with the figures and whether goals hold."""

from __future__ import annotations

import json
import operator
from typing import Any

_COMPARE = {"<=": operator.le, ">=": operator.ge}


def goal(value: float, target: str) -> dict[str, Any]:
    """`goal(0.3, "<= 0.5")` -> value, goal, and whether it holds."""
    comparison, bound = target.split()
    return {"value": round(value, 4), "goal": target, "holds": _COMPARE[comparison](value, float(bound))}


def report(benchmark: str, figures: dict[str, Any], goals: dict[str, dict[str, Any]]) -> None:
    for name, entry in goals.items():
        print(f"{'ok  ' if entry['holds'] else 'MISS'} {name}: {entry['value']} (goal {entry['goal']})")
    print(json.dumps({"benchmark": benchmark, **figures, "goals": goals}))
