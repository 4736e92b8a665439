"""What may be spent on judging and what has been: one SQLite table set, private to the process or shared by a host.

Spending is reserved before a judgement and settled after it, so that judgements under way count as spent. What a
crashed process had reserved is freed as soon as its process is gone, or when its lease runs out.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple
from uuid import uuid4

from otel_evals.sampling.bucket import TokenBucket

__all__ = ["Account", "Cost", "Limits", "Standing"]

HOUR, DAY = 3600, 86_400
BUSY_S = 1.0
"""How long to wait for another process that is writing."""


class Cost(NamedTuple):
    """What one judgement takes."""

    tokens: float = 0.0
    usd: float = 0.0


class Limits(NamedTuple):
    """The budget; None: no limit. Hours and days are those of UTC."""

    evaluations_per_minute: float | None = None
    """Sessions sent to the judge, in any 60 seconds."""
    tokens_per_hour: float | None = None
    tokens_per_day: float | None = None
    usd_per_hour: float | None = None
    usd_per_day: float | None = None

    @property
    def any(self) -> bool:
        """There is a limit at all."""
        return any(limit is not None for limit in self)

    @property
    def money(self) -> bool:
        """There is a limit in USD."""
        return self.usd_per_hour is not None or self.usd_per_day is not None


class Standing(NamedTuple):
    """What is left, seen at one moment."""

    level: float | None
    """Evaluations that may start at once; None: not limited."""
    left: dict[tuple[str, int], float]
    """(`tokens` or `usd`, window in seconds) to the rest of the limit, less what is reserved."""
    processes: int
    """Processes that share the account, this one included."""


class Account:
    """Reserve, settle, release; each is one transaction. Usable from several threads and after a fork.

    Raises from every method:
        sqlite3.Error: the file cannot be written. The caller spends nothing then.
    """

    def __init__(
        self,
        limits: Limits,
        path: str = ":memory:",
        lease_s: float = 600.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """An account of its own, or with a path one shared by all processes of the host that name that file.

        Args:
            limits: every process that shares the file should give the same.
            path: file on a local disk.
            lease_s: after so many seconds a reservation that was never settled is void.
            clock: epoch seconds.
        """
        self._limits = limits
        self._path = path
        self._lease_s = lease_s
        self._clock = clock
        per_minute = limits.evaluations_per_minute
        self._bucket = None if per_minute is None else TokenBucket.per_minute(per_minute)
        self._windows = [
            (resource, window, limit)
            for resource, window, limit in (
                ("tokens", HOUR, limits.tokens_per_hour),
                ("tokens", DAY, limits.tokens_per_day),
                ("usd", HOUR, limits.usd_per_hour),
                ("usd", DAY, limits.usd_per_day),
            )
            if limit is not None
        ]
        self._inherited: list[object] = []
        self._open()

    def reserve(self, key: str, need: Cost) -> bool:
        """Whether a judgement may start; if so, `need` is set aside under the key.

        A single judgement may start whenever something is left and nothing else is under way, so that a limit
        smaller than `need` still lets judgements through; it is then exceeded by less than one of them.
        """
        with self._transaction() as (db, now):
            level = self._level(db, now)
            if level is not None and level < 1.0:
                return False
            for resource, window, limit in self._windows:
                spent, reserved = self._spent(db, resource, window, now), self._reserved(db, resource)
                wanted = need.tokens if resource == "tokens" else need.usd
                if spent + reserved + wanted > limit and (reserved > 0 or spent >= limit):
                    return False
            if level is not None:
                db.execute("REPLACE INTO bucket VALUES (1, ?, ?)", (level - 1.0, now))
            lease = (key, self._owner, need.tokens, need.usd, now + self._lease_s)
            db.execute("REPLACE INTO reserved VALUES (?, ?, ?, ?, ?)", lease)
            return True

    def settle(self, key: str, cost: Cost) -> None:
        """The judgement is over and took `cost`; also when its reservation is already void."""
        with self._transaction() as (db, now):
            db.execute("DELETE FROM reserved WHERE key = ?", (key,))
            for resource, window, _ in self._windows:
                amount = self._spent(db, resource, window, now)
                amount += cost.tokens if resource == "tokens" else cost.usd
                row = (resource, window, _begin(now, window), amount)
                db.execute("REPLACE INTO spent VALUES (?, ?, ?, ?)", row)

    def release(self, key: str) -> None:
        """The judgement will not take place: nothing was spent, and its place in the minute is free again."""
        with self._transaction() as (db, now):
            freed = db.execute("DELETE FROM reserved WHERE key = ?", (key,)).rowcount
            level = self._level(db, now)
            if freed and level is not None and self._bucket:
                db.execute("REPLACE INTO bucket VALUES (1, ?, ?)", (min(self._bucket.capacity, level + 1.0), now))

    def standing(self) -> Standing:
        """What is left now; also tells the other processes that this one is alive."""
        with self._transaction() as (db, now):
            self._show_alive(now)
            left = {
                (resource, window): limit - self._spent(db, resource, window, now) - self._reserved(db, resource)
                for resource, window, limit in self._windows
            }
            (processes,) = db.execute("SELECT COUNT(*) FROM process").fetchone()
            return Standing(self._level(db, now), left, processes)

    def close(self) -> None:
        """Leave the account: what this process had reserved is freed."""
        with self._transaction() as (db, _):
            db.execute("DELETE FROM reserved WHERE owner = ?", (self._owner,))
            db.execute("DELETE FROM process WHERE owner = ?", (self._owner,))
        self._db.close()

    # -- Below: one transaction's parts --

    def _open(self) -> None:
        self._pid = os.getpid()
        self._owner = uuid4().hex
        self._lock = threading.Lock()
        self._db = sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        if self._path != ":memory:":
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
        for statement in _SCHEMA:
            self._db.execute(statement)
        self._show_alive(self._clock())

    def _show_alive(self, now: float) -> None:
        row = (self._owner, socket.gethostname(), os.getpid(), now)
        self._db.execute("REPLACE INTO process VALUES (?, ?, ?, ?)", row)

    @contextmanager
    def _transaction(self) -> Iterator[tuple[sqlite3.Connection, float]]:
        if os.getpid() != self._pid:
            # SQLite forbids to use or even close a connection in a forked child: keep it, open another.
            self._inherited += [self._db, self._lock]
            self._open()
        with self._lock:
            now = self._clock()
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._forget_the_dead(now)
                yield self._db, now
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def _forget_the_dead(self, now: float) -> None:
        self._db.execute("DELETE FROM reserved WHERE expires < ?", (now,))
        if self._path == ":memory:":
            return
        host = socket.gethostname()
        for owner, its_host, pid, seen in self._db.execute("SELECT * FROM process").fetchall():
            # A pid can be asked after on its own host only; elsewhere (containers) silence has to do.
            gone = not _alive(pid) if its_host == host else now - seen > self._lease_s
            if gone and owner != self._owner:
                self._db.execute("DELETE FROM reserved WHERE owner = ?", (owner,))
                self._db.execute("DELETE FROM process WHERE owner = ?", (owner,))

    def _level(self, db: sqlite3.Connection, now: float) -> float | None:
        if self._bucket is None:
            return None
        row = db.execute("SELECT level, updated FROM bucket").fetchone()
        return self._bucket.level(row[0], now - row[1]) if row else self._bucket.capacity

    def _spent(self, db: sqlite3.Connection, resource: str, window: int, now: float) -> float:
        query = "SELECT amount FROM spent WHERE resource = ? AND window = ? AND begin = ?"
        row = db.execute(query, (resource, window, _begin(now, window))).fetchone()
        return float(row[0]) if row else 0.0

    def _reserved(self, db: sqlite3.Connection, resource: str) -> float:
        column = "tokens" if resource == "tokens" else "usd"
        (amount,) = db.execute(f"SELECT TOTAL({column}) FROM reserved").fetchone()
        return float(amount)


_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS bucket (id INTEGER PRIMARY KEY, level REAL, updated REAL)",
    "CREATE TABLE IF NOT EXISTS spent (resource TEXT, window INTEGER, begin INTEGER, amount REAL,"
    " PRIMARY KEY (resource, window))",
    "CREATE TABLE IF NOT EXISTS reserved (key TEXT PRIMARY KEY, owner TEXT, tokens REAL, usd REAL, expires REAL)",
    "CREATE TABLE IF NOT EXISTS process (owner TEXT PRIMARY KEY, host TEXT, pid INTEGER, seen REAL)",
)


def _begin(now: float, window: int) -> int:
    """Start of the window in epoch seconds; hours and days of UTC begin at multiples of their length."""
    return int(now // window) * window


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
