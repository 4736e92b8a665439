"""The travel agent's fault injector."""

from __future__ import annotations

from typing import Any

import pytest

from examples.travel_agent.faults import ERRORS, FAULTS, SPOILERS, FaultInjector
from examples.travel_agent.tools import search_flights

TRIP = {"origin": "Oslo", "destination": "Kyoto", "date": "2027-05-20"}
RAISED = {
    "timeout": TimeoutError,
    "network_error": ConnectionError,
    "execution_error": RuntimeError,
    "validation_error": ValueError,
}


async def call(injector: FaultInjector, conversation: str = "c") -> dict[str, Any]:
    return await injector.call(conversation, "search_flights", search_flights, **TRIP)


async def outcomes(injector: FaultInjector, calls: int) -> list[str]:
    """The type of the error, or the result as text, of so many calls in one conversation."""
    found = []
    for _ in range(calls):
        try:
            found.append(repr(await call(injector)))
        except Exception as error:
            found.append(type(error).__name__)
    return found


async def test_without_faults_the_tool_answers() -> None:
    assert await call(FaultInjector()) == await search_flights(**TRIP)


@pytest.mark.parametrize("fault", ERRORS)
async def test_an_error_replaces_the_call_and_names_the_tool(fault: Any) -> None:
    with pytest.raises(RAISED[fault], match="search_flights"):
        await call(FaultInjector(probability=1.0, kinds=[fault]))


@pytest.mark.parametrize("fault", SPOILERS)
async def test_a_spoiled_result_differs_from_the_good_one(fault: Any) -> None:
    good = await search_flights(**TRIP)
    spoiled = await call(FaultInjector(probability=1.0, kinds=[fault]))
    assert spoiled.keys() == good.keys()
    assert spoiled != good


async def test_missing_fields_are_null() -> None:
    spoiled = await call(FaultInjector(probability=1.0, kinds=["missing"]))
    assert None in spoiled.values()


async def test_corrupted_figures_are_impossible() -> None:
    spoiled = await call(FaultInjector(probability=1.0, kinds=["corrupted"]))
    assert spoiled["price_usd"] < 0


async def test_a_script_decides_call_by_call_and_then_leaves_the_tool_alone() -> None:
    injector = FaultInjector(script={"search_flights": ["timeout", None, "network_error"]})
    good = repr(await search_flights(**TRIP))
    assert await outcomes(injector, 5) == ["TimeoutError", good, "ConnectionError", good, good]


async def test_a_script_begins_anew_in_each_conversation() -> None:
    injector = FaultInjector(script={"search_flights": ["timeout"]})
    for conversation in ("a", "b"):
        with pytest.raises(TimeoutError):
            await call(injector, conversation)
    assert injector.injected == [("a", "search_flights", "timeout"), ("b", "search_flights", "timeout")]


async def test_the_same_seed_gives_the_same_faults() -> None:
    assert await outcomes(FaultInjector(0.5, seed=3), 30) == await outcomes(FaultInjector(0.5, seed=3), 30)


async def test_another_seed_gives_other_faults() -> None:
    assert await outcomes(FaultInjector(0.5, seed=3), 30) != await outcomes(FaultInjector(0.5, seed=4), 30)


async def test_the_probability_is_kept() -> None:
    injector = FaultInjector(0.3, seed=1)
    await outcomes(injector, 1000)
    assert 250 <= len(injector.injected) <= 350


@pytest.mark.parametrize("probability", [-0.1, 1.1, float("nan")])
def test_a_probability_out_of_bounds_is_refused(probability: float) -> None:
    with pytest.raises(ValueError, match=r"0 .* 1"):
        FaultInjector(probability)


def test_an_unknown_fault_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=f"gremlins.*{FAULTS[0]}"):
        FaultInjector(script={"search_flights": ["gremlins"]})  # type: ignore[list-item]
