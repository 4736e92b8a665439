"""The agent itself: pydantic-ai, instrumented by its own OpenTelemetry support."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, RunContext, ToolFailed
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from examples.travel_agent.faults import FaultInjector
from examples.travel_agent.tools import TOOLS

__all__ = ["INSTRUCTIONS", "build_agent"]

INSTRUCTIONS = (
    "You are a travel agent. Answer from what your tools return and from nothing else. "
    "When a tool fails, say which one and what the traveller can do instead."
)


def build_agent(model: str, base_url: str, api_key: str, faults: FaultInjector) -> Agent[str, str]:
    """An agent whose dependency is the conversation id and whose tools go through the fault injector.

    Args:
        model: name of the model at the endpoint.
        base_url: OpenAI-compatible endpoint, e.g. `http://localhost:8000/v1`.
        api_key: any text for endpoints that ask for none.
        faults: what is to go wrong.
    """
    chat = OpenAIChatModel(model, provider=OpenAIProvider(base_url=base_url, api_key=api_key))
    agent = Agent(chat, name="travel-agent", instructions=INSTRUCTIONS, deps_type=str)

    async def run(context: RunContext[str], name: str, **arguments: Any) -> dict[str, Any]:
        try:
            return await faults.call(context.deps, name, TOOLS[name], **arguments)
        except (OSError, RuntimeError, ValueError) as error:
            # Told to the model as a failed result; any other exception would end the whole run.
            raise ToolFailed(f"{type(error).__name__}: {error}") from error

    @agent.tool
    async def search_flights(context: RunContext[str], origin: str, destination: str, date: str) -> dict[str, Any]:
        """Search for flights between two cities on a date (YYYY-MM-DD)."""
        return await run(context, "search_flights", origin=origin, destination=destination, date=date)

    @agent.tool
    async def get_weather(context: RunContext[str], city: str, date: str) -> dict[str, Any]:
        """Get the weather forecast for a city on a date (YYYY-MM-DD)."""
        return await run(context, "get_weather", city=city, date=date)

    @agent.tool
    async def find_hotels(context: RunContext[str], city: str, nights: int) -> dict[str, Any]:
        """Find a hotel with free rooms in a city for a number of nights."""
        return await run(context, "find_hotels", city=city, nights=nights)

    return agent
