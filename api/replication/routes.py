"""`/-/links`: replication links, for administrators (LEG-901)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from starlette.types import Receive

from annals.api.auth.callers import Authenticator
from annals.api.http.id_pages import PAGE_PARAMS, parse_id_page
from annals.api.http.json_bodies import json_response, parse_required_json
from annals.api.http.limits import read_body
from annals.api.http.methods import Handler, answer_by_method
from annals.api.http.problem_response import root_link
from annals.api.http.query_params import query_params
from annals.api.http.request import Request
from annals.api.http.response import CORRELATION_HEADER, NO_HEADERS, Headers, Response
from annals.api.registry.open_registry import Registry
from annals.api.replication.notifications import LinkNotificationHandler
from annals.api.replication.receive import LogReceiveHandler
from annals.api.replication.representations import (
    MAX_LINK_BODY,
    LinkApiContext,
    check_admin,
    find_link,
    link_document,
    link_status_document,
)
from annals.api.xregistry.dryrun import dry_run
from annals.commands.missing_schema_ids import assign_missing_schema_ids
from annals.commands.store.write_transaction import Recorded
from annals.domain.decisions.commands import ControlLink, DeleteLink, LinkCommand, WriteLink
from annals.domain.errors import problems
from annals.domain.errors.http_errors import InvalidLink, RemoteUnavailable
from annals.domain.registry.entities import Entity
from annals.domain.replication.link import COLLECTION, KAFKA, LOG, PUSH, TYPE, Link
from annals.domain.replication.link_document import CREDENTIAL, ID, parse_link
from annals.projections.log.answer_position import note_position
from annals.projections.replication.log.log_lines import BrokenFeed
from annals.projections.replication.remote.remote_client import RemoteError

LINKS: Final = "links"
_EVENTS: Final = "events"
_LOG: Final = "log"
_LOGGER: Final = logging.getLogger("annals.replication")
_DRYRUN: Final = "dryrun"
_COUNT: Final = "count"
_NO_STORE: Final = (b"cache-control", b"no-store")


class LinksRoutes:
    """The surface of `/-/links`. authenticator: authenticates callers, except the senders of notifications."""

    def __init__(self, context: LinkApiContext, authenticator: Authenticator) -> None:
        self._context = context
        self._authenticator = authenticator
        self._notification_handler = LinkNotificationHandler(context)
        self._receive_handler = LogReceiveHandler(context)
        self._registry: Registry = context.registry
        self._handlers: Mapping[int, Mapping[str, Handler]] = {
            0: {"GET": self._list, "POST": self._create},
            1: {"GET": self._read_link, "PUT": self._put, "DELETE": self._delete},
        }
        self._actions: Mapping[str, Handler] = {
            **{name: partial(self._control, name) for name in ("promote", "pause", "resume")},
            "check": self._check,
            "repair": self._repair,
        }

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`.

        Raises: Forbidden, NotFound, InvalidLink, ParsingData, BadRequest, MethodNotAllowed.
        """
        subpath = request.segments[2:]
        if len(subpath) == 2 and subpath[1] == _EVENTS:
            return await self._notification_handler.answer(request, receive)
        request = await self._authenticator.authenticate(request)
        handlers = self._actions_of(subpath) or self._handlers.get(len(subpath))
        return await answer_by_method(request, receive, handlers, subpath, check_admin)

    def _actions_of(self, subpath: tuple[str, ...]) -> Mapping[str, Handler] | None:
        if len(subpath) == 3 and subpath[1] == "actions" and subpath[2] in self._actions:
            return {"POST": self._actions[subpath[2]]}
        return {"POST": self._receive_handler.answer} if len(subpath) == 2 and subpath[1] == _LOG else None

    async def _list(self, request: Request, receive: Receive) -> Response:
        page = parse_id_page(query_params(request, PAGE_PARAMS))

        def read() -> Response:
            links, headers = page.take(request, self._registry.readers.latest_view().links.all(page.after))
            return _json_response(request, 200, [self._link_with_status(link) for link in links], headers)

        return await asyncio.to_thread(read)

    async def _read_link(self, request: Request, receive: Receive) -> Response:
        query_params(request, ())
        document = await asyncio.to_thread(
            lambda: self._link_with_status(find_link(self._registry.readers.latest_view(), request.segments[2]))
        )
        return _json_response(request, 200, document)

    async def _create(self, request: Request, receive: Receive) -> Response:
        body = await _read_document(request, receive)
        id = body.get("id") if isinstance(body, dict) else None
        if not isinstance(id, str) or not ID.match(id):
            raise InvalidLink.at_pointer("required", "/id", "an id is needed: letters, digits, . _ ~ and -")
        return await self._write(request, id, body, True)

    async def _put(self, request: Request, receive: Receive) -> Response:
        id = request.segments[2]
        body = await _read_document(request, receive)
        if isinstance(body, dict) and body.get("id") not in (None, id):
            raise InvalidLink.at_pointer("idmismatch", "/id", "the path has another id")
        stored_link = await asyncio.to_thread(lambda: self._quick_view().links.get(id))
        if stored_link is None and not ID.match(id):
            raise InvalidLink.at_pointer("value", "/id", "it is not the id of a link")
        return await self._write(request, id, body, stored_link is None)

    async def _write(self, request: Request, id: str, body: Any, is_new: bool) -> Response:
        link_properties = parse_link(body)
        if link_properties.secrets and not self._registry.store.vault.has_key:
            reason = "this server has no master key, so it cannot store secrets; set ANNALS_MASTER_KEY"
            raise InvalidLink.at_pointer("credentialsunavailable", f"/{CREDENTIAL.strip('.')}", reason)
        command = WriteLink(f"{COLLECTION}/{id}", is_new, link_properties.attributes, link_properties.secrets)
        if not is_new:
            return await self._submit(request, command, 200)
        await asyncio.to_thread(self._check_source, id, command)
        await asyncio.to_thread(self._forget_progress, command.xid)
        await asyncio.to_thread(self._check_ring, command)
        response = await self._submit(request, command, 201)
        try:  # checks again: two concurrent requests may close a cycle, and the later check sees both links
            await asyncio.to_thread(self._check_ring, command)
        except InvalidLink:
            await self._submit(request, DeleteLink(command.xid), 204)
            raise
        return response

    async def _delete(self, request: Request, receive: Receive) -> Response:
        link = await asyncio.to_thread(lambda: find_link(self._quick_view(), request.segments[2]))
        return await self._submit(request, DeleteLink(link.xid), 204)

    async def _control(self, name: str, request: Request, receive: Receive) -> Response:
        link = await asyncio.to_thread(lambda: find_link(self._quick_view(), request.segments[2]))
        return await self._submit(request, ControlLink(link.xid, name), 200)

    async def _check(self, request: Request, receive: Receive) -> Response:
        counts = _COUNT in query_params(request, (_COUNT, _DRYRUN))
        check = partial(self._context.replication.check, counts=counts)
        link = await self._call_remote(request, check, _COUNT)
        return _json_response(request, 200, await asyncio.to_thread(self._link_with_status, link))

    async def _repair(self, request: Request, receive: Receive) -> Response:
        """The link, with the number of entities that differed under `repaired`."""
        counts: list[int] = []
        link = await self._call_remote(request, lambda link: counts.append(self._context.replication.repair(link)))
        return _json_response(
            request, 200, {**await asyncio.to_thread(self._link_with_status, link), "repaired": counts[0]}
        )

    async def _call_remote(self, request: Request, call_remote: Callable[[Link], None], *parameters: str) -> Link:
        """The link after work that calls the other registry. Raises: RemoteUnavailable, BadRequest."""
        if _DRYRUN in query_params(request, (_DRYRUN, *parameters)):
            raise problems.BadRequest(
                error_detail='"dryrun" cannot be combined with an action that asks another registry'
            )
        id = request.segments[2]
        link = await asyncio.to_thread(lambda: find_link(self._quick_view(), id))
        try:
            await asyncio.to_thread(call_remote, link)
        except (RemoteError, BrokenFeed, LookupError) as error:
            raise RemoteUnavailable(link.xid, error_detail=str(error)) from None
        return await asyncio.to_thread(lambda: find_link(self._quick_view(), id))

    def _assign_schema_ids(self) -> None:
        """Gives ids to copies of a link that has ended, while requests go on. What is left, the next start does."""
        try:
            assign_missing_schema_ids(self._registry.store, self._registry.command_bus)
        except Exception:
            _LOGGER.exception("schemas that a link has copied could not get their ids")

    async def _submit(self, request: Request, command: LinkCommand, code: int) -> Response:
        if _DRYRUN in query_params(request, (_DRYRUN,)):
            return await dry_run(request, self._registry.command_bus, command, None, is_unrestricted=True)
        recorded: Recorded = await asyncio.wrap_future(self._registry.command_bus.submit(command, request.caller))
        self._context.on_change()
        if isinstance(command, DeleteLink) or (isinstance(command, ControlLink) and command.name == "promote"):
            asyncio.get_running_loop().run_in_executor(None, self._assign_schema_ids)
        note_position(recorded.position)
        correlation_id = recorded.xregcorrelationid
        headers = [(CORRELATION_HEADER, correlation_id.encode())] if correlation_id is not None else []
        if code == 204:
            return Response(204, [root_link(request.base), *headers])
        if code == 201:
            headers.append((b"location", f"{request.base}{command.xid}".encode()))
        link = await asyncio.to_thread(lambda: find_link(self._quick_view(), command.xid.rpartition("/")[2]))
        return _json_response(request, code, await asyncio.to_thread(self._link_with_status, link), headers)

    def _check_source(self, id: str, command: WriteLink) -> None:
        """Raises: InvalidLink if entities that a removed link of this id copied would be taken for those of another."""
        if command.attributes["mode"] == PUSH or command.attributes["dialect"] in (LOG, KAFKA):
            return
        earlier_links = self._quick_view().links.earlier(id)
        former = next((link for link in earlier_links if link.is_inbound and not link.follows_log), None)
        new_source = command.attributes["url"], command.attributes["dialect"]
        if former is not None and (former.url, former.dialect) != new_source:
            reason = f"a removed link of this id copied from {former.url}, and copies may still have it; take another"
            raise InvalidLink.at_pointer("taken", "/id", reason)

    def _forget_progress(self, xid: str) -> None:
        """Removes stored progress of an earlier link with the same id, which is not valid for a new link."""
        id = xid.rpartition("/")[2]
        if self._quick_view().links.get(id) is None:
            self._context.replication.forget(id)

    def _check_ring(self, command: WriteLink) -> None:
        """Checks that a new link closes no cycle. Raises: InvalidLink."""
        entity = Entity(command.xid, TYPE, 1, dict(command.attributes), {})
        self._context.replication.check_cycle(Link.from_entity(entity, 0), command.secrets)

    def _link_with_status(self, link: Link) -> dict[str, Any]:
        return {**link_document(link), "status": link_status_document(link, self._context.replication.progress(link))}

    def _quick_view(self) -> Any:
        return self._registry.readers.quick_view()


def _json_response(request: Request, code: int, body: Any, headers: Headers = NO_HEADERS) -> Response:
    return json_response(request, code, body, [_NO_STORE, *headers])


async def _read_document(request: Request, receive: Receive) -> Any:
    return parse_required_json(await read_body(request, receive, MAX_LINK_BODY))
