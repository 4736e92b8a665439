"""Asks Prometheus what Grafana asks it."""

from __future__ import annotations

import json
import re
import time
from typing import Any
from urllib.parse import urlencode

from tests.components.process import get_text
from tests.components.prometheus import Prometheus

__all__ = ["ask_instant", "ask_label_values", "ask_range"]

_LABEL_VALUES = re.compile(r"label_values\((.+), *(\w+)\)$", re.DOTALL)


def ask_instant(prometheus: Prometheus, expression: str, at: float | None = None) -> list[dict[str, Any]]:
    """Series with `metric` and `value`."""
    answer = _ask(prometheus, "query", query=expression, time=at or time.time())
    found: list[dict[str, Any]] = answer["result"]
    return found


def ask_range(
    prometheus: Prometheus, expression: str, start: float, end: float, step: float = 1.0
) -> list[dict[str, Any]]:
    """Series with `metric` and `values`; times are epoch seconds."""
    answer = _ask(prometheus, "query_range", query=expression, start=start, end=end, step=step)
    found: list[dict[str, Any]] = answer["result"]
    return found


def ask_label_values(prometheus: Prometheus, query: str) -> list[str]:
    """The values of a Grafana variable `label_values(series, label)`."""
    parts = _LABEL_VALUES.match(query)
    if parts is None:
        raise ValueError(f"not a label_values query: {query}")
    found: list[str] = _ask(prometheus, f"label/{parts[2]}/values", **{"match[]": parts[1]})
    return found


def _ask(prometheus: Prometheus, path: str, **parameters: Any) -> Any:
    return json.loads(get_text(f"{prometheus.url}/api/v1/{path}?{urlencode(parameters)}", timeout=30.0))["data"]
