"""`/-/s/{token}`: redirects short URLs to their entities.

A token is the log position at which the entity was created, in base 36. Segments after it are below the entity, such as
the meta of a Resource. Token 0 is the registry; entities without a known creation position use it with their xid, so
that every entity has a short URL.
Spec: core 1.0-rc4, "shortself Attribute".
"""

from __future__ import annotations

import asyncio
import re
from typing import Final
from urllib.parse import quote

from starlette.types import Receive

from annals.api.http.problem_response import root_link
from annals.api.http.request import DETAILS_SUFFIX, Request
from annals.api.http.response import Response
from annals.api.registry.open_registry import Registry
from annals.api.xregistry.render.shortself import TOKEN_SEGMENT
from annals.domain.access.roles import Caller
from annals.domain.errors import problems
from annals.domain.values import xid as xids
from annals.projections.entities.visibility import Visibility

_TOKEN: Final = re.compile(r"[0-9a-z]{1,12}\Z")
#: The characters of paths that a URL has as they are.
_PATH_CHARACTERS: Final = "/:@~!$&'()*+,;=-._"


class ShortselfRoutes:
    """The surface of `/-/s/`. It executes no request: a 308 makes the client send its request again."""

    def __init__(self, registry: Registry) -> None:
        self._readers = registry.readers

    async def answer(self, request: Request, receive: Receive) -> Response:
        """The redirect, with `$details` and the query preserved.

        Raises: NotFound, also if the caller may not read the entity.
        """
        token, *subpath = request.segments[TOKEN_SEGMENT:] or ("",)
        xid = await asyncio.to_thread(self._find, token) if _TOKEN.match(token) else None
        target = xids.join(*xids.segments(xid), *subpath) if xid is not None else None
        if target is None or not _may_read(request.caller, target):
            raise problems.NotFound(request.path)
        query = "?" + request.query.decode("latin-1") if request.query else ""
        path = quote(target, safe=_PATH_CHARACTERS) + (DETAILS_SUFFIX if request.details else "")
        location = f"{request.base}{path}{query}"
        return Response(308, [root_link(request.base), (b"location", location.encode("latin-1", "replace"))])

    def _find(self, token: str) -> str | None:
        """The xid of a token's entity; None if the entity no longer exists."""
        position = int(token, 36)
        if position == 0:
            return xids.REGISTRY
        view = self._readers.latest_view()
        xid = view.log.creation_xid(position)
        row = view.entity(xid) if xid is not None else None
        return row.xid if row is not None and row.born == position else None


def _may_read(caller: Caller, xid: str) -> bool:
    return caller.sees_something and Visibility.of_caller(caller).sees_key(xids.tree_key(xid))
