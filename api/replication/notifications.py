"""`/-/links/{id}/events`: the other registry of a link notifies this one of changes.

A notification only makes the link read the other registry; it transfers no data, and the link does not trust its
content. So any client may send notifications. No client may learn which links exist: a response depends only on the
request and on the registries that links in the mode `events` copy.
Spec: CloudEvents HTTP 1.1 Web Hooks, "Abuse Protection"; CloudEvents HTTP Protocol Binding.
Rules LEG-914, SUB-716.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container, Sequence
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from annals.api.feeds.formats import CLOUDEVENTS_BATCH
from annals.api.http.json_bodies import parse_json
from annals.api.http.limits import read_body
from annals.api.http.methods import MethodNotAllowed
from annals.api.http.problem_response import root_link
from annals.api.http.query_params import query_params
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.replication.representations import LinkApiContext
from annals.domain.errors import problems
from annals.domain.errors.http_errors import UnsupportedMediaType
from annals.domain.replication.link import EVENTS, Link
from annals.domain.replication.link_document import ID

#: Maximum size of a request in bytes: the size limit of a batch, and more than any single event.
MAX_NOTIFICATION_BODY: Final = 1 << 20
#: Maximum number of concurrent requests, and seconds in which a body has to arrive.
MAX_CONCURRENT: Final = 64
BODY_SECONDS: Final = 10.0

_LOG: Final = logging.getLogger("annals.replication")

CLOUDEVENT_JSON: Final = "application/cloudevents+json"
_ALLOW_HEADER: Final = (b"allow", b"POST, OPTIONS")
_ORIGIN_HEADER: Final = b"webhook-request-origin"
#: Attributes that every CloudEvent has.
_REQUIRED_ATTRIBUTES: Final = ("specversion", "id", "source", "type")


class LinkNotificationHandler:
    """The surface of these paths. It needs no authentication."""

    def __init__(self, context: LinkApiContext) -> None:
        self._context = context
        self._running_count = 0
        self._wake_tasks: set[asyncio.Future[None]] = set()

    async def answer(self, request: Request, receive: Receive) -> Response:
        """202 for events. Raises: MethodNotAllowed, UnsupportedMediaType, BodyTooLarge, ParsingData, BadRequest."""
        if request.method not in ("POST", "OPTIONS"):
            raise MethodNotAllowed(problems.ActionNotSupported(action=request.method), _ALLOW_HEADER[1].decode())
        if self._running_count >= MAX_CONCURRENT:
            return Response(429, [root_link(request.base), (b"retry-after", b"1")])
        self._running_count += 1
        try:
            if request.method == "OPTIONS":
                return _consent_response(request, await asyncio.to_thread(self._allowed_origins))
            query_params(request, ())
            subjects = _parse_subjects(request, await _read_events(request, receive))
            link = await asyncio.to_thread(self._find_link, request.segments[2])
            if link is not None:
                self._wake(link, subjects)
        finally:
            self._running_count -= 1
        return Response(202, [root_link(request.base)])

    def _find_link(self, id: str) -> Link | None:
        """The link that receives notifications; None if no such link exists."""
        link = self._context.registry.readers.quick_view().links.get(id) if ID.match(id) else None
        return link if link is not None and link.mode == EVENTS else None

    def _allowed_origins(self) -> set[str]:
        """The hosts of the registries that send notifications to links."""
        links = self._context.registry.readers.quick_view().links.all()
        return {urlsplit(link.url).hostname or "" for link in links if link.mode == EVENTS}

    def _wake(self, link: Link, subjects: Sequence[str]) -> None:
        """Makes a link read the other registry, in the background.

        The response does not wait: its duration would reveal the link.
        """
        wake_call = asyncio.to_thread(self._context.replication.wake, link.id, subjects if link.is_legacy else ())
        wake_task = asyncio.ensure_future(wake_call)
        self._running_count += 1
        self._wake_tasks.add(wake_task)
        wake_task.add_done_callback(self._on_woken)

    def _on_woken(self, wake_task: asyncio.Future[None]) -> None:
        self._running_count -= 1
        self._wake_tasks.discard(wake_task)
        if not wake_task.cancelled() and (error := wake_task.exception()) is not None:
            _LOG.warning("a link cannot be notified and reads again after its interval: %s", error)


async def _read_events(request: Request, receive: Receive) -> bytes:
    """The body of a request.

    Raises: ClientDisconnect, also for a body that takes too long; BodyTooLarge, BadRequest.
    """
    try:
        return await asyncio.wait_for(read_body(request, receive, MAX_NOTIFICATION_BODY), BODY_SECONDS)
    except TimeoutError:
        raise ClientDisconnect from None


def _consent_response(request: Request, origins: Container[str]) -> Response:
    """Consents to notifications at any rate, but only from the other registries of links."""
    headers = [root_link(request.base), _ALLOW_HEADER]
    origin = (request.header(_ORIGIN_HEADER) or "").strip()
    if origin and origin.lower() in origins:
        headers += [(b"webhook-allowed-origin", origin.encode("latin-1")), (b"webhook-allowed-rate", b"*")]
    return Response(200, headers)


def _parse_subjects(request: Request, body: bytes) -> Sequence[str]:
    """The subject of each event. Raises: UnsupportedMediaType, ParsingData, BadRequest if the body holds no events."""
    if request.media_type == CLOUDEVENT_JSON:
        return _subjects_of([parse_json(body)])
    if request.media_type == CLOUDEVENTS_BATCH:
        return _subjects_of(parse_json(body))
    if any(request.header(f"ce-{name}".encode()) is None for name in _REQUIRED_ATTRIBUTES):
        raise UnsupportedMediaType(list=f"{CLOUDEVENT_JSON}, {CLOUDEVENTS_BATCH}, or any with headers ce-")
    return [unquote(request.header(b"ce-subject") or "")]


def _subjects_of(events: Any) -> Sequence[str]:
    if not isinstance(events, list) or not all(_is_event(item) for item in events):
        raise problems.BadRequest(error_detail="these are not CloudEvents")
    return [str(event.get("subject") or "") for event in events]


def _is_event(item: Any) -> bool:
    return isinstance(item, dict) and all(isinstance(item.get(name), str) for name in _REQUIRED_ATTRIBUTES)
