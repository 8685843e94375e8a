"""Writes of Confluent's API: rows R4, R6, R10, R19 to R21 of the table of paths. Each is one command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from annals.api.compat.confluent.reading import ConfluentRead
from annals.api.compat.confluent.request_params import QueryParams, check_config, parse_version, schema_request
from annals.api.compat.confluent.responses import json_response, no_content_response
from annals.api.http.request import Request
from annals.api.http.response import CORRELATION_HEADER, Headers, Response
from annals.api.xregistry.dryrun import dry_run
from annals.commands.command_bus import CommandBus
from annals.commands.pending_command import BuildAnswer
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
from annals.domain.confluent.metadata_rules import check_rule_set
from annals.domain.confluent.schema_types import PROTOBUF
from annals.domain.confluent.schema_versions import SchemaVersion
from annals.domain.confluent.settings import IMPORT, LEVEL, effective_mode, is_of_registry
from annals.domain.confluent.subjects import Subject, group_xid
from annals.domain.values import xid as xids
from annals.projections.entities.transaction_view import TransactionView
from annals.projections.log.answer_position import note_position


@dataclass(frozen=True, slots=True)
class ConfluentWrite:
    """A request to change something. read: the request with the latest state, for the thread that calls it."""

    request: Request
    params: QueryParams
    read: Callable[[], ConfluentRead]


#: What a write reads first, in a thread: its command, or the answer if nothing has to be written.
Prepared = tuple[ConfluentCommand, BuildAnswer | None] | Response


@dataclass(frozen=True, slots=True)
class ConfluentWriter:
    """Sends commands of this API, and turns their results into answers."""

    command_bus: CommandBus

    async def answer(
        self, write: ConfluentWrite, prepare: Callable[[ConfluentRead], Prepared], finish: Finish
    ) -> Response:
        """The answer to a write that is durable, or to a dry run. Raises: SchemaRegistryError, Problem."""
        prepared = await asyncio.to_thread(lambda: prepare(write.read()))
        if isinstance(prepared, Response):
            return prepared
        command, build_answer = prepared
        request = write.request
        if write.params.has("dryrun"):
            headers = [header for header in request.headers if header[0] != b"accept"]
            return await dry_run(request.with_headers(headers), self.command_bus, command, None, build_answer)
        future = self.command_bus.submit(command, request.caller, build_answer, rebuild=lambda: command)
        recorded = await asyncio.wrap_future(future)
        return await asyncio.to_thread(lambda: finish(write.read(), recorded))


Finish = Callable[[ConfluentRead, Recorded], Response]
Write = Callable[[ConfluentWriter, ConfluentWrite], Awaitable[Response]]


async def register_schema(writer: ConfluentWriter, write: ConfluentWrite) -> Response:
    """R6."""

    def finish(read: ConfluentRead, recorded: Recorded) -> Response:
        return _json(read, recorded, recorded.answer)

    return await writer.answer(write, _prepare_registration, finish)


async def delete_subject(writer: ConfluentWriter, write: ConfluentWrite) -> Response:
    """R4."""

    def prepare(read: ConfluentRead) -> Prepared:
        return _deletion(read, None)

    def finish(read: ConfluentRead, recorded: Recorded) -> Response:
        return _json(read, recorded, recorded.answer)

    return await writer.answer(write, prepare, finish)


async def delete_version(writer: ConfluentWriter, write: ConfluentWrite) -> Response:
    """R10."""

    def prepare(read: ConfluentRead) -> Prepared:
        return _deletion(read, parse_version(read.parts["version"]))

    def finish(read: ConfluentRead, recorded: Recorded) -> Response:
        return _json(read, recorded, recorded.answer[0])

    return await writer.answer(write, prepare, finish)


async def write_config(writer: ConfluentWriter, write: ConfluentWrite) -> Response:
    """R19: the config after the change, with its level as `compatibility`."""

    def prepare(read: ConfluentRead) -> Prepared:
        check_config(read.body)
        return _settings(read, SettingKind.CONFIG, read.body), None

    def finish(read: ConfluentRead, recorded: Recorded) -> Response:
        config = read.view.registry.settings(read.scope).config
        shown = {"compatibility" if name == LEVEL else name: value for name, value in config.items()}
        return _json(read, recorded, shown)

    return await writer.answer(write, prepare, finish)


async def delete_config(writer: ConfluentWriter, write: ConfluentWrite) -> Response:
    """R19: the config before the change."""
    config: dict[str, Any] = {}

    def prepare(read: ConfluentRead) -> Prepared:
        config.update(read.view.registry.settings(read.scope).config)
        return _settings(read, SettingKind.CONFIG, {}, deletes=True), None

    def finish(read: ConfluentRead, recorded: Recorded) -> Response:
        level = config.get(LEVEL, read.view.default_level)
        return _json(read, recorded, {LEVEL: level, "compatibility": level, **config})

    return await writer.answer(write, prepare, finish)


async def write_mode(writer: ConfluentWriter, write: ConfluentWrite) -> Response:
    """R20."""

    def prepare(read: ConfluentRead) -> Prepared:
        if "mode" not in read.body:
            raise SchemaRegistryError(422, 'The member "mode" is missing')
        return _settings(read, SettingKind.MODE, read.body), None

    def finish(read: ConfluentRead, recorded: Recorded) -> Response:
        mode = read.body["mode"]
        return _json(read, recorded, {"mode": str(mode).upper()} if mode is not None else {})

    return await writer.answer(write, prepare, finish)


async def delete_mode(writer: ConfluentWriter, write: ConfluentWrite) -> Response:
    """R20: the mode before the change."""
    modes: list[str] = []

    def prepare(read: ConfluentRead) -> Prepared:
        settings = read.view.registry.settings
        own_mode = settings(read.scope).mode
        modes.append(own_mode or effective_mode(read.scope, settings))
        return _settings(read, SettingKind.MODE, {}, deletes=True), None

    def finish(read: ConfluentRead, recorded: Recorded) -> Response:
        return _json(read, recorded, {"mode": modes[-1]})

    return await writer.answer(write, prepare, finish)


async def delete_context(writer: ConfluentWriter, write: ConfluentWrite) -> Response:
    """R21."""

    def prepare(read: ConfluentRead) -> Prepared:
        context = read.context or ""
        group = read.view.registry.group(context)
        if group is None:
            return no_content_response(read.request)
        return DeleteContext(group_xid(group), context, read.view.context_ids), None

    def finish(read: ConfluentRead, recorded: Recorded) -> Response:
        return no_content_response(read.request, _headers(recorded))

    return await writer.answer(write, prepare, finish)


def refuse_tags(read: ConfluentRead) -> Response:
    """Tags of single versions are not kept (CSR-211)."""
    raise SchemaRegistryError(42205, "Tags of versions cannot be changed here; register the schema with metadata")


# --- details ---------------------------------------------------------------------------------------------------------


def _prepare_registration(read: ConfluentRead) -> Prepared:
    """The command, or the version that has the schema already: most producers only ask for that."""
    schema, subject = schema_request(read.body), read.view.registry.with_alias(read.scope)
    if "schemaTagsToAdd" in read.body or "schemaTagsToRemove" in read.body:
        refuse_tags(read)
    check_rule_set(schema.rule_set)
    if not subject.is_registrable:
        raise invalid_subject(subject.qualified)
    command = RegisterSchema(
        group_xid_of(read, subject),
        subject,
        schema,
        read.view.context_ids,
        read.view.default_level,
        normalize=read.params.flag("normalize"),
        force=read.params.flag("force"),
    )
    if not read.params.has("dryrun") and schema.text and schema.id is None and schema.version is None:
        versions = [version for version in read.view.versions(subject) if version.is_live]
        known = read.view.matching(subject, schema, versions, normalize=command.normalize) if versions else None
        if known is not None and effective_mode(subject, read.view.registry.settings) != IMPORT:
            return json_response(read.request, _members(read, known, _answer_text(read, schema, known)))

    def build_answer(transaction: WriteTransaction, recorded: Recorded) -> dict[str, Any]:
        # The view of the request is on the connection of its own thread, which has other work by now.
        written = replace(read, view=replace(read.view, view=TransactionView(transaction)))
        versions = written.view.registry.versions_in(xids.entity_id(command.xid), subject.name)
        version = next((one for one in versions if one.xid in recorded.processed and one.is_live), None)
        if version is None:
            raise invalid_schema("The text is not a schema of this type")
        if schema.type == PROTOBUF and schema.text:
            return _members(written, version, schema.text)
        text = transaction.world.document(version.document).decode("utf-8", "replace")
        return _members(written, version, written.view.shown_text(version, text))

    return command, build_answer


def _answer_text(read: ConfluentRead, schema: SchemaRequest, version: SchemaVersion) -> str:
    """The text in the answer of R6. A Protobuf schema is answered as it was sent: Confluent's Python client keeps the
    answer, and reads it again as the descriptor that it has sent."""
    is_protobuf = schema.type == PROTOBUF and schema.text and not read.format
    return schema.text if is_protobuf else read.view.text(version, read.format)


def _members(read: ConfluentRead, version: SchemaVersion, text: str) -> dict[str, Any]:
    """The answer of R6: the schema without its subject."""
    members = read.view.schema_members(version, text, is_full=read.is_full)
    return {name: value for name, value in members.items() if name != "subject"}


def _deletion(read: ConfluentRead, version: int | None) -> Prepared:
    subject, permanent = read.view.registry.with_alias(read.scope), read.params.flag("permanent")
    command = DeleteSchemas(group_xid_of(read, subject), subject, read.view.context_ids, version, permanent)
    numbers: dict[str, list[int]] = {}  # several where other APIs created a Version again
    for one in read.view.versions(subject):
        if permanent or one.is_live:
            numbers.setdefault(one.xid, []).append(one.number)

    def build_answer(transaction: WriteTransaction, recorded: Recorded) -> list[int]:
        del transaction
        if version:
            return [version]
        return sorted(
            number
            for xid in dict.fromkeys(recorded.processed)
            for number in numbers.get(xid) or [int(xids.entity_id(xid))]
        )

    return command, build_answer


def _settings(
    read: ConfluentRead, kind: SettingKind, values: Mapping[str, Any], *, deletes: bool = False
) -> WriteSettings:
    scope = read.scope
    return WriteSettings(
        xids.REGISTRY if is_of_registry(scope) or scope.context == ".__GLOBAL" else group_xid_of(read, scope),
        Subject(".__GLOBAL", "") if scope.context == ".__GLOBAL" else scope,
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


def _json(read: ConfluentRead, recorded: Recorded, body: Any) -> Response:
    return json_response(read.request, body, headers=_headers(recorded))


def _headers(recorded: Recorded) -> Headers:
    note_position(recorded.position)
    correlation_id = recorded.xregcorrelationid
    return [(CORRELATION_HEADER, correlation_id.encode())] if correlation_id is not None else []
