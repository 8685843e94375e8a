"""`/-/resolved`: a message with everything from its base messages, or all messages of an endpoint or a group.

The result is computed for each request, for now or for any moment (`asof`), so it always matches the stored state
(MS-15, EP-43).
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from starlette.types import Receive

from annals.api.http import conditional
from annals.api.http.json_bodies import json_response
from annals.api.http.methods import check_caller, read_only_options
from annals.api.http.next_link import AFTER, next_link
from annals.api.http.query_params import QueryParams, invalid_param, parse_number, query_params, single_value
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.messaging.definitions import (
    MessagePage,
    is_message_group,
    locate_messages,
    resolved_message,
    resolved_messages,
)
from annals.api.registry.open_registry import Registry
from annals.api.xregistry.snapshots import Snapshot, Snapshots
from annals.domain.errors import problems
from annals.domain.values import xid as xids
from annals.projections.messaging.message_definitions import MessageDefinitions

RESOLVED: Final = "resolved"

#: The largest number of messages of a page.
MAX_LIMIT: Final = 1000

_ASOF: Final = "asof"
_LIMIT: Final = "limit"
#: Number of segments before the path of an entity.
_PREFIX_SEGMENTS: Final = 2
_MESSAGE_SEGMENTS: Final = 4


class ResolvedMessagesRoutes:
    """The surface of `/-/resolved`."""

    def __init__(self, registry: Registry) -> None:
        self._readers = registry.readers
        self._definitions_cache = registry.definitions
        self._snapshots = Snapshots(registry.readers, self._definitions_cache, registry.store.clock)

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`.

        Raises: NotFound, BadRequest for a path without messages, Forbidden, MethodNotAllowed.
        """
        if (options := read_only_options(request)) is not None:
            return options
        check_caller(replace(request, segments=request.segments[_PREFIX_SEGMENTS:]))
        parameters = query_params(request, (_ASOF, _LIMIT, AFTER))
        asof, page = single_value(parameters, _ASOF), _parse_page(parameters)
        if asof is None:
            return await asyncio.to_thread(self._resolve, request, None, page)
        snapshot = await self._snapshots.find(asof)
        if snapshot.position == 0:
            raise problems.NotFound(request.path)
        try:
            return snapshot.add_headers(await asyncio.to_thread(self._resolve, request, snapshot, page), request)
        except conditional.NotModified as not_modified:
            return snapshot.add_headers(conditional.not_modified_response(request, not_modified), request)

    def _resolve(self, request: Request, snapshot: Snapshot | None, page: MessagePage) -> Response:
        with self._readers.view() as current_view:
            view = snapshot.view(current_view) if snapshot else current_view
            definitions = snapshot.definitions if snapshot else self._definitions_cache.current(view)
            target = locate_messages(request.segments[_PREFIX_SEGMENTS:], definitions)
            messages = MessageDefinitions(view, request.caller.can_read)
            # What an xref shows has no row of its own, but a definition.
            if view.entity(target.xid) is None and messages.definition(target.xid) is None:
                raise problems.NotFound(target.xid)
            tag = conditional.log_tag(view.position(), request, definitions.positions)
            conditional.check_conditions(request, tag)
            if is_message_group(target):
                document, next_after = resolved_messages(target, view, messages, page)
            elif page != MessagePage():
                raise invalid_param(AFTER if page.after else _LIMIT, f'it is for Groups, and "{target.xid}" is none')
            else:
                document, next_after = resolved_message(target, messages), None
        links = [next_link(request, next_after)] if next_after is not None else []
        return conditional.add_entity_tag(json_response(request, 200, document, links), tag)


def _parse_page(parameters: QueryParams) -> MessagePage:
    """Raises: BadRequest."""
    after = single_value(parameters, AFTER) or ""
    if after and not (after.startswith("/") and len(xids.segments(after)) == _MESSAGE_SEGMENTS):
        raise invalid_param(AFTER, f"{after!r} is not the xid of a message")
    return MessagePage(parse_number(_LIMIT, single_value(parameters, _LIMIT), 1, MAX_LIMIT), after)
