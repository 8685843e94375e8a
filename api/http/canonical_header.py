"""The header `Link: rel=canonical` of copied entities, for clients that want to change or read the original."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.domain.decisions.replication.copy_rights import authority_url, link_of_copy
from annals.domain.replication.link import Link
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads
from annals.projections.entities.view_pool import ViewPool

#: Seconds for which the links are cached. Other processes may change them.
MAX_AGE_SECONDS: Final = 1.0
#: Characters that are not escaped in URLs.
_SAFE_CHARACTERS: Final = "/:@!$&'()*+,;=-._~[]%"
#: Number of path segments of a Group and of a Resource.
_GROUP_SEGMENTS: Final = 2
_RESOURCE_SEGMENTS: Final = 4


class CanonicalLinks:
    """Finds the canonical URL of copies, from the registry's links. It reads the links at most once a second."""

    def __init__(self, readers: ViewPool) -> None:
        self._readers = readers
        self._links: tuple[Link, ...] = ()
        self._expires = 0.0
        self._read_task: asyncio.Task[tuple[Link, ...]] | None = None

    def invalidate(self) -> None:
        """Makes the next read load the links again."""
        self._expires, self._read_task = 0.0, None

    async def add_header(self, response: Response, request: Request) -> Response:
        """The response to a read, with a link to the canonical URL if the entity or collection is a copy."""
        links = self._links if time.monotonic() < self._expires else await self._read_links()
        if not links or response.status >= 400:
            return response
        xid = xids.join(*request.segments)
        needs_members = not all(link.follows_log for link in links)
        private_members = await self._readers.read(self._private_members, xid) if needs_members else {}
        link = link_of_copy(xid, links, private_members)
        if link is None or not link.url.startswith("http"):
            return response
        details = "$details" if request.details and link.follows_log else ""
        header = f"<{quote(authority_url(link, xid), safe=_SAFE_CHARACTERS)}{details}>;rel=canonical"
        return replace(response, headers=[*response.headers, (b"link", header.encode("ascii"))])

    async def _read_links(self) -> tuple[Link, ...]:
        """The links as they are now. All requests that need them at the same time wait for the same read."""
        if self._read_task is None:
            self._read_task = asyncio.get_running_loop().create_task(self._load())
        return await asyncio.shield(self._read_task)  # which goes on if the client of this request leaves

    async def _load(self) -> tuple[Link, ...]:
        """Reads the links, and caches them if they have not been invalidated meanwhile."""
        task, expires = asyncio.current_task(), time.monotonic() + MAX_AGE_SECONDS
        try:
            links = await self._readers.read(self._inbound_links)
            if self._read_task is task:
                self._links, self._expires = links, expires
            return links
        finally:
            if self._read_task is task:
                self._read_task = None

    def _inbound_links(self) -> tuple[Link, ...]:
        links = self._readers.quick_view().links.all()
        return tuple(link for link in links if link.is_inbound and not link.is_promoted)

    def _private_members(self, xid: str) -> dict[str, Any]:
        """The private members of the entity that marks a copy: the Resource at or above an xid, otherwise the Group."""
        segments = xids.segments(xid)
        if len(segments) == 1:
            return {}
        marked_segments = segments[: _RESOURCE_SEGMENTS if len(segments) >= _RESOURCE_SEGMENTS else _GROUP_SEGMENTS]
        row = self._readers.quick_view().entity(xids.join(*marked_segments))
        return dict(loads(row.private)) if row is not None else {}
