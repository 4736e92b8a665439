"""The session that follows its user over loops."""

from __future__ import annotations

import asyncio
import threading

from otel_evals.judging.models.http_session import HttpSession


async def test_calls_at_once_share_one_session() -> None:
    http = HttpSession()
    sessions = await asyncio.gather(*(http.get() for _ in range(10)))
    assert len(set(map(id, sessions))) == 1
    await http.close()


async def test_closing_closes_and_a_later_call_opens_anew() -> None:
    http = HttpSession()
    first = await http.get()
    await http.close()
    second = await http.get()
    assert first.closed
    assert not second.closed
    await http.close()


async def test_closing_unused_is_nothing() -> None:
    await HttpSession().close()


def test_another_loop_gets_another_session_and_the_old_one_is_closed_on_its_own_loop() -> None:
    http = HttpSession()
    old_loop = asyncio.new_event_loop()
    thread = threading.Thread(target=old_loop.run_forever)
    thread.start()
    old = asyncio.run_coroutine_threadsafe(http.get(), old_loop).result(10)

    async def elsewhere() -> None:
        assert await http.get() is not old
        await http.close()

    asyncio.run(elsewhere())
    asyncio.run_coroutine_threadsafe(asyncio.sleep(0), old_loop).result(10)
    assert old.closed
    old_loop.call_soon_threadsafe(old_loop.stop)
    thread.join(10)
    old_loop.close()
