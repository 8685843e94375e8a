"""`/-/grants`: roles that administrators give to callers (ACC-62 to ACC-66)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
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
from annals.commands.store.write_transaction import Recorded, WriteTransaction
from annals.domain.access.access_documents import GRANT_MEMBERS, parse_grant_document
from annals.domain.access.grants import COLLECTION
from annals.domain.access.keys import new_id
from annals.domain.decisions.access.administration import places_of_grant
from annals.domain.decisions.commands import DeleteGrant, WriteGrant
from annals.domain.errors.http_errors import InvalidGrant
from annals.domain.registry.entities import Entity
from annals.domain.registry.events import EntityCreated
from annals.domain.replication.link_document import ID

GRANTS: Final = "grants"
_AT: Final = "at"
_SUBJECT: Final = "subject"


class GrantRoutes:
    """The surface of `/-/grants`."""

    def __init__(self, context: AccessContext) -> None:
        self._context = context
        self._handlers: Mapping[int, Mapping[str, Handler]] = {
            0: {"GET": self._list, "POST": self._create},
            1: {"GET": self._read, "PUT": self._put, "DELETE": self._delete},
        }

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`. Raises: Forbidden, NotFound, InvalidGrant, ParsingData, BadRequest."""
        subpath = request.segments[2:]
        return await answer_by_method(request, receive, self._handlers.get(len(subpath)), subpath)

    async def _list(self, request: Request, receive: Receive) -> Response:
        parameters = query_params(request, (ASOF, _AT, _SUBJECT, *PAGE_PARAMS))
        page = parse_id_page(parameters)
        wanted = {name: single_value(parameters, name) for name in (ASOF, _AT, _SUBJECT)}

        def read() -> Response:
            moment = moment_of(self._context, wanted[ASOF], request)
            found = (
                entity
                for entity in listed_entities(moment, request.caller, COLLECTION, places_of_grant, page.after)
                if all(wanted[name] in (None, entity.attributes[name]) for name in (_AT, _SUBJECT))
            )
            grants, links = page.take(request, found)
            return answer_json(request, 200, list(map(grant_document, grants)), [*links, *moment.headers])

        return await asyncio.to_thread(read)

    async def _read(self, request: Request, receive: Receive) -> Response:
        def read() -> Response:
            entity, moment = find_entity(self._context, request, COLLECTION, places_of_grant)
            return answer_json(request, 200, grant_document(entity), moment.headers)

        return await asyncio.to_thread(read)

    async def _create(self, request: Request, receive: Receive) -> Response:
        body = await read_document(request, receive)
        id = body.get("id", new_id(secrets.choice)) if isinstance(body, dict) else ""
        return await self._write(request, id, body, must_be_new=True)

    async def _put(self, request: Request, receive: Receive) -> Response:
        id = request.segments[2]
        body = await read_document(request, receive)
        if isinstance(body, dict) and body.get("id") not in (None, id):
            raise InvalidGrant.at_pointer("idmismatch", "/id", "the path has another id")
        return await self._write(request, id, body, must_be_new=False)

    async def _write(self, request: Request, id: Any, body: Any, *, must_be_new: bool) -> Response:
        attributes = parse_grant_document(body)
        if not isinstance(id, str) or not ID.match(id):
            raise InvalidGrant.at_pointer("value", "/id", "letters, digits, . _ ~ and - are needed, at most 64")
        command = WriteGrant(f"{COLLECTION}/{id}", must_be_new, attributes)
        recorded = await submit(self._context, request, command, _written_document)
        if isinstance(recorded, Response):
            return recorded
        is_new = any(isinstance(event, EntityCreated) for _, event in recorded.events)
        headers = recorded_headers(request, recorded, command.xid if is_new else None)
        return answer_json(request, 201 if is_new else 200, recorded.answer, headers)

    async def _delete(self, request: Request, receive: Receive) -> Response:
        return await answer_deletion(self._context, request, DeleteGrant(f"{COLLECTION}/{request.segments[2]}"))


def _written_document(transaction: WriteTransaction, recorded: Recorded) -> dict[str, Any]:
    """The grant as a command has left it."""
    entity = transaction.world.get(recorded.processed[0])
    assert entity is not None
    return grant_document(entity)


def grant_document(entity: Entity) -> dict[str, Any]:
    """The answer about a grant."""
    return {
        "id": entity.id,
        **{name: entity.attributes[name] for name in GRANT_MEMBERS if name in entity.attributes},
        "grantedby": entity.private["grantedby"],
    }
