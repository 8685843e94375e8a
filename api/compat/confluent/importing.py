"""The route with which `annals import --from-confluent` records a subject whole: one interaction adds its versions and
settings, a second one soft-deletes those that are soft-deleted at the source.

It is no route of Confluent's registry, which can do neither in one piece, and keeps no guids. Rules CSR-1003 to
CSR-1006, CSR-1011.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from annals.api.compat.confluent.reading import ConfluentRead
from annals.api.compat.confluent.request_params import schema_request
from annals.api.compat.confluent.responses import json_response
from annals.api.compat.confluent.writing import ConfluentWrite, ConfluentWriter, group_xid_of
from annals.api.http.response import CORRELATION_HEADER, Headers, Response
from annals.api.xregistry.dryrun import dry_run
from annals.commands.store.write_transaction import Recorded
from annals.domain.confluent.errors import SchemaRegistryError
from annals.domain.confluent.import_commands import (
    LIVE,
    SOFT_DELETED,
    DeleteImportedVersions,
    ImportedVersion,
    ImportSubject,
)
from annals.domain.confluent.settings import ScopeSettings, is_of_registry
from annals.domain.values import xid as xids
from annals.projections.log.answer_position import note_position


async def import_subject(writer: ConfluentWriter, write: ConfluentWrite) -> Response:
    """POST: the outcome of each version by its number, and of the settings.

    The body has `versions` as R7 shows them, with `guid` and `deleted`; `config`, `mode`; with `deletes: true`, what a
    copy wrote and the source has deleted since is soft-deleted.
    """
    read = await asyncio.to_thread(write.read)
    command = _import_command(read)
    if write.params.has("dryrun"):
        headers = [header for header in write.request.headers if header[0] != b"accept"]
        return await dry_run(write.request.with_headers(headers), writer.command_bus, command, None)
    settings_before = await asyncio.to_thread(read.view.registry.settings, command.subject)
    added = await writer.record(write, command)
    deleted = None
    if command.subject.name:
        live_numbers = frozenset(one.number for one in command.versions if one.state == LIVE)
        numbers = live_numbers if read.body.get("deletes") is True else None
        deletion = DeleteImportedVersions(command.xid, command.subject, command.context_ids, numbers)
        deleted = await writer.record(write, deletion)
    return await asyncio.to_thread(_answer, write.read(), command, settings_before, added, deleted)


def _import_command(read: ConfluentRead) -> ImportSubject:
    """Raises: SchemaRegistryError."""
    scope, versions = read.scope, read.body.get("versions") or []
    if not isinstance(versions, list) or not all(isinstance(one, dict) for one in versions):
        raise SchemaRegistryError(422, 'The member "versions" has to be an array of objects')
    if versions and scope.is_context:
        raise SchemaRegistryError(422, "A context has no versions")
    config, mode = read.body.get("config") or {}, read.body.get("mode")
    if not isinstance(config, dict) or not isinstance(mode, str | None):
        raise SchemaRegistryError(422, 'The member "config" has to be an object, "mode" a string')
    is_registry = is_of_registry(scope)
    return ImportSubject(
        xids.REGISTRY if is_registry else group_xid_of(read, scope),
        scope,
        read.view.context_ids,
        tuple(map(_imported_version, versions)),
        config,
        mode,
    )


def _imported_version(members: Mapping[str, Any]) -> ImportedVersion:
    schema = schema_request(members)
    if not schema.id or not schema.version or schema.version < 1:
        raise SchemaRegistryError(422, "Each version needs a version and an id")
    guid = members.get("guid")
    return ImportedVersion(
        schema.version,
        schema.id,
        replace(schema, id=None, version=None),
        guid if isinstance(guid, str) else None,
        SOFT_DELETED if members.get("deleted") is True else LIVE,
    )


def _answer(
    read: ConfluentRead, command: ImportSubject, before: ScopeSettings, added: Recorded, deleted: Recorded | None
) -> Response:
    """The answer, with the correlation id of the last interaction."""
    listed = read.view.versions(command.subject) if command.subject.name else []
    numbers = {version.xid: version.number for version in listed}
    created = {numbers[xid] for xid in added.processed if xid in numbers}
    removed = {numbers[xid] for xid in deleted.processed if xid in numbers} if deleted is not None else set()
    live_there = {one.number for one in command.versions if one.state == LIVE}
    outcomes = {one.number: "created" if one.number in created else "equal" for one in command.versions}
    for version in listed:
        if version.is_live and version.number not in live_there:
            outcomes[version.number] = "kept"
    outcomes |= dict.fromkeys(removed - created, "deleted")
    body: dict[str, Any] = {"versions": {str(number): outcomes[number] for number in sorted(outcomes)}}
    if command.config:
        body["config"] = "equal" if before.config else "created"
    if command.mode is not None:
        body["mode"] = "equal" if before.mode else "created"
    last = deleted if deleted is not None and deleted.xregcorrelationid else added
    note_position(last.position)
    id = last.xregcorrelationid
    headers: Headers = [(CORRELATION_HEADER, id.encode())] if id is not None else []
    return json_response(read.request, body, headers=headers)
