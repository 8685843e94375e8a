"""The links that name the originals of copies are read once for all requests, and never older than a change here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Final

import pytest

from annals.api.http import canonical_header
from annals.api.http.canonical_header import CanonicalLinks
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.domain.replication.link import LOG, PULL, Link
from annals.domain.replication.scope import LinkScope
from annals.projections.entities.view_pool import ViewPool

REQUEST: Final = Request("GET", "/dirs/d", ("dirs", "d"), False, b"", [], "http://h")
OLD: Final = Link(
    "l", 1, 1, "https://old.example", LOG, PULL, LinkScope.from_members({}), {}, 1, "skip", True,
    "l", False, {},
)  # fmt: skip
NEW: Final = replace(OLD, url="https://new.example")


class SlowViewPool(ViewPool):
    """Views whose reads end when a test gives their result."""

    def __init__(self) -> None:
        super().__init__("sqlite://")
        self.reads: list[asyncio.Future[Any]] = []

    async def read(self, read: Callable[..., Any], *arguments: object) -> Any:
        self.reads.append(asyncio.get_running_loop().create_future())
        return await self.reads[-1]


class Reads:
    """Requests that read a copy."""

    def __init__(self) -> None:
        self.pool = SlowViewPool()
        self.links = CanonicalLinks(self.pool)

    async def _origin(self) -> str:
        headers = dict((await self.links.add_header(Response(200, []), REQUEST)).headers)
        return headers.get(b"link", b"none").decode().partition("/dirs")[0].removeprefix("<")

    async def start(self) -> asyncio.Task[str]:
        """A request that has got as far as it can."""
        task = asyncio.create_task(self._origin())
        for _ in range(3):
            await asyncio.sleep(0)
        return task


async def requests_at_the_same_time(reads: Reads) -> None:
    first, second = await reads.start(), await reads.start()
    first.cancel()  # its client has left
    (read,) = reads.pool.reads
    read.set_result((OLD,))
    assert await second == await (await reads.start()) == OLD.url
    assert len(reads.pool.reads) == 1


async def a_change_while_links_are_read(reads: Reads) -> None:
    before = await reads.start()
    reads.links.invalidate()
    after = await reads.start()
    reads.pool.reads[1].set_result((NEW,))
    assert await after == NEW.url
    reads.pool.reads[0].set_result((OLD,))
    assert await before == OLD.url
    assert await (await reads.start()) == NEW.url
    assert len(reads.pool.reads) == 2


async def a_read_that_fails(reads: Reads) -> None:
    first = await reads.start()
    reads.pool.reads[0].set_exception(OSError("the database is away"))
    with pytest.raises(OSError, match="away"):
        await first
    second = await reads.start()
    reads.pool.reads[1].set_result((NEW,))
    assert await second == NEW.url


@pytest.mark.parametrize("run", [requests_at_the_same_time, a_change_while_links_are_read, a_read_that_fails])
def test_reads_of_links(run: Callable[[Reads], Coroutine[Any, Any, None]], monkeypatch: pytest.MonkeyPatch) -> None:
    """LEG-909: each read of a copy names its original."""
    monkeypatch.setattr(canonical_header, "MAX_AGE_SECONDS", 600.0)
    asyncio.run(run(Reads()))
