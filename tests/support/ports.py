"""Ports for servers that tests start."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Final


def _ports() -> Iterator[int]:
    """The ports of this pytest worker, each once before the first is repeated."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    own = range(20_000 + worker, 32_000, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
    start = random.randrange(len(own))
    return cycle((*own[start:], *own[:start]))


_PORTS: Final = _ports()


def free_port(address: str = "127.0.0.1") -> int:
    """A port without a listener. No client or other test gets it, so a broker can be restarted on it."""
    while True:
        port = next(_PORTS)
        with contextlib.suppress(OSError), socket.create_server((address, port)):
            return port


def wait_for_port(port: int, alive: Callable[[], bool], seconds: float = 60.0) -> None:
    """Waits until the port accepts connections. Raises: RuntimeError after the time, or if the process has ended."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if time.monotonic() > end or not alive():
            raise RuntimeError(f"nobody listens on port {port}")
        time.sleep(0.05)
