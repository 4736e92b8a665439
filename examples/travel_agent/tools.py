"""The agent's three tools: invented but stable data, so that every run can be compared with the last."""

from __future__ import annotations

import random
from typing import Any

__all__ = ["TOOLS", "find_hotels", "get_weather", "search_flights"]

_AIRLINES = ("Alba Air", "Nordwind", "Pacific Blue", "Tern Airways", "Meridian")
_HOTELS = ("Harbour House", "The Old Mill", "Station Inn", "Park Terrace", "Lantern Hotel")
_SKIES = ("sunny", "cloudy", "light rain", "windy", "fog in the morning")


async def search_flights(origin: str, destination: str, date: str) -> dict[str, Any]:
    """Search for flights between two cities on a date.

    Args:
        origin: city of departure.
        destination: city of arrival.
        date: day of travel, YYYY-MM-DD.
    """
    rng = random.Random(f"{origin}/{destination}/{date}")
    return {
        "airline": rng.choice(_AIRLINES),
        "flight": f"{rng.choice('ANPTM')}{rng.choice('KLRX')}{rng.randint(100, 989)}",
        "departs": f"{rng.randint(6, 21):02d}:{rng.choice(('05', '20', '40', '55'))}",
        "price_usd": rng.randrange(89, 940),
        "seats_left": rng.randint(1, 40),
    }


async def get_weather(city: str, date: str) -> dict[str, Any]:
    """Get the weather forecast for a city.

    Args:
        city: the city.
        date: day of the forecast, YYYY-MM-DD.
    """
    rng = random.Random(f"{city}/{date}")
    return {
        "city": city,
        "sky": rng.choice(_SKIES),
        "high_c": rng.randint(4, 33),
        "rain_percent": rng.randint(0, 95),
    }


async def find_hotels(city: str, nights: int) -> dict[str, Any]:
    """Find a hotel with free rooms in a city.

    Args:
        city: the city.
        nights: number of nights.
    """
    rng = random.Random(f"{city}/{nights}")
    return {
        "hotel": rng.choice(_HOTELS),
        "price_per_night_usd": rng.randrange(60, 320),
        "rating": rng.randint(31, 49) / 10,
    }


TOOLS = {function.__name__: function for function in (search_flights, get_weather, find_hotels)}
