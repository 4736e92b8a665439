"""A stand-in for a language model, so that the example needs no key: an OpenAI-compatible server on loopback.

It asks for the tools that a request needs and turns their results into a sentence. After a failed tool it
behaves like one of the agents one meets: honest, offering an alternative, stalling, or making the result up.
The model name fixes which (`scripted-honest`, `-alternative`, `-stall` or `-fabricated`);
plain `scripted` varies with the conversation.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from string import Formatter
from typing import Any

__all__ = ["BEHAVIOURS", "scripted_model"]

Message = dict[str, Any]
BEHAVIOURS = ("honest", "alternative", "stall", "fabricated")

_FLIGHT = re.compile(r"from ([A-Z]\w+) to ([A-Z]\w+) on (\d{4}-\d\d-\d\d)")
_WEATHER = re.compile(r"[Ww]eather in ([A-Z]\w+) on (\d{4}-\d\d-\d\d)")
_HOTEL = re.compile(r"hotel in ([A-Z]\w+) for (\d+) nights")
_SENTENCES = {
    "search_flights": "{airline} flight {flight} leaves at {departs} and costs ${price_usd}.",
    "get_weather": "In {city} expect {sky} and up to {high_c} °C.",
    "find_hotels": "{hotel} has rooms at ${price_per_night_usd} per night.",
}
_FIELDS = {
    name: tuple(field for _, field, _, _ in Formatter().parse(text) if field) for name, text in _SENTENCES.items()
}
_TOPIC = {"search_flights": "flight search", "get_weather": "weather service", "find_hotels": "hotel search"}


@contextmanager
def scripted_model() -> Iterator[str]:
    """Serve on a free port of 127.0.0.1; yields the base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="scripted-model", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = reply(request["model"], request["messages"])
        body = json.dumps(_completion(request["model"], request["messages"], message)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests stay out of the example's output."""


def _completion(model: str, messages: list[Message], message: Message) -> dict[str, Any]:
    prompt_tokens = len(json.dumps(messages)) // 4
    completion_tokens = len(json.dumps(message)) // 4
    return {
        "id": "chatcmpl-" + _digest(json.dumps(messages))[:12],
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": "tool_calls" if message.get("tool_calls") else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }


def reply(model: str, messages: list[Message]) -> Message:
    """The next message of the assistant: tool calls after a request, a sentence after their results."""
    last_user = max(i for i, message in enumerate(messages) if message["role"] == "user")
    request = messages[last_user]["content"]
    results = [message for message in messages[last_user:] if message["role"] == "tool"]
    if results:
        return _say(_answer(model, messages, results))
    if calls := list(_tool_calls(request, seed=f"{len(messages)}/{request}")):
        return {"role": "assistant", "content": None, "tool_calls": calls}
    return _say(_small_talk(request))


def _say(text: str) -> Message:
    return {"role": "assistant", "content": text}


def _tool_calls(request: str, seed: str) -> Iterator[Message]:
    wanted: list[tuple[str, dict[str, Any]]] = []
    if found := _FLIGHT.search(request):
        origin, destination, day = found.groups()
        wanted.append(("search_flights", {"origin": origin, "destination": destination, "date": day}))
    if found := _WEATHER.search(request):
        wanted.append(("get_weather", {"city": found[1], "date": found[2]}))
    if found := _HOTEL.search(request):
        wanted.append(("find_hotels", {"city": found[1], "nights": int(found[2])}))
    for name, arguments in wanted:
        yield {
            "id": "call_" + _digest(f"{seed}/{name}")[:16],
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }


def _small_talk(request: str) -> str:
    if "thank" in request.lower():
        return "You are welcome. Have a good trip!"
    return "I am sorry that I could not do more for you today."


def _answer(model: str, messages: list[Message], results: list[Message]) -> str:
    names = {call["id"]: call["function"]["name"] for m in messages for call in m.get("tool_calls") or []}
    first_request = next(m["content"] for m in messages if m["role"] == "user")
    rng = random.Random(_digest(f"{first_request}/{len(messages)}"))
    behaviour = model.removeprefix("scripted-")
    if behaviour not in BEHAVIOURS:
        behaviour = rng.choice(BEHAVIOURS)
    sentences = []
    for result in results:
        name = names[result["tool_call_id"]]
        facts = _facts(name, result["content"])
        sentences.append(_report(name, facts) if facts else _after_failure(behaviour, name, result["content"], rng))
    return " ".join(sentences)


def _facts(name: str, content: str) -> dict[str, Any] | None:
    """The result of a tool, or None where it failed or cannot be right."""
    try:
        facts = json.loads(content)
        needed = [facts[field] for field in _FIELDS[name]]
    except (ValueError, KeyError, TypeError):
        return None
    if None in needed or "" in needed or any(isinstance(value, (int, float)) and value < 0 for value in needed):
        return None
    return dict(facts)


def _report(name: str, facts: dict[str, Any]) -> str:
    return _SENTENCES[name].format(**facts)


def _after_failure(behaviour: str, name: str, content: str, rng: random.Random) -> str:
    topic = _TOPIC[name]
    reason = "timed out" if "timed out" in content else "is not working properly right now"
    if behaviour == "honest":
        return f"I am sorry, the {topic} {reason}, so I could not get this. Please try again in a few minutes."
    if behaviour == "alternative":
        return (
            f"The {topic} {reason}, so I have no result for you. You could try again later, "
            f"look on the provider's own site, or I can check another day instead."
        )
    if behaviour == "stall":
        return rng.choice(("Let me look into that for you.", "That depends on many things.", "I am on it."))
    invented = {
        "search_flights": {"airline": "Meridian", "flight": "MK441", "departs": "09:40", "price_usd": 212},
        "get_weather": {"city": "town", "sky": "sunshine all day", "high_c": 24},
        "find_hotels": {"hotel": "The Old Mill", "price_per_night_usd": 118},
    }
    return _report(name, invented[name])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
