"""What people ask three invented agents, what the tools return, how the agents put it: templates and data."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["AGENTS", "AgentTexts", "Task"]

Values: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """One thing a person can want, and the tool that serves it."""

    tool: str
    topic: str
    """The tool in the agent's words, e.g. `flight search`."""
    questions: tuple[str, ...]
    slots: Callable[[random.Random], Values]
    """Values for the question; they are the tool's arguments as well."""
    result: Callable[[random.Random], Values]
    answers: tuple[str, ...]
    """Templates over slots and result."""
    alternatives: tuple[str, ...]
    """What the agent can offer when the tool fails."""


@dataclass(frozen=True, slots=True)
class AgentTexts:
    """One agent: its name, instructions and tasks."""

    name: str
    instructions: str
    tasks: tuple[Task, ...]


_CITIES = (
    "Lisbon", "Oslo", "Kyoto", "Quito", "Tallinn", "Nairobi", "Montreal", "Cork", "Hanoi", "Trieste",
    "Bergen", "Porto", "Denver", "Perth", "Dakar", "Riga", "Seville", "Busan", "Leeds", "Graz",
)  # fmt: skip
_DAYS = (
    "12 March",
    "3 April",
    "27 April",
    "9 May",
    "20 May",
    "14 June",
    "1 July",
    "30 August",
    "18 September",
)
_AIRLINES = ("Alba Air", "Nordwind", "Pacific Blue", "Tern Airways", "Meridian", "Aurora Jet")
_HOTELS = ("Harbour House", "The Old Mill", "Station Inn", "Park Terrace", "Lantern Hotel", "Hotel Linden")
_SKIES = ("sunshine", "scattered clouds", "light rain", "strong wind", "morning fog", "thunderstorms")
_ITEMS = (
    "hiking boots", "desk lamp", "coffee grinder", "rain jacket", "office chair", "headphones",
    "cast-iron pan", "bike helmet", "keyboard", "sleeping bag", "wall clock", "water bottle", "backpack",
    "toaster",
)  # fmt: skip
_DEPOTS = ("Leeds", "Graz", "Rotterdam", "Lyon", "Gdansk", "Malmö", "Bologna")
_STATES = ("left the depot in {depot}", "waits at the depot in {depot}", "is out for delivery near {depot}")
_PAYEES = (
    "Green Power Ltd",
    "City Water",
    "Hilltop Rent",
    "Northern Rail",
    "Atlas Insurance",
    "Bright Dental",
)
_CURRENCIES = ("euros", "pounds", "yen", "Swiss francs", "Canadian dollars", "kroner")


def _trip(rng: random.Random) -> Values:
    origin, destination = rng.sample(_CITIES, k=2)
    return {"origin": origin, "destination": destination, "date": rng.choice(_DAYS)}


def _flight(rng: random.Random) -> Values:
    return {
        "airline": rng.choice(_AIRLINES),
        "flight": f"{rng.choice('ABKMNPT')}{rng.choice('ELRSX')}{rng.randint(100, 989)}",
        "departs": f"{rng.randint(5, 21):02d}:{rng.choice(('05', '10', '25', '40', '55'))}",
        "price": rng.randrange(79, 980),
    }


def _parcel(rng: random.Random) -> Values:
    state = rng.choice(_STATES).format(depot=rng.choice(_DEPOTS))
    return {"state": state, "arrives": f"{rng.choice(('Monday', 'Tuesday', 'Thursday', 'Friday'))}"}


