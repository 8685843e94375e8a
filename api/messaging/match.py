"""`/-/match`: which message definitions of an endpoint or a group a message matches (MS-50 to 52).

The request has a body, so it is a POST. It changes nothing, and any caller that may read the definitions may send it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from starlette.types import Receive

from annals.api.http.json_bodies import json_response, parse_required_json
from annals.api.http.limits import MAX_BODY, read_body
from annals.api.http.methods import check_caller, post_only_options
from annals.api.http.query_params import query_params
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.messaging.definitions import effective_messages_of, is_message_group, locate_messages
from annals.api.registry.open_registry import Registry
from annals.domain.errors import problems
from annals.domain.messaging.effective_messages import EffectiveMessage
from annals.domain.messaging.match import match_message
from annals.domain.messaging.message_parts import MessageParts, parse_message
from annals.domain.values.json_text import Json
from annals.projections.messaging.message_definitions import MessageDefinitions

MATCH: Final = "match"

#: Number of segments before the path of a Group.
_PREFIX_SEGMENTS: Final = 2
#: Maximum number of messages in a batch.
MAX_MESSAGES: Final = 1000


class MatchRoutes:
    """The surface of `/-/match`. max_body: in bytes."""

    def __init__(self, registry: Registry, max_body: int = MAX_BODY) -> None:
        self._readers = registry.readers
        self._definitions_cache = registry.definitions
        self._max_body = max_body

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`.

        Raises: NotFound, BadRequest, MissingBody, ParsingData, Forbidden, MethodNotAllowed.
        """
        if (options := post_only_options(request)) is not None:
            return options
        check_caller(replace(request, method="GET", segments=request.segments[_PREFIX_SEGMENTS:]))
        query_params(request, ())
        body = await read_body(request, receive, self._max_body)
        return await asyncio.to_thread(self._match, request, body)

    def _match(self, request: Request, body: bytes) -> Response:
        value = _parse_body(body)
        messages = [_message_parts(item) for item in (value if isinstance(value, list) else [value])]
        with self._readers.view() as view:
            target = locate_messages(request.segments[_PREFIX_SEGMENTS:], self._definitions_cache.current(view))
            if not is_message_group(target):
                raise problems.BadRequest(error_detail=f'"{target.xid}" is not a Group that has messages')
            definitions = effective_messages_of(target, view, MessageDefinitions(view, request.caller.can_read))
        results = [{"matches": _match_members(definitions, message)} for message in messages]
        return json_response(request, 200, results if isinstance(value, list) else results[0])


def _parse_body(body: bytes) -> Json:
    value: Json = parse_required_json(body)
    if isinstance(value, list) and len(value) > MAX_MESSAGES:
        raise problems.BadRequest(error_detail=f"a batch has at most {MAX_MESSAGES} messages")
    return value


def _message_parts(value: Json) -> MessageParts:
    try:
        return parse_message(value)
    except ValueError as error:
        raise problems.BadRequest(error_detail=str(error)) from None


def _match_members(definitions: Sequence[EffectiveMessage], message: MessageParts) -> list[dict[str, Any]]:
    matches = (
        (message_definition.xid, match_message(message_definition.resolved.attributes, message))
        for message_definition in definitions
    )
    return [
        {"xid": xid, "bindings": match.bindings, "parts": list(match.parts)}
        for xid, match in matches
        if match is not None
    ]
