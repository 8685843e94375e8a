"""`/-/links/{id}/events`: where the other registry of a link says that something has happened there.

Events carry nothing in: they have the link look at the other registry. So anybody may send them, who the sender is does
not matter, and nothing that an event says is believed. As anybody may, nobody learns which links there are: an answer
depends on the request alone, and on the registries that links of this one hear of.
Spec: CloudEvents HTTP 1.1 Web Hooks, "Abuse Protection"; CloudEvents HTTP Protocol Binding. Rules LEG-914, SUB-716.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container, Sequence
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from starlette.types import Receive

from api.feeds.formats import CLOUDEVENTS_BATCH
from api.http.limits import read_body
from api.http.methods import MethodNotAllowed
from api.http.problem_response import root_link
from api.http.query_params import query_params
from api.http.request import ClientDisconnected, Request
from api.http.response import Response
from api.replication.representations import LinkApiContext
from domain.errors import problems
from domain.errors.http_errors import UnsupportedMediaType
from domain.replication.link import EVENTS, Link
from domain.replication.link_document import ID
from domain.values.json_text import InvalidJson, loads

#: Bytes of a request: as much as a batch may have, and more than any event.
MAX_NOTIFICATION_BODY: Final = 1 << 20
#: Requests that are taken at a time, and seconds that each may take to come in.
MAX_CONCURRENT: Final = 64
BODY_SECONDS: Final = 10.0

_LOG: Final = logging.getLogger("annals.replication")

CLOUDEVENT_JSON: Final = "application/cloudevents+json"
_ALLOW: Final = (b"allow", b"POST, OPTIONS")
_ORIGIN: Final = b"webhook-request-origin"
#: What every event says of itself.
_REQUIRED: Final = ("specversion", "id", "source", "type")


class LinkNotificationHandler:
    """The surface of these paths, for everybody."""

    def __init__(self, parts: LinkApiContext) -> None:
        self._parts = parts
        self._taken = 0
        self._waking: set[asyncio.Future[None]] = set()

    async def answer(self, request: Request, receive: Receive) -> Response:
        """202 to events. Raises: MethodNotAllowed, UnsupportedMediaType, BodyTooLarge, ParsingData, BadRequest."""
        if request.method not in ("POST", "OPTIONS"):
            raise MethodNotAllowed(problems.ActionNotSupported(action=request.method), _ALLOW[1].decode())
        if self._taken >= MAX_CONCURRENT:
            return Response(429, [root_link(request.base), (b"retry-after", b"1")])
        self._taken += 1
        try:
            if request.method == "OPTIONS":
                return _consent(request, await asyncio.to_thread(self._origins))
            query_params(request, ())
            subjects = _subjects(request, await _body(request, receive))
            link = await asyncio.to_thread(self._link, request.segments[2])
            if link is not None:
                self._wake(link, subjects)
        finally:
            self._taken -= 1
        return Response(202, [root_link(request.base)])

    def _link(self, id: str) -> Link | None:
        """A link that hears of something."""
        link = self._parts.registry.readers.quick().links.one(id) if ID.match(id) else None
        return link if link is not None and link.mode == EVENTS else None

    def _origins(self) -> set[str]:
        """The hosts of the registries that links hear of."""
        links = self._parts.registry.readers.quick().links.all()
        return {urlsplit(link.url).hostname or "" for link in links if link.mode == EVENTS}

    def _wake(self, link: Link, subjects: Sequence[str]) -> None:
        """Has a link look at the other registry. Nobody waits for that, as how long it takes would tell of the link."""
        work = asyncio.to_thread(self._parts.replication.wake, link.id, subjects if link.is_older else ())
        waking = asyncio.ensure_future(work)
        self._taken += 1
        self._waking.add(waking)
        waking.add_done_callback(self._woken)

    def _woken(self, waking: asyncio.Future[None]) -> None:
        self._taken -= 1
        self._waking.discard(waking)
        if not waking.cancelled() and (error := waking.exception()) is not None:
            _LOG.warning("a link cannot be woken, and looks after its interval: %s", error)


async def _body(request: Request, receive: Receive) -> bytes:
    """Raises: ClientDisconnected as well for one that takes too long, BodyTooLarge, BadRequest."""
    try:
        return await asyncio.wait_for(read_body(request, receive, MAX_NOTIFICATION_BODY), BODY_SECONDS)
    except TimeoutError:
        raise ClientDisconnected from None


def _consent(request: Request, origins: Container[str]) -> Response:
    """Consents to being told by the other registries of links, as often as they like, and by nobody else."""
    headers = [root_link(request.base), _ALLOW]
    origin = (request.header(_ORIGIN) or "").strip()
    if origin and origin.lower() in origins:
        headers += [(b"webhook-allowed-origin", origin.encode("latin-1")), (b"webhook-allowed-rate", b"*")]
    return Response(200, headers)


def _subjects(request: Request, body: bytes) -> Sequence[str]:
    """What events are about, one for each. Raises: UnsupportedMediaType, ParsingData, BadRequest for no events."""
    media_type = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
    if media_type == CLOUDEVENT_JSON:
        return _subjects_of([_parsed(body)])
    if media_type == CLOUDEVENTS_BATCH:
        return _subjects_of(_parsed(body))
    if any(request.header(f"ce-{name}".encode()) is None for name in _REQUIRED):
        raise UnsupportedMediaType(list=f"{CLOUDEVENT_JSON}, {CLOUDEVENTS_BATCH}, or any with headers ce-")
    return [unquote(request.header(b"ce-subject") or "")]


def _subjects_of(events: Any) -> Sequence[str]:
    if not isinstance(events, list) or not all(_is_event(each) for each in events):
        raise problems.BadRequest(error_detail="these are no CloudEvents")
    return [str(event.get("subject") or "") for event in events]


def _is_event(found: Any) -> bool:
    return isinstance(found, dict) and all(isinstance(found.get(name), str) for name in _REQUIRED)


def _parsed(body: bytes) -> Any:
    try:
        return loads(body)
    except InvalidJson as error:
        raise problems.ParsingData(error_detail=str(error)) from None
