"""One aiohttp session that follows its user over event loops and forks."""

from __future__ import annotations

import asyncio
import os
import urllib.request
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp

__all__ = ["HttpSession"]

# Sessions of a forked parent. Closing them here would unregister the parent's sockets from the epoll set that
# both processes share; so they are kept for as long as the child lives.
_of_the_parent: list[aiohttp.ClientSession] = []


class HttpSession:
    """Opens a session on first use, and a new one where the running loop or the process is another."""

    def __init__(self, url: str | None = None) -> None:
        """
        Args:
            url: Where all requests go; the environment's proxy for it is used. None: whoever uses the session
            chooses the proxy.
        """
        self._url = url
        self._session: aiohttp.ClientSession | None = None
        self._home: tuple[int, asyncio.AbstractEventLoop] | None = None

    async def get(self) -> aiohttp.ClientSession:
        """The session of the running loop in this process."""
        import aiohttp

        home = (os.getpid(), asyncio.get_running_loop())
        session = self._session
        if session is not None and self._home == home and not session.closed:
            return session
        stale, stale_home = session, self._home
        # Replaced before the old one is closed: other calls come by while that waits. Concurrency is limited by
        # the callers; a second limit in the pool would only hide the waiting.
        proxy, proxy_auth = _proxy(self._url) if self._url else (None, None)
        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), proxy=proxy, proxy_auth=proxy_auth)
        self._session, self._home = session, home
        await _dispose(stale, stale_home)
        return session

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        session, self._session = self._session, None
        await _dispose(session, self._home)


async def _dispose(session: aiohttp.ClientSession | None, home: tuple[int, asyncio.AbstractEventLoop] | None) -> None:
    """Close a session where that is safe: on its own loop, in its own process."""
    if session is None or home is None:
        return
    pid, loop = home
    if pid != os.getpid():
        _of_the_parent.append(session)
    elif loop is asyncio.get_running_loop() or loop.is_closed():
        await session.close()
    else:
        asyncio.run_coroutine_threadsafe(session.close(), loop)


def _proxy(url: str) -> tuple[str | None, aiohttp.BasicAuth | None]:
    """The proxy for this URL by `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, and its credentials.

    aiohttp's own `trust_env` reads these, and the netrc file, in two threads for every request, which takes longer
    than the request itself.
    """
    import aiohttp
    from yarl import URL

    target = URL(url)
    proxies = urllib.request.getproxies()
    found = proxies.get(target.scheme) or proxies.get("all")
    if not found or urllib.request.proxy_bypass(target.host or ""):
        return None, None
    proxy = URL(found if "://" in found else f"http://{found}")
    auth = aiohttp.BasicAuth(proxy.user, proxy.password or "") if proxy.user else None
    return str(proxy.with_user(None)), auth
