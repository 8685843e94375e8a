"""`/-/documents`: documents by SHA-256 hash, for callers that may read an entity that has or had the document."""

from __future__ import annotations

import re
from typing import Final

from starlette.types import Receive

from annals.api.feeds.feeds import Feeds
from annals.api.http import conditional
from annals.api.http.browsers.stored_content import ATTACHMENT, SANDBOX_POLICY
from annals.api.http.methods import read_only_options
from annals.api.http.problem_response import root_link
from annals.api.http.request import Request
from annals.api.http.response import Headers, Response
from annals.api.registry.open_registry import Registry
from annals.domain.access.roles import Caller
from annals.domain.errors import problems
from annals.projections.database import drivers
from annals.projections.entities.visibility import ALL_KEYS, Visibility
from annals.projections.log.documents import document_bytes, is_document_among

DOCUMENTS: Final = "documents"

_SHA256: Final = re.compile(r"[0-9a-f]{64}\Z")
_HEADERS: Final[Headers] = [
    # Only the owners know the media type. A media type here could make a browser run the document.
    (b"content-type", b"application/octet-stream"),
    SANDBOX_POLICY,
    ATTACHMENT,
]
#: `private`, because a shared cache would give the document to callers without rights to it.
_CACHE_FOREVER: Final = (b"cache-control", b"private, max-age=31536000, immutable")


class DocumentsRoutes:
    """The surface of `/-/documents`."""

    def __init__(self, registry: Registry, feeds: Feeds) -> None:
        self._store = registry.store
        self._feeds = feeds

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`. Raises: NotFound, also if the caller may not read the document."""
        if len(request.segments) != 3:
            raise problems.ApiNotFound()
        if (options := read_only_options(request)) is not None:
            return options
        sha256 = request.segments[2]
        content = await self._feeds.run(self._find, sha256, request.caller) if _SHA256.match(sha256) else None
        if content is None:
            raise problems.NotFound(request.path)
        tag = f'"{sha256}"'.encode()
        cache_headers = [(b"etag", tag), _CACHE_FOREVER, root_link(request.base)]
        try:
            conditional.check_conditions(request, tag)
        except conditional.NotModified:
            return Response(304, cache_headers)
        return Response(200, [*_HEADERS, *cache_headers], content)

    def _find(self, sha256: str, caller: Caller) -> bytes | None:
        with self._store.engine.connect() as connection:
            database = drivers.database_of(connection)
            may_read = caller.sees_everything or (
                caller.sees_something
                and is_document_among(
                    database, sha256, *Visibility.of_caller(caller).tree_keys(database, "tree_key", *ALL_KEYS)
                )
            )
            return document_bytes(database, sha256) if may_read else None