_TRAVEL = AgentTexts(
    name="travel-agent",
    instructions="You help travellers with flights, weather and hotels. Use your tools.",
    tasks=(
        Task(
            tool="search_flights",
            topic="flight search",
            questions=(
                "Find me a flight from {origin} to {destination} on {date}.",
                "What does it cost to fly from {origin} to {destination} on {date}?",
                "I have to be in {destination} on {date}, leaving from {origin}. Any flights?",
                "Morning! {origin} to {destination}, {date}, one adult please.",
            ),
            slots=_trip,
            result=_flight,
            answers=(
                "{airline} {flight} leaves {origin} at {departs} and costs ${price}.",
                "The best I found is {airline} {flight} at {departs} for ${price}.",
                "On {date} you can take {airline} {flight} to {destination}: {departs}, ${price}.",
            ),
            alternatives=(
                "I can look at the day before or after instead",
                "I could check trains from {origin} instead",
                "you could look at the airline's own site, or I can try a nearby airport",
            ),
        ),
        Task(
            tool="get_weather",
            topic="weather service",
            questions=(
                "What will the weather be in {city} on {date}?",
                "Do I need a coat in {city} on {date}?",
                "How warm does {city} get around {date}?",
            ),
            slots=lambda rng: {"city": rng.choice(_CITIES), "date": rng.choice(_DAYS)},
            result=lambda rng: {
                "sky": rng.choice(_SKIES),
                "high": rng.randint(3, 34),
                "rain": rng.randint(0, 95),
            },
            answers=(
                "Expect {sky} in {city} and up to {high} degrees.",
                "{city} on {date}: {sky}, {high} degrees, {rain} % chance of rain.",
                "The forecast says {sky}, with a high of {high} degrees.",
            ),
            alternatives=(
                "I can tell you the usual climate of {city} at that time of year instead",
                "the national weather office has a page for {city}, and I can try again later",
            ),
        ),
        Task(
            tool="find_hotels",
            topic="hotel search",
            questions=(
                "I need a hotel in {city} for {nights} nights.",
                "Where could I sleep in {city}? {nights} nights, nothing fancy.",
                "Any rooms in {city} for {nights} nights from {date}?",
            ),
            slots=lambda rng: {
                "city": rng.choice(_CITIES),
                "nights": rng.randint(2, 9),
                "date": rng.choice(_DAYS),
            },
            result=lambda rng: {
                "hotel": rng.choice(_HOTELS),
                "rate": rng.randrange(55, 320),
                "rooms": rng.randint(1, 9),
            },
            answers=(
                "{hotel} in {city} has {rooms} rooms left at ${rate} a night.",
                "I would take {hotel}: ${rate} a night for your {nights} nights.",
                "There is room at {hotel} for ${rate} a night.",
            ),
            alternatives=(
                "I could look for rooms just outside {city} instead",
                "you could call {city}'s tourist office, or I can search another date",
            ),
        ),
    ),
)

_SUPPORT = AgentTexts(
    name="order-support",
    instructions="You are the support agent of a web shop. Use your tools for orders, parcels and refunds.",
    tasks=(
        Task(
            tool="track_parcel",
            topic="parcel tracking",
            questions=(
                "Where is my order {order}?",
                "My {item} should have come last week, order {order}. What is going on?",
                "Can you track {order} for me? It is the {item}.",
            ),
            slots=lambda rng: {"order": f"W-{rng.randint(10000, 99999)}", "item": rng.choice(_ITEMS)},
            result=_parcel,
            answers=(
                "Your {item} {state} and should arrive on {arrives}.",
                "Order {order} {state}; delivery is planned for {arrives}.",
                "Good news: it {state}. You will have it by {arrives}.",
            ),
            alternatives=(
                "I can send you an e-mail as soon as I know more, or pass {order} to a colleague",
                "the carrier's own tracking page takes the number {order} as well",
            ),
        ),
        Task(
            tool="check_stock",
            topic="stock system",
            questions=(
                "Do you still have the {item} in {colour}?",
                "Is the {colour} {item} available?",
                "How many of the {item} do you have in {colour}?",
            ),
            slots=lambda rng: {
                "item": rng.choice(_ITEMS),
                "colour": rng.choice(("black", "green", "blue", "red", "grey")),
            },
            result=lambda rng: {"stock": rng.randint(1, 60), "price": rng.randrange(9, 240)},
            answers=(
                "Yes, {stock} of them in {colour}, at ${price} each.",
                "We have {stock} in stock. The price is ${price}.",
                "The {colour} {item} is available for ${price}; {stock} are left.",
            ),
            alternatives=(
                "I can reserve one for when the stock comes back, or suggest a similar {item}",
                "our shop in town can check the shelf if you call them",
            ),
        ),
        Task(
            tool="refund_status",
            topic="refund system",
            questions=(
                "Has the refund for {order} been paid?",
                "I sent back the {item} ({order}). When do I get my money?",
                "Refund for {order}, please tell me the status.",
            ),
            slots=lambda rng: {"order": f"W-{rng.randint(10000, 99999)}", "item": rng.choice(_ITEMS)},
            result=lambda rng: {"amount": rng.randrange(12, 310), "days": rng.randint(1, 9)},
            answers=(
                "The refund of ${amount} was approved and takes {days} more days.",
                "${amount} will be on your account in {days} days.",
                "It is on its way: ${amount}, expected in {days} days.",
            ),
            alternatives=(
                "I can open a case for {order} so that the accounts team answers you directly",
                "you could send me the return receipt, and I will have it checked by hand",
            ),
        ),
    ),
)

