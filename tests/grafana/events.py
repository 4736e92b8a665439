"""The evaluation events that a collector received, with names and values as Loki keeps them."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from tests.components.collector import Collector

__all__ = ["Event", "evaluation_events"]

Event: TypeAlias = dict[str, str]


def evaluation_events(collector: Collector) -> list[Event]:
    """Oldest first; attributes with underscores, and `service_name` and `trace_id` beside them."""
    return [
        {
            "service_name": _attribute(resource["resource"]["attributes"], "service.name"),
            "trace_id": record["traceId"],
            **{entry["key"].replace(".", "_"): _text(entry["value"]) for entry in record["attributes"]},
        }
        for request in collector.received("logs")
        for resource in request["resourceLogs"]
        for scope in resource["scopeLogs"]
        for record in scope["logRecords"]
        if record.get("eventName") == "gen_ai.evaluation.result"
    ]


def _attribute(entries: list[dict[str, Any]], key: str) -> str:
    return next(_text(entry["value"]) for entry in entries if entry["key"] == key)


def _text(value: dict[str, Any]) -> str:
    [found] = value.values()
    return found if isinstance(found, str) else json.dumps(found)
