"""One aiohttp session that follows its user over event loops and forks."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp

__all__ = ["HttpSession"]

# Sessions of a forked parent. Closing them here would unregister the parent's sockets from the epoll set that
# both processes share; so they are kept for as long as the child lives.
_of_the_parent: list[aiohttp.ClientSession] = []


class HttpSession:
    """Opens a session on first use, and a new one where the running loop or the process is another."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._home: tuple[int, asyncio.AbstractEventLoop] | None = None

    async def get(self) -> aiohttp.ClientSession:
        """The session of the running loop in this process; proxies are read from the environment."""
        import aiohttp

        home = (os.getpid(), asyncio.get_running_loop())
        session = self._session
        if session is not None and self._home == home and not session.closed:
            return session
        await self.close()
        # Concurrency is limited by the callers; a second limit in the pool would only hide the waiting.
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), trust_env=True)
        self._home = home
        return self._session

    async def close(self) -> None:
        """Close the connections where that is safe: on their own loop, in their own process."""
        session, self._session = self._session, None
        if session is None or self._home is None:
            return
        pid, loop = self._home
        if pid != os.getpid():
            _of_the_parent.append(session)
        elif loop is asyncio.get_running_loop() or loop.is_closed():
            await session.close()
        else:
            asyncio.run_coroutine_threadsafe(session.close(), loop)
