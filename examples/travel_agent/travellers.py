"""The people who talk to the agent: seeded requests, and a last word that depends on what they were told."""

from __future__ import annotations

import random
import re
from datetime import date, timedelta

__all__ = ["last_word", "requests"]

_CITIES = (
    "Lisbon",
    "Oslo",
    "Kyoto",
    "Quito",
    "Tallinn",
    "Nairobi",
    "Montreal",
    "Cork",
    "Hanoi",
    "Trieste",
    "Bergen",
)
_FLIGHTS = (
    "Find me a flight from {a} to {b} on {day}, please.",
    "I need to get from {a} to {b} on {day}. What does it cost?",
    "Is there a seat from {a} to {b} on {day}?",
)
_FLIGHTS_AND_WEATHER = (
    "Book-worthy flight from {a} to {b} on {day}? And what is the weather in {b} on {day}?",
    "I fly from {a} to {b} on {day}: find a flight, and tell me the weather in {b} on {day}.",
)
_HOTELS = ("Now a hotel in {b} for {n} nights.", "Where can I stay? I want a hotel in {b} for {n} nights.")
_WEATHER = (
    "What will the weather in {b} on {day} be like?",
    "Should I pack a coat? Weather in {b} on {day}, please.",
)
_THANKS = ("Thanks, that is all I needed.", "Perfect, thank you!", "Great, thanks a lot.")
_ANNOYED = (
    "That does not help me.",
    "So I still have nothing. Never mind.",
    "This is useless, I asked for a price.",
)
_FIGURES = re.compile(r"\$\d|°C|\d+ per night")


def requests(rng: random.Random) -> list[str]:
    """One or two requests of one traveller, in order."""
    a, b = rng.sample(_CITIES, k=2)
    day = date(2027, 1, 10) + timedelta(days=rng.randrange(200))
    first = rng.choice(_FLIGHTS + _FLIGHTS_AND_WEATHER)
    second = rng.choice((*_HOTELS, *_WEATHER, ""))
    texts = [text.format(a=a, b=b, day=day, n=rng.randint(2, 9)) for text in (first, second) if text]
    return texts


def last_word(answer: str, rng: random.Random) -> str:
    """Thanks for an answer with figures in it, complaint about one without."""
    return rng.choice(_THANKS if _FIGURES.search(answer) else _ANNOYED)
