"""Writes of Confluent's API, each one command. Which path each has is in the table `ROUTES` in `routes.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from annals.api.compat.confluent.reading import ConfluentRead
from annals.api.compat.confluent.request_params import QueryParams, check_config, parse_version, schema_request
from annals.api.compat.confluent.responses import json_response, no_content_response
from annals.api.http.request import Request
from annals.api.http.response import CORRELATION_HEADER, Headers, Response
from annals.api.registry.entity_lookups import EntityLookups
from annals.api.registry.loop_future import LoopFuture
from annals.api.xregistry.dryrun import dry_run
from annals.commands.command_bus import CommandBus
from annals.commands.pending_command import BuildAnswer, PendingCommand
from annals.commands.store.write_transaction import Recorded, WriteTransaction
from annals.domain.confluent.commands import (
    ConfluentCommand,
    DeleteContext,
    DeleteSchemas,
    RegisterSchema,
    SchemaRequest,
    SettingKind,
    WriteSettings,
)
from annals.domain.confluent.errors import SchemaRegistryError, invalid_schema, invalid_subject
from annals.domain.confluent.facts import facts_of
from annals.domain.confluent.metadata_rules import check_rule_set
from annals.domain.confluent.schema_types import AVRO, PROTOBUF
from annals.domain.confluent.schema_versions import SchemaVersion, schema_version
from annals.domain.confluent.settings import IMPORT, LEVEL, effective_mode, is_of_registry
from annals.domain.confluent.subjects import (
    DEFAULT_CONTEXT,
    ContextIds,
    Subject,
    candidate_ids,
    group_xid,
    resource_xid,
)
from annals.domain.decisions.checks.document_checks import CheckResults
from annals.domain.errors.http_errors import Forbidden
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads_trusted
from annals.projections.entities.transaction_view import TransactionView
from annals.projections.log.answer_position import note_position


@dataclass(frozen=True, slots=True)
class ConfluentWrite:
    """A request to change something. read: the request with the latest state, for the thread that calls it."""

    request: Request
    params: QueryParams
    read: Callable[[], ConfluentRead]


class Prepared(NamedTuple):
    """A command with what its write transaction reads for the answer, and with results of checks that it needs."""

    command: ConfluentCommand
    build_answer: BuildAnswer | None = None
    check_results: CheckResults | None = None


#: What a write reads first, in a thread. Returns the answer if nothing has to be written.
Prepare = Callable[[ConfluentRead], Prepared | Response]


@dataclass(frozen=True, slots=True)
class ConfluentWriter:
    """Sends commands of this API, and turns their results into answers."""

    command_bus: CommandBus
    lookups: EntityLookups

    async def answer(self, write: ConfluentWrite, prepare: Prepare, show: Callable[[Any], Any]) -> Response:
        """The answer to a write that is durable, or to a dry run. Raises: SchemaRegistryError, Problem.

        show: makes its body of what the transaction has read; None for no body.
        """
        prepared = await asyncio.to_thread(lambda: prepare(write.read()))
        return prepared if isinstance(prepared, Response) else await self.send(write, prepared, show)

    async def send(self, write: ConfluentWrite, prepared: Prepared, show: Callable[[Any], Any]) -> Response:
        """The answer to a command. Raises: as `answer`."""
        command, build_answer, check_results = prepared
        request = write.request
        if write.params.has("dryrun"):
            headers = [header for header in request.headers if header[0] != b"accept"]
            return await dry_run(request.with_headers(headers), self.command_bus, command, None, build_answer)
        recorded = await self.record(
            PendingCommand(
                command,
                request.caller,
                build_answer,
                rebuild_command=lambda: command,
                check_results=check_results,
            )
        )
        body, headers = show(recorded.answer), _headers(recorded)
        return no_content_response(request, headers) if body is None else json_response(request, body, headers=headers)

    async def record(self, pending: PendingCommand) -> Recorded:
        """What a command has recorded, durably. Raises: SchemaRegistryError, Problem."""
        future = LoopFuture()
        self.command_bus.enqueue(replace(pending, future=future))
        return await future.outcome

    async def seems_new(self, subject: Subject, context_ids: ContextIds) -> bool:
        """Whether a subject of the default context has neither settings nor a Resource where it may be.

        The look-ups share a statement with those of other requests.
        """
        if subject.context != DEFAULT_CONTEXT or not subject.is_registrable:
            return False
        group = context_ids.default_group
        candidates = (resource_xid(group, id) for id in candidate_ids(subject.name))
        found = await asyncio.gather(
            *(self.lookups.find(xid, with_document=False) for xid in (group_xid(group), *candidates))
        )
        stored_group, *resources = (each.row for each in found)
        if stored_group is None or any(resources):
            return not any(resources)
        return subject.name not in facts_of(loads_trusted(stored_group.private)).get("subjects", {})


Write = Callable[[ConfluentWriter, ConfluentWrite], Awaitable[Response]]


async def register_schema(writer: ConfluentWriter, write: ConfluentWrite) -> Response:
    """Answers `POST /subjects/{subject}/versions`: the version with the schema, which may be there already.

    A schema is looked for, and checked, in a thread before the writer gets it.

    An Avro schema for a subject that seems to be new is neither: handing it to a thread costs more than the check.
    """
    read = write.read()
    schema, context_ids = schema_request(read.body), read.view.context_ids
    if schema.type == AVRO and not schema.references and await writer.seems_new(read.scope, context_ids):
        command = _registration(read, schema, read.scope, group_xid(context_ids.default_group))
        return await writer.send(write, Prepared(command, _registered(read, command)), _as_read)
    return await writer.answer(write, _prepare_registration, _as_read)


async def delete_subject(writer: ConfluentWriter, write: ConfluentWrite) -> Response:
    """Answers `DELETE /subjects/{subject}`: the numbers of the deleted versions."""
    return await writer.answer(write, lambda read: _deletion(read, None), _as_read)


async def delete_version(writer: ConfluentWriter, write: ConfluentWrite) -> Response:
    """Answers `DELETE /subjects/{subject}/versions/{version}`: the number of the deleted version."""

    def prepare(read: ConfluentRead) -> Prepared:
        return _deletion(read, parse_version(read.parts["version"]))

    return await writer.answer(write, prepare, lambda numbers: numbers[0])


async def write_config(writer: ConfluentWriter, write: ConfluentWrite) -> Response:
    """Answers `PUT /config` and `PUT /config/{subject}`: the new config, with its level as `compatibility`."""

    def prepare(read: ConfluentRead) -> Prepared:
        check_config(read.body)

        def build_answer(transaction: WriteTransaction, _: Recorded) -> Mapping[str, Any]:
            return _written(read, transaction).view.registry.settings(read.scope).config

        return Prepared(_settings(read, SettingKind.CONFIG, read.body), build_answer)

    def show(config: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"compatibility" if name == LEVEL else name: value for name, value in config.items()}

    return await writer.answer(write, prepare, show)


async def delete_config(writer: ConfluentWriter, write: ConfluentWrite) -> Response:
    """Answers `DELETE /config` and `DELETE /config/{subject}`: the config before the change."""

    def prepare(read: ConfluentRead) -> Prepared:
        config = read.view.registry.settings(read.scope).config
        level = config.get(LEVEL, read.view.default_level)
        before = {LEVEL: level, "compatibility": level, **config}
        return Prepared(_settings(read, SettingKind.CONFIG, {}, deletes=True), lambda *_: before)

    return await writer.answer(write, prepare, _as_read)


async def write_mode(writer: ConfluentWriter, write: ConfluentWrite) -> Response:
    """Answers `PUT /mode` and `PUT /mode/{subject}`: the mode of the request."""

    def prepare(read: ConfluentRead) -> Prepared:
        if "mode" not in read.body:
            raise SchemaRegistryError(422, 'The member "mode" is missing')
        mode = read.body["mode"]
        shown = {"mode": str(mode).upper()} if mode is not None else {}
        return Prepared(_settings(read, SettingKind.MODE, read.body), lambda *_: shown)

    return await writer.answer(write, prepare, _as_read)


async def delete_mode(writer: ConfluentWriter, write: ConfluentWrite) -> Response:
    """Answers `DELETE /mode` and `DELETE /mode/{subject}`: the mode before the change."""

    def prepare(read: ConfluentRead) -> Prepared:
        settings = read.view.registry.settings
        before = {"mode": settings(read.scope).mode or effective_mode(read.scope, settings)}
        return Prepared(_settings(read, SettingKind.MODE, {}, deletes=True), lambda *_: before)

    return await writer.answer(write, prepare, _as_read)


async def delete_context(writer: ConfluentWriter, write: ConfluentWrite) -> Response:
    """Answers `DELETE /contexts/{context}`, without a body."""

    def prepare(read: ConfluentRead) -> Prepared | Response:
        context = read.context or ""
        group = read.view.registry.group(context)
        if group is None:
            _check_may_write_context(read, context)
            return no_content_response(read.request)
        return Prepared(DeleteContext(group_xid(group), context, read.view.context_ids))

    return await writer.answer(write, prepare, _as_read)


def _check_may_write_context(read: ConfluentRead, context: str) -> None:
    """Raises: Forbidden for a caller from whom a context may only be hidden (ACC-78)."""
    caller, id = read.request.caller, next(read.view.context_ids.candidates(context), None)
    if id is not None and not caller.can_write(group_xid(id)):
        raise Forbidden(caller=caller.name)


def refuse_tags(read: ConfluentRead) -> Response:
    """Tags of single versions are not kept (CSR-211)."""
    raise SchemaRegistryError(42205, "Tags of versions cannot be changed here; register the schema with metadata")


# --- details ---------------------------------------------------------------------------------------------------------


def _prepare_registration(read: ConfluentRead) -> Prepared | Response:
    """The command, or the version that has the schema already: most producers only ask for that."""
    subject = read.view.registry.with_alias(read.scope)
    schema = schema_request(read.body)
    command = _registration(read, schema, subject, group_xid_of(read, subject))
    check_results: CheckResults | None = None
    if not read.params.has("dryrun") and schema.text and schema.id is None and schema.version is None:
        found = _known_or_checked(read, command)
        if isinstance(found, SchemaVersion):
            members = read.view.schema_members(found, _answer_text(read, schema, found), is_full=read.is_full)
            return json_response(read.request, members)
        check_results = found
    return Prepared(command, _registered(read, command), check_results)


def _registration(read: ConfluentRead, schema: SchemaRequest, subject: Subject, group: str) -> RegisterSchema:
    """The command that registers the schema of a request. group: the xid of its Group. Raises: SchemaRegistryError."""
    if "schemaTagsToAdd" in read.body or "schemaTagsToRemove" in read.body:
        refuse_tags(read)
    check_rule_set(schema.rule_set)
    if not subject.is_registrable:
        raise invalid_subject(subject.qualified)
    return RegisterSchema(
        group,
        subject,
        schema,
        read.view.context_ids,
        read.view.default_level,
        normalize=read.params.flag("normalize"),
        force=read.params.flag("force"),
    )


def _registered(read: ConfluentRead, command: RegisterSchema) -> BuildAnswer:
    """What reads the answer to a registration."""
    schema = command.schema

    def build_answer(transaction: WriteTransaction, recorded: Recorded) -> dict[str, Any]:
        written = _written(read, transaction)
        version = _added_version(recorded) or _known_version(written, command, recorded)
        text = schema.text
        if schema.type != PROTOBUF or not text:
            stored = transaction.world.document(version.document).decode("utf-8", "replace")
            text = written.view.shown_text(version, stored)
        return written.view.schema_members(version, text, is_full=read.is_full)

    return build_answer


def _known_or_checked(read: ConfluentRead, command: RegisterSchema) -> SchemaVersion | CheckResults | None:
    """The live version that has the schema of a command; otherwise results of the checks that adding it needs.

    None for what is no schema, which the decision refuses, if it does not refuse the caller.
    """
    view, schema, subject = read.view, command.schema, command.subject
    versions = view.versions(subject)
    try:
        candidates = view.candidates(subject, schema, versions, normalize=command.normalize, is_new=schema.is_new)
    except SchemaRegistryError:
        return None
    known = view.matching(candidates, schema.text, versions)
    if known is not None and effective_mode(subject, view.registry.settings) != IMPORT:
        return known
    resource = view.read_model.entity(versions.latest.resource) if versions.latest is not None else None
    format = loads_trusted(resource.attributes).get("format") if resource is not None else None
    return view.results_for_new(candidates, schema.text, format)


def _added_version(recorded: Recorded) -> SchemaVersion | None:
    """The version that a registration has added; None if it has changed nothing."""
    events = (one for one in recorded.events if one[1].xid in recorded.processed)
    return next((schema_version(event, position) for position, event in events), None)


def _known_version(read: ConfluentRead, command: RegisterSchema, recorded: Recorded) -> SchemaVersion:
    """The version that a registration has found. Raises: SchemaRegistryError."""
    versions = read.view.registry.versions_in(xids.entity_id(command.xid), command.subject.name)
    version = next((one for one in versions.live if one.xid in recorded.processed), None)
    if version is None:
        raise invalid_schema("The text is not a schema of this type")
    return version


def _written(read: ConfluentRead, transaction: WriteTransaction) -> ConfluentRead:
    """The request after its write. The view of the request is on the connection of a thread that has other work."""
    return replace(read, view=replace(read.view, read_model=TransactionView(transaction)))


def _as_read(answer: Any) -> Any:
    """The body of an answer for which the transaction has read all."""
    return answer


def _answer_text(read: ConfluentRead, schema: SchemaRequest, version: SchemaVersion) -> str:
    """The text in the answer to a registration.

    A Protobuf schema is answered as it was sent: Confluent's Python client keeps the answer, and reads it again as the
    descriptor that it has sent.
    """
    is_protobuf = schema.type == PROTOBUF and schema.text and not read.format
    return schema.text if is_protobuf else read.view.text(version, read.format)


def _deletion(read: ConfluentRead, version: int | None) -> Prepared:
    subject, permanent = read.view.registry.with_alias(read.scope), read.params.flag("permanent")
    command = DeleteSchemas(group_xid_of(read, subject), subject, read.view.context_ids, version, permanent)
    return Prepared(command, lambda _, recorded: sorted(recorded.deleted_numbers))


def _settings(
    read: ConfluentRead, kind: SettingKind, values: Mapping[str, Any], *, deletes: bool = False
) -> WriteSettings:
    scope = read.scope
    return WriteSettings(
        xids.REGISTRY if is_of_registry(scope) or scope.context == ".__GLOBAL" else group_xid_of(read, scope),
        scope,
        kind,
        read.view.context_ids,
        values,
        deletes,
        force=read.params.flag("force"),
        recursive=read.params.flag("recursive"),
    )


def group_xid_of(read: ConfluentRead, subject: Subject) -> str:
    """The xid of the Group of a subject's context, which may be new. Raises: SchemaRegistryError."""
    found = read.view.group_for(subject.context)
    if found is None:
        raise invalid_subject(subject.qualified)
    return group_xid(found)


def _headers(recorded: Recorded) -> Headers:
    note_position(recorded.position)
    correlation_id = recorded.xregcorrelationid
    return [(CORRELATION_HEADER, correlation_id.encode())] if correlation_id is not None else []
