"""Tells when the client of a request has disconnected. Sending alone does not report it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import Receive

#: Done as soon as the client has disconnected.
ClientGone = asyncio.Future[None]


@asynccontextmanager
async def watch_client(receive: Receive) -> AsyncIterator[ClientGone]:
    """A future that is done when the client disconnects. It ignores the body of the request."""
    client_gone = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        yield client_gone
    finally:
        client_gone.cancel()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
