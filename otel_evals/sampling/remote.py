"""Takes rates from a standard remote sampling endpoint: Jaeger 2's `remote_sampling`, the collector's
`jaegerremotesampling`.

The service is asked for by its `service.name`; the operation names what the rate is for: an evaluator, or
`rule/evaluator`, or `pause`, which stops judging while its rate is above 0. The service's default probability is
for the evaluators that are not named, but only once one is: a service without any is meant for trace sampling
alone. Operations of other names are not for us. What an answer no longer mentions stays as it is.

Protocol: api_v2/sampling.proto of jaeger-idl, in its JSON form.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from otel_evals.sampling.rate import check_rate
from otel_evals.sampling.sampler import Sampler
from otel_evals.suppression import internal_work

if TYPE_CHECKING:
    import aiohttp

__all__ = ["PAUSE_OPERATION", "RemoteRates", "Strategies", "read_strategies"]

logger = logging.getLogger(__name__)

PAUSE_OPERATION = "pause"
TIMEOUT_S = 10.0
MAX_BYTES = 2**20
JITTER = 0.1
"""Part of the interval by which questions vary, so that replicas do not ask all at once."""


class RemoteRates:
    """Asks one endpoint now and then. The last good answer holds while it is unreachable."""

    def __init__(self, sampler: Sampler, url: str, service: str, interval_s: float = 60.0) -> None:
        """Nothing is asked yet; `poll` asks once, `run` asks until cancelled.

        Args:
            sampler: is changed.
            url: the whole address without the query, e.g. `http://jaeger:5778/api/sampling`.
            service: `service.name` of the application.
            interval_s: seconds between two questions.
        """
        self._sampler = sampler
        self._url = url
        self._shown = _without_credentials(url)
        self._service = service
        self._interval_s = interval_s
        self._etag: str | None = None
        self._taken: Strategies | None = None
        self._healthy = True

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            await self.poll()
            await asyncio.sleep(self._interval_s * random.uniform(1 - JITTER, 1 + JITTER))

    async def poll(self) -> bool:
        """Ask once. Never raises. Returns whether sampling changed."""
        import aiohttp

        try:
            body = await self._get()
            changed = body is not None and self._take(body)
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError) as error:
            if self._healthy:
                logger.warning("otel-evals: no rates from %s, the last ones stay: %s", self._shown, _reason(error))
            self._healthy = False
            return False
        if not self._healthy:
            logger.info("otel-evals: rates from %s again", self._shown)
        self._healthy = True
        return changed

    async def _get(self) -> bytes | None:
        """The body, or None when it did not change."""
        import aiohttp

        headers = {"Accept": "application/json", **({"If-None-Match": self._etag} if self._etag else {})}
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        # A session for each question: they are a minute apart, and nothing is left open across forks and loops.
        with internal_work():
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
                session.get(self._url, params={"service": self._service}, headers=headers) as response,
            ):
                if response.status == 304:
                    return None
                response.raise_for_status()
                body = await _bounded(response)
        self._etag = response.headers.get("ETag")
        return body

    def _take(self, body: bytes) -> bool:
        strategies = read_strategies(json.loads(body))
        if strategies == self._taken:
            return False
        changes = self._changes(strategies)
        self._sampler.set_rates(changes, source=self._shown)
        pause = strategies.operations.get(PAUSE_OPERATION)
        if pause is not None and (self._taken is None or pause != self._taken.operations.get(PAUSE_OPERATION)):
            change = self._sampler.pause if pause > 0 else self._sampler.resume
            change(source=self._shown)
        self._taken = strategies
        return bool(changes) or pause is not None

    def _changes(self, strategies: Strategies) -> dict[tuple[str | None, str | None], float]:
        """The part of the answer that is for us, by (rule, evaluator)."""
        rules, names = ({key[part] for key in self._sampler.rates()} for part in (0, 1))
        changes: dict[tuple[str | None, str | None], float] = {}
        for operation, rate in strategies.operations.items():
            rule, _, name = operation.rpartition("/")
            if name in names and (not rule or rule in rules):
                changes[rule or None, name] = rate
        if changes and strategies.default is not None:
            changes[None, None] = strategies.default
        return changes


class Strategies(NamedTuple):
    """What an answer says."""

    default: float | None
    """For operations that are not named. None: not said."""
    operations: dict[str, float]
    """Operation to rate."""


def read_strategies(answer: Any) -> Strategies:
    """The rates in the JSON of a sampling response.

    Raises:
        ValueError: the answer is not of that form, or a rate is none; then nothing of it is to be taken.
    """
    if not isinstance(answer, Mapping):
        raise ValueError("the answer is no JSON object: is this a remote sampling endpoint?")
    sampling = answer.get("operationSampling") or {}
    strategies = sampling.get("perOperationStrategies") or [] if isinstance(sampling, Mapping) else None
    if not isinstance(strategies, list):
        raise ValueError("operationSampling is not of the standard form")
    default = sampling.get("defaultSamplingProbability")
    return Strategies(None if default is None else check_rate(default), dict(map(_operation, strategies)))


def _operation(strategy: Any) -> tuple[str, float]:
    name = strategy.get("operation") if isinstance(strategy, Mapping) else None
    probabilistic = strategy.get("probabilisticSampling") if isinstance(strategy, Mapping) else None
    if not isinstance(name, str) or not isinstance(probabilistic, Mapping):
        raise ValueError("an operation has no name or no probabilisticSampling")
    try:
        # Protobuf's JSON leaves out zeros: no samplingRate is the rate 0.
        return name, check_rate(probabilistic.get("samplingRate", 0.0))
    except ValueError as error:
        raise ValueError(f"operation {name!r}: {error}") from None


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _reason(error: Exception) -> str:
    """For the log: aiohttp's own messages repeat the URL, which may hold a password."""
    status = getattr(error, "status", None)
    if status is not None:
        return f"HTTP status {status}"
    ours = isinstance(error, ValueError) and not hasattr(error, "url")
    return str(error) if ours else type(error).__name__


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    body = await response.content.read(MAX_BYTES + 1)
    while len(body) <= MAX_BYTES and (more := await response.content.read(MAX_BYTES)):
        body += more
    if len(body) > MAX_BYTES:
        raise ValueError(f"the answer is longer than {MAX_BYTES} bytes")
    return body