_BANK = AgentTexts(
    name="bank-assistant",
    instructions="You answer questions about the customer's accounts. Use your tools; never guess a figure.",
    tasks=(
        Task(
            tool="get_balance",
            topic="account service",
            questions=(
                "What is the balance of my {account} account?",
                "How much is left on my {account} account?",
                "{account} account: the balance, please.",
            ),
            slots=lambda rng: {"account": rng.choice(("savings", "current", "joint", "holiday", "business"))},
            result=lambda rng: {"balance": f"{rng.randrange(40, 9800)}.{rng.randint(10, 99)}"},
            answers=(
                "Your {account} account holds {balance}.",
                "The balance is {balance} as of this morning.",
                "There are {balance} on the {account} account.",
            ),
            alternatives=(
                "the cash machine shows the balance as well, or I can try again in ten minutes",
                "I can have the statement for the {account} account posted to you instead",
            ),
        ),
        Task(
            tool="list_payments",
            topic="payment history",
            questions=(
                "When did I last pay {payee}?",
                "Did the payment to {payee} go out in {month}?",
                "How much went to {payee} in {month}?",
            ),
            slots=lambda rng: {
                "payee": rng.choice(_PAYEES),
                "month": rng.choice(("January", "February", "March", "May", "June", "October")),
            },
            result=lambda rng: {
                "amount": f"{rng.randrange(15, 900)}.{rng.randint(10, 99)}",
                "day": rng.randint(1, 28),
            },
            answers=(
                "{payee} received {amount} on {month} {day}.",
                "The last payment to {payee} was {amount}, on day {day} of {month}.",
                "Yes: {amount} went out on {month} {day}.",
            ),
            alternatives=(
                "your {month} statement lists it too, and I can send you that instead",
                "I could ask {payee} for a confirmation on your behalf",
            ),
        ),
        Task(
            tool="exchange_rate",
            topic="rate service",
            questions=(
                "What do I get for {sum} dollars in {currency}?",
                "How many {currency} are {sum} dollars today?",
                "I want to change {sum} dollars into {currency}. What is the rate?",
            ),
            slots=lambda rng: {"sum": rng.randrange(50, 5000, 50), "currency": rng.choice(_CURRENCIES)},
            result=lambda rng: {"rate": rng.randint(700, 1600) / 1000, "fee": rng.randint(1, 9)},
            answers=(
                "Today's rate is {rate}, and the fee is {fee} dollars.",
                "One dollar buys {rate} {currency}; we charge {fee} dollars.",
                "The rate for {currency} stands at {rate} with a fee of {fee} dollars.",
            ),
            alternatives=(
                "the central bank publishes a daily rate for {currency} you could go by",
                "I can note your {sum} dollars and call you once the rate is back",
            ),
        ),
    ),
)

AGENTS = (_TRAVEL, _SUPPORT, _BANK)

HONEST = (
    "I'm sorry, the {topic} {trouble}, so I can't tell you that right now.",
    "Unfortunately I could not get this: the {topic} {trouble}. Please try again later.",
    "I don't have an answer for you. The {topic} {trouble}.",
    "I was unable to look that up because the {topic} {trouble}.",
    "Sorry, no luck. The {topic} {trouble} and I do not want to guess.",
)
ALTERNATIVE = (
    "The {topic} {trouble}, so I have no result. What you could do: {alternative}.",
    "I'm afraid the {topic} {trouble}. Instead, {alternative}.",
    "I could not reach an answer because the {topic} {trouble}; {alternative}.",
    "Sorry, the {topic} {trouble}. One way round it: {alternative}.",
)
STALL = (
    "Let me look into that for you.",
    "I will get back to you on this.",
    "There are many things to consider here.",
    "That is a good question. Things vary a lot.",
    "One moment please, I am working on it.",
    "It depends. Could you tell me more?",
    "Rest assured that we take this seriously.",
)
TROUBLE = {
    "timeout": ("timed out", "did not answer in time", "is taking too long to respond"),
    "network_error": ("cannot be reached at the moment", "is offline", "has a connection problem"),
    "execution_error": ("returned an error", "is down right now", "failed on its side"),
    "validation_error": ("refused the request", "rejected the details I sent", "did not accept the input"),
    "truncated": ("sent back only part of the data", "gave an answer that breaks off"),
    "missing": ("left out the figures", "returned an incomplete record"),
    "corrupted": ("returned values that make no sense", "sent back garbled data"),
}
INSIST = (
    "Hello? I still need an answer.",
    "And? What did you find?",
    "You did not answer my question.",
    "I asked you something, please answer.",
    "That is not an answer. Once more: {question}",
)
THANKS = (
    "Thanks, that is what I needed.",
    "Perfect, thank you!",
    "Great, thanks a lot.",
    "Lovely, thank you for the quick help.",
    "Thank you, that solves it.",
)
ANNOYED = (
    "This is useless.",
    "So frustrating. I am still where I started.",
    "That does not help me at all.",
    "Forget it, I will call someone.",
    "Are you even reading what I write?",
)
RESIGNED = (
    "All right, I will try again later.",
    "OK.",
    "I see. Maybe tomorrow then.",
    "Fine, not your fault.",
)
ACCEPTS = ("Good idea, I will do that. Thanks!", "OK, that works for me.", "Thanks, I will try that.")
FAREWELL = ("You're welcome!", "Any time.", "Glad I could help.", "You are welcome, have a good day.")
CONDOLENCE = ("I understand.", "I'm sorry about that.", "I am sorry that I could not do more.")
