"""Looks up host names in separate threads, because name servers can hang and nothing else may wait for them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from threading import BoundedSemaphore, Thread
from typing import Final

#: The addresses of a name, best first. Raises: OSError when it has none.
LookUp = Callable[[str, int], Awaitable[Sequence[str]]]

#: The maximum seconds for a lookup, and the maximum number of concurrent lookups.
LOOK_UP_SECONDS: Final = 10.0
_CONCURRENT_LOOK_UPS: Final = BoundedSemaphore(256)


async def look_up(host: str, port: int) -> Sequence[str]:
    """The addresses of a name as the system resolves it."""
    if not _CONCURRENT_LOOK_UPS.acquire(blocking=False):
        raise OSError("too many names are being looked up")
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Sequence[str]] = loop.create_future()
    # A daemon, because a thread that hangs must not keep the process from ending.
    thread = Thread(target=_look_up_in_thread, args=(host, port, loop, future), name="annals-names", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the system cannot start another thread
        _CONCURRENT_LOOK_UPS.release()
        raise OSError("names cannot be looked up") from None
    return await asyncio.wait_for(future, LOOK_UP_SECONDS)


def _look_up_in_thread(
    host: str, port: int, loop: asyncio.AbstractEventLoop, future: asyncio.Future[Sequence[str]]
) -> None:
    result: Sequence[str] | OSError
    try:
        result = _resolve_addresses(host, port)
    except OSError as error:
        result = error
    except ValueError:  # a name with a label that is too long
        result = OSError("this is not the name of a host")
    finally:
        _CONCURRENT_LOOK_UPS.release()
    try:
        loop.call_soon_threadsafe(_set_result, future, result)
    except RuntimeError:  # the loop is closed, so no caller waits
        return


def _set_result(future: asyncio.Future[Sequence[str]], result: Sequence[str] | OSError) -> None:
    if future.done():
        return
    if isinstance(result, OSError):
        future.set_exception(result)
    else:
        future.set_result(result)


def _resolve_addresses(host: str, port: int) -> Sequence[str]:
    """The addresses in the system's order, without duplicates."""
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in rows))
