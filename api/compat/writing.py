"""PUT, POST and DELETE of the legacy APIs: groups, schemas and message definitions, and their versions.

Each write is a command of the registry, so all rules of the registry apply. A refusal that depends on stored data is a
409 Conflict here (LEG-211).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

from starlette.types import Receive

from annals.api.compat.access import check_write
from annals.api.compat.entity_tags import group_entity_tag, write_condition
from annals.api.compat.paths import CompatPathKind, CompatTarget
from annals.api.compat.reading import not_found
from annals.api.compat.request_params import (
    DRYRUN,
    parse_attributes,
    query_params,
    read_content,
    read_object,
    sent_content_type,
)
from annals.api.compat.responses import json_response, no_content_response, post_response
from annals.api.compat.urls import group_path
from annals.api.http.methods import MethodNotAllowed
from annals.api.http.request import Request
from annals.api.http.response import CORRELATION_HEADER, Headers, Response
from annals.api.registry.definitions import DefinitionsCache
from annals.api.registry.open_registry import Registry
from annals.api.xregistry.dryrun import dry_run, findings_headers
from annals.commands.pending_command import BuildAnswer
from annals.commands.store.write_transaction import Recorded, WriteTransaction
from annals.domain.compat.catalog.attributes import FindSchema
from annals.domain.compat.errors import Conflict, invalid_definition, to_legacy_problem
from annals.domain.compat.legacy_apis import SCHEMAREGISTRY
from annals.domain.compat.request_extras import LegacyDeletion
from annals.domain.compat.uris import normalize_uri
from annals.domain.decisions.commands import Command, DeleteEntities
from annals.domain.decisions.compat.request_commands import group_command, message_command, schema_command
from annals.domain.errors import problems
from annals.domain.errors.http_errors import Forbidden
from annals.domain.errors.problems import CompatibilityUnknown, FormatUnknown, Problem
from annals.domain.registry.events import EntityCreated
from annals.projections.compat.definitions import (
    CompatDefinition,
    group_format,
    group_object,
    read_definition,
    schema_by_uri,
)
from annals.projections.compat.versions import CompatVersions
from annals.projections.entities.transaction_view import TransactionView
from annals.projections.entities.view import View
from annals.projections.log.answer_position import note_position

#: Problems that a strictly validating model raises (LEG-706).
_MODEL_PROBLEMS: Final = (CompatibilityUnknown, FormatUnknown)
Handler = Callable[[Request, CompatTarget, Receive], Awaitable[Response]]


class CompatWriteHandler:
    """Handles requests that change the registry. root_url: the registry URL that is the prefix of stored URLs.

    max_body: in bytes. accepts_foreign_authority: whether a document may name another registry
    as its authority.
    """

    def __init__(
        self,
        registry: Registry,
        definitions_cache: DefinitionsCache,
        root_url: str,
        max_body: int,
        accepts_foreign_authority: bool,
    ) -> None:
        self._command_bus = registry.command_bus
        self._readers = registry.readers
        self._definitions_cache = definitions_cache
        self._root_url = root_url
        self._max_body = max_body
        self._accepts_foreign_authority = accepts_foreign_authority
        self._handlers: Mapping[str, Handler] = {"PUT": self._put_group, "POST": self._post, "DELETE": self._delete}

    async def answer(self, request: Request, target: CompatTarget, receive: Receive) -> Response:
        """The response to a write that is durable, or to a dry run. Raises: Problem."""
        check_write(request.caller, target)
        await self._readers.read(self._check_model, request, target)
        return await self._handlers[request.method](request, target, receive)

    async def _put_group(self, request: Request, target: CompatTarget, receive: Receive) -> Response:
        """201 or 200 with the Group (S3)."""
        dryrun = DRYRUN in query_params(request, target)
        body = await read_object(request, receive, self._max_body)
        build_command = partial(
            group_command, target.family, target.groupxid, self._root_url + target.family.base, body
        )

        def build_response(transaction: WriteTransaction, recorded: Recorded) -> object:
            row = TransactionView(transaction).entity(target.groupxid)
            return (group_object(row, target.family), group_entity_tag(row)) if row is not None else None

        recorded = await self._submit(request, target, build_command, build_response, dryrun)
        if isinstance(recorded, Response):
            return recorded
        members, tag = recorded.answer
        headers = [(b"etag", tag), *_write_headers(recorded)]
        if not _is_new(recorded, target.groupxid):
            return json_response(request, 200, members, headers)
        group_url = request.base + target.family.base + group_path(target.family, target.group)
        return json_response(request, 201, members, [(b"location", group_url.encode()), *headers])

    async def _post(self, request: Request, target: CompatTarget, receive: Receive) -> Response:
        """200 with the Version that has the document: a new Version, or an existing one with the same document (S7)."""
        family = target.family
        parameters = query_params(request, target)
        attributes, contenttype = parse_attributes(request, family, parameters), sent_content_type(request)
        self._check_authority(attributes.authority, self._root_url + family.base, request)
        content = await read_content(request, receive, self._max_body)
        if not content:
            raise invalid_definition("document", "the body is empty", "LEG-512")
        base_url = self._root_url + family.base
        if family is SCHEMAREGISTRY:
            build_command = partial(schema_command, target.xid, base_url, attributes, content, contenttype)
        else:
            format = await asyncio.to_thread(self._format_of_group, request, target)
            build_command = partial(
                message_command,
                target.xid,
                base_url,
                attributes,
                content,
                contenttype,
                format,
                self._schema_finder(request),
            )

        def build_response(transaction: WriteTransaction, recorded: Recorded) -> CompatDefinition | None:
            return _processed_version(TransactionView(transaction), target, recorded, self._root_url)

        recorded = await self._submit(request, target, build_command, build_response, DRYRUN in parameters)
        if isinstance(recorded, Response):
            return recorded
        return post_response(recorded.answer, request, _write_headers(recorded))

    async def _delete(self, request: Request, target: CompatTarget, receive: Receive) -> Response:
        """204 (S4, S6, S9, S12)."""
        dryrun = DRYRUN in query_params(request, target)
        command = _delete_command(target)
        recorded = await self._submit(request, target, lambda: command, None, dryrun)
        return recorded if isinstance(recorded, Response) else no_content_response(request, _write_headers(recorded))

    def _check_authority(self, authority: str | None, base_url: str, request: Request) -> None:
        """Checks the authority of a document against the `inbound` setting (LEG-908).

        Raises: Forbidden if the authority is another registry and this registry accepts no inbound documents.
        """
        if (
            self._accepts_foreign_authority
            or authority is None
            or normalize_uri(authority).rstrip("/") == normalize_uri(base_url)
        ):
            return
        raise Forbidden(
            caller=request.caller.name, detail="this registry does not accept definitions of other authorities"
        )

    def _format_of_group(self, request: Request, target: CompatTarget) -> str:
        """The format of a Group. Raises: NotFound."""
        row = self._readers.quick_view().entity(target.groupxid)
        format = group_format(row, target.family) if row is not None else None
        if format is None:
            raise not_found(request)
        return format

    def _schema_finder(self, request: Request) -> FindSchema:
        """A function that finds schemas by URI, among those that the caller may read."""
        roots = tuple(dict.fromkeys((self._root_url, request.base)))
        return lambda uri: schema_by_uri(self._readers.quick_view(), uri, roots, request.caller.can_read)

    async def _submit(
        self,
        request: Request,
        target: CompatTarget,
        build_command: Callable[[], Command],
        build_response: BuildAnswer | None,
        dryrun: bool,
    ) -> Recorded | Response:
        """The recorded outcome of a command; for a dry run, its response. Raises: Problem."""
        tagged = target.kind is not CompatPathKind.CHILDREN  # a list has no entity tag
        condition = write_condition(request, partial(_current_tag, self._root_url, target)) if tagged else None
        try:
            command = await asyncio.to_thread(build_command)
            if dryrun:
                return await dry_run(request, self._command_bus, command, condition, build_response)
            future = self._command_bus.submit(command, request.caller, build_response, condition, rebuild=build_command)
            return await asyncio.wrap_future(future)
        except Problem as problem:
            raise _compat_problem(problem, request) from None

    def _check_model(self, request: Request, target: CompatTarget) -> None:
        """Checks that the model and the capabilities allow the request.

        Raises: NotFound if the model lacks the legacy API's types; MethodNotAllowed if the capabilities make entities
        read-only.
        """
        definitions = self._definitions_cache.current(self._readers.quick_view())
        group = definitions.model.groups.get(target.family.groups)
        if group is None or target.family.resources not in group.resources:
            raise problems.NotFound(request.path, detail=f"the model has no {target.family.type}")
        if not definitions.capabilities.available.get("entities"):
            raise MethodNotAllowed(problems.ActionNotSupported(action=request.method), "GET, HEAD, OPTIONS")


def _delete_command(target: CompatTarget) -> DeleteEntities:
    """The command of a DELETE request."""
    if target.child:
        xid = f"{target.xid}/versions" if target.number else target.xid
    else:
        xid = target.collection if target.kind is CompatPathKind.CHILDREN else target.groupxid
    return DeleteEntities(xid, facade=LegacyDeletion(target.family, target.number or None))


def _compat_problem(problem: Problem, request: Request) -> Problem:
    """The problem of the legacy API for a problem of the registry (LEG-211). NotFound names the requested path."""
    if isinstance(problem, problems.NotFound):
        return not_found(request)
    legacy_problem = to_legacy_problem(problem)
    # A DELETE has no content that could be invalid, so stored data is the cause, such as a future `removal` time.
    if (legacy_problem.status == 400 and request.method == "DELETE") or isinstance(legacy_problem, _MODEL_PROBLEMS):
        return Conflict(error_detail=problem.text(), detail=problem.detail, extensions=problem.extensions)
    return legacy_problem


def _write_headers(recorded: Recorded) -> Headers:
    """The headers of a write: the number of findings, and the correlation id if something was recorded (LEG-108)."""
    note_position(recorded.position)
    correlation_id = recorded.xregcorrelationid
    return [
        *findings_headers(recorded),
        *([(CORRELATION_HEADER, correlation_id.encode())] if correlation_id is not None else []),
    ]


def _is_new(recorded: Recorded, xid: str) -> bool:
    return any(isinstance(event, EntityCreated) and event.xid == xid for _, event in recorded.events)


def _processed_version(view: View, target: CompatTarget, recorded: Recorded, root: str) -> CompatDefinition:
    """The Version that a POST created or found."""
    compat_version = CompatVersions(view).version(target.xid, recorded.number) if recorded.number is not None else None
    definition = (
        read_definition(view, target.family, target.xid, compat_version, root) if compat_version is not None else None
    )
    assert definition is not None, "a POST that succeeds has a Version"
    return definition


def _current_tag(root: str, target: CompatTarget, view: View) -> bytes | None:
    """The entity tag that a GET of the path would have; None if nothing exists there."""
    if target.kind is CompatPathKind.GROUP:
        row = view.entity(target.groupxid)
        return group_entity_tag(row) if row is not None else None
    versions = CompatVersions(view)
    compat_version = versions.version(target.xid, target.number) if target.number else versions.latest(target.xid)
    definition = (
        read_definition(view, target.family, target.xid, compat_version, root) if compat_version is not None else None
    )
    return definition.etag if definition is not None else None
