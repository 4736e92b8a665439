"""One component as a child process: free ports, waiting until it serves, and a certain end.

Output goes into a file, which is shown when the component does not come up.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

__all__ = ["ComponentFailed", "Process", "free_ports", "get_text"]

START_SECONDS = 30.0
STOP_SECONDS = 10.0
_POLL_SECONDS = 0.05


class ComponentFailed(RuntimeError):
    """The component ended, or did not serve in time; the message holds the end of its output."""


def free_ports(count: int) -> list[int]:
    """Different loopback ports that are free now. Another process may still be faster: callers start again."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def get_text(url: str, *, headers: Mapping[str, str] | None = None, timeout: float = 5.0) -> str:
    """Body of a GET, straight to loopback whatever proxy the environment names.

    Raises:
        OSError: no answer, or a status of 400 and above.
    """
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, headers=dict(headers or {})), timeout=timeout) as answer:
        return str(answer.read(), "utf-8")


class Process:
    """A started component."""

    def __init__(
        self, command: Sequence[str | Path], *, output: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.output = output
        self._name = Path(command[0]).name
        with output.open("wb") as stream:
            self._process = subprocess.Popen(
                [str(part) for part in command],
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def wait_until_serving(self, url: str) -> None:
        """Returns when `url` answers with success.

        Raises:
            ComponentFailed: it ended before, or 30 s have passed.
        """
        deadline = time.monotonic() + START_SECONDS
        while self.running and time.monotonic() < deadline:
            try:
                get_text(url, timeout=1.0)
            except OSError:
                time.sleep(_POLL_SECONDS)
            else:
                return
        ended = f"ended with {self._process.returncode}" if not self.running else f"did not answer at {url}"
        self.stop()
        raise ComponentFailed(f"{self._name} {ended}:\n{self.output.read_text(errors='replace')[-4000:]}")

    def stop(self) -> None:
        """Asks it to end, which flushes what it holds; kills it after 10 s. Does nothing the second time."""
        if self.running:
            self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def kill(self) -> None:
        """Ends it at once, for a component that holds nothing worth writing."""
        self._process.kill()
        self._process.wait()
