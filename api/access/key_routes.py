"""`/-/keys`: API keys, for the administrators of their places (ACC-40 to ACC-49)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from starlette.types import Receive

from annals.api.access.collections import (
    ASOF,
    AccessContext,
    answer_by_method,
    answer_deletion,
    answer_json,
    find_entity,
    listed_entities,
    moment_of,
    read_document,
    recorded_headers,
    submit,
)
from annals.api.http.id_pages import PAGE_PARAMS, parse_id_page
from annals.api.http.methods import Handler
from annals.api.http.query_params import query_params, single_value
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.domain.access.access_documents import KEY_MEMBERS, parse_key_document, parse_rotation
from annals.domain.access.keys import COLLECTION, KeyText, new_id, new_key, time_text
from annals.domain.decisions.access.administration import places_of_key
from annals.domain.decisions.commands import CreateKey, RevokeKey, RotateKey
from annals.domain.errors import problems
from annals.domain.registry.entities import Entity
from annals.projections.access.key_uses import KeyUse, KeyUses

KEYS: Final = "keys"
#: The members of an answer, in their order.
_SHOWN_MEMBERS: Final = (*KEY_MEMBERS, "createdat", "rotatedat")


class KeyRoutes:
    """The surface of `/-/keys`. key_uses: None if this server accepts no keys."""

    def __init__(self, context: AccessContext, key_uses: KeyUses | None) -> None:
        self._context = context
        self._key_uses = key_uses
        self._handlers: Mapping[int, Mapping[str, Handler]] = {
            0: {"GET": self._list, "POST": self._create},
            1: {"GET": self._read, "DELETE": self._revoke},
        }

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`. Raises: Forbidden, NotAvailable, NotFound, InvalidKey, ParsingData, BadRequest."""
        subpath = request.segments[2:]
        is_rotation = len(subpath) == 3 and subpath[1:] == ("actions", "rotate")
        handlers = {"POST": self._rotate} if is_rotation else self._handlers.get(len(subpath))
        if self._key_uses is None and request.method != "OPTIONS":
            raise problems.NotAvailable(COLLECTION, detail="this server accepts no API keys; set ANNALS_API_KEYS=true")
        return await answer_by_method(request, receive, handlers, subpath)

    async def _list(self, request: Request, receive: Receive) -> Response:
        parameters = query_params(request, (ASOF, *PAGE_PARAMS))
        page = parse_id_page(parameters)

        def read() -> Response:
            moment = moment_of(self._context, single_value(parameters, ASOF), request)
            found = listed_entities(moment, request.caller, COLLECTION, places_of_key, page.after)
            keys, links = page.take(request, found)
            uses = self._uses([key.id for key in keys]) if not moment.is_past else {}
            documents = [key_document(key, uses.get(key.id)) for key in keys]
            return answer_json(request, 200, documents, [*links, *moment.headers])

        return await asyncio.to_thread(read)

    async def _read(self, request: Request, receive: Receive) -> Response:
        def read() -> Response:
            entity, moment = find_entity(self._context, request, COLLECTION, places_of_key)
            uses = self._uses([entity.id]) if not moment.is_past else {}
            return answer_json(request, 200, key_document(entity, uses.get(entity.id)), moment.headers)

        return await asyncio.to_thread(read)

    async def _create(self, request: Request, receive: Receive) -> Response:
        attributes = parse_key_document(await read_document(request, receive))
        key = new_key(new_id(secrets.choice), secrets.choice)
        return await self._submit_text(request, CreateKey(f"{COLLECTION}/{key.id}", attributes, key.hash), key, 201)

    async def _rotate(self, request: Request, receive: Receive) -> Response:
        grace = parse_rotation(await read_document(request, receive, may_be_empty=True))
        key = new_key(request.segments[2], secrets.choice)
        return await self._submit_text(request, RotateKey(f"{COLLECTION}/{key.id}", key.hash, grace), key, 200)

    async def _submit_text(self, request: Request, command: CreateKey | RotateKey, key: KeyText, code: int) -> Response:
        """The answer that shows the text of a new key, which nothing else ever does (ACC-42)."""
        recorded = await submit(self._context, request, command)
        if isinstance(recorded, Response):
            return recorded
        _, event = recorded.events[0]
        entity = Entity(event.xid, event.type, event.epoch, event.attributes)
        headers = recorded_headers(request, recorded, event.xid if code == 201 else None)
        return answer_json(request, code, {**key_document(entity, None), "key": key.text}, headers)

    async def _revoke(self, request: Request, receive: Receive) -> Response:
        return await answer_deletion(self._context, request, RevokeKey(f"{COLLECTION}/{request.segments[2]}"))

    def _uses(self, ids: list[str]) -> dict[str, KeyUse]:
        return self._key_uses.read(ids) if self._key_uses is not None else {}


def key_document(entity: Entity, use: KeyUse | None) -> dict[str, Any]:
    """The answer about a key, without its text."""
    members = {name: entity.attributes[name] for name in _SHOWN_MEMBERS if name in entity.attributes}
    last_used = {"time": time_text(datetime.fromtimestamp(use.time, UTC)), "address": use.address} if use else None
    return {"id": entity.id, **members, **({"lastused": last_used} if last_used else {})}
