"""What `/-/keys` and `/-/grants` share: moments of the past, dry runs, and who sees what (ACC-40, ACC-64, ACC-66)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.types import Receive

from annals.api.http import methods
from annals.api.http.asof import url_without_asof
from annals.api.http.json_bodies import json_response, parse_required_json
from annals.api.http.limits import read_body
from annals.api.http.methods import Handler
from annals.api.http.problem_response import root_link
from annals.api.http.query_params import query_params, single_value
from annals.api.http.request import Request
from annals.api.http.response import CORRELATION_HEADER, Headers, Response
from annals.api.registry.open_registry import Registry
from annals.api.xregistry.dryrun import dry_run
from annals.commands.pending_command import BuildAnswer
from annals.commands.store.write_transaction import Recorded
from annals.domain.access.roles import Caller
from annals.domain.decisions.commands import AccessCommand
from annals.domain.errors import problems
from annals.domain.errors.http_errors import Forbidden
from annals.domain.registry.entities import Entity
from annals.projections.access.stored_access import StoredAccess
from annals.projections.entities.view import View
from annals.projections.log.answer_position import note_position
from annals.projections.log.entities_outside_tree import EntitiesOutsideTree

#: Maximum size of a document in bytes.
MAX_BODY: Final = 1 << 16
ASOF: Final = "asof"
DRYRUN: Final = "dryrun"
_NO_STORE: Final = (b"cache-control", b"no-store")


@dataclass(frozen=True, slots=True)
class AccessContext:
    """What the handlers depend on."""

    registry: Registry
    stored: StoredAccess


@dataclass(frozen=True, slots=True)
class Moment:
    """The state that a request reads. headers: those of an answer about the past."""

    view: View
    is_past: bool
    headers: Headers

    def entities(self, collection: str) -> EntitiesOutsideTree:
        """The entities of a collection at the moment."""
        return self.view.outside_tree(collection)


def check_may_administer(caller: Caller) -> None:
    """Raises: Forbidden for a caller who is an admin nowhere, or who called with a key (ACC-49, ACC-64)."""
    if caller.has_key or not caller.administers_something:
        raise Forbidden(caller=caller.name)


async def answer_by_method(
    request: Request, receive: Receive, handlers: Mapping[str, Handler] | None, subpath: Sequence[str]
) -> Response:
    """See `methods.answer_by_method`; only administrators of some place may call."""
    return await methods.answer_by_method(request, receive, handlers, subpath, check_may_administer)


def moment_of(context: AccessContext, asof: str | None, request: Request) -> Moment:
    """The state that `asof` asks for; None: the current one. Blocks. Raises: BadRequest."""
    view = context.registry.readers.latest_view()
    if asof is None:
        return Moment(view, False, [])
    interaction = view.log.as_of(asof, context.registry.store.clock())
    note_position(interaction.last)
    original = (b"link", f"<{url_without_asof(request)}>;rel=original".encode("latin-1", "replace"))
    return Moment(view.as_of(interaction.last), True, [original])


def single_params(request: Request, *names: str) -> dict[str, str | None]:
    """The values of the parameters, which may be there once each. Raises: BadRequest."""
    parameters = query_params(request, names)
    return {name: single_value(parameters, name) for name in names}


async def read_document(request: Request, receive: Receive, *, may_be_empty: bool = False) -> Any:
    """The JSON body of a request; `{}` for none, if it may be empty. Raises: ParsingData, and for too many bytes."""
    body = await read_body(request, receive, MAX_BODY)
    return {} if may_be_empty and not body else parse_required_json(body)


def answer_json(request: Request, code: int, body: Any, headers: Headers) -> Response:
    """An answer that no cache keeps."""
    return json_response(request, code, body, [_NO_STORE, *headers])


async def submit(
    context: AccessContext, request: Request, command: AccessCommand, build_answer: BuildAnswer | None = None
) -> Recorded | Response:
    """What was recorded; for a dry run the response with the events. Raises: what the command raises."""
    if DRYRUN in query_params(request, (DRYRUN,)):
        return await dry_run(request, context.registry.command_bus, command, None, is_unrestricted=True)
    future = context.registry.command_bus.submit(command, request.caller, build_answer)
    recorded: Recorded = await asyncio.wrap_future(future)
    context.stored.invalidate()
    note_position(recorded.position)
    return recorded


async def answer_deletion(context: AccessContext, request: Request, command: AccessCommand) -> Response:
    """The answer to a request that ends a key or a grant. Raises: what the command raises."""
    recorded = await submit(context, request, command)
    if isinstance(recorded, Response):
        return recorded
    return Response(204, [root_link(request.base), *recorded_headers(request, recorded)])


def recorded_headers(request: Request, recorded: Recorded, created_xid: str | None = None) -> Headers:
    """The headers of the answer to a write."""
    correlation_id = recorded.xregcorrelationid
    headers: Headers = [(CORRELATION_HEADER, correlation_id.encode())] if correlation_id is not None else []
    if created_xid is not None:
        headers.append((b"location", f"{request.base}{created_xid}".encode()))
    return headers


def find_entity(
    context: AccessContext, request: Request, collection: str, places: Callable[[Mapping[str, Any]], list[str]]
) -> tuple[Entity, Moment]:
    """The entity that a path names, if the caller administers its places. Blocks. Raises: NotFound, BadRequest."""
    moment = moment_of(context, single_params(request, ASOF)[ASOF], request)
    id = request.segments[2]
    entity = moment.entities(collection).get(id)
    if entity is None or not all(map(request.caller.administers, places(entity.attributes))):
        raise problems.NotFound(f"{collection}/{id}")
    return entity, moment


def listed_entities(
    moment: Moment, caller: Caller, collection: str, places: Callable[[Mapping[str, Any]], list[str]], after: str
) -> Iterator[Entity]:
    """The entities that the caller administers, by id. after: the id behind which they begin."""
    found = moment.entities(collection).all(after)
    return (entity for entity in found if all(map(caller.administers, places(entity.attributes))))
