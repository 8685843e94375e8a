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
from annals.commands.store.write_transaction import Recorded, WriteTransaction
from annals.domain.confluent.errors import SchemaRegistryError
from annals.domain.confluent.facts import facts_of
from annals.domain.confluent.import_commands import (
    IMPORTED,
    LIVE,
    SOFT_DELETED,
    DeleteImportedVersions,
    ImportedVersion,
    ImportSubject,
)
from annals.domain.confluent.schema_versions import SchemaIndex, SchemaVersion
from annals.domain.confluent.settings import ScopeSettings, is_of_registry
from annals.domain.decisions.confluent.import_subject import copied_settings
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads_trusted
from annals.projections.entities.transaction_view import TransactionView
from annals.projections.log.answer_position import note_position


async def import_subject(writer: ConfluentWriter, write: ConfluentWrite) -> Response:
    """POST: the outcome of each version by its number, and of the settings; with `dryrun` nothing is recorded.

    The body has `source`, by which it is known what a copy wrote; `versions` as R7 shows them, with `guid` and
    `deleted`, maybe not all; `live`, the numbers of all live ones; `config` and `mode`. With `deletes: true`, what
    copies from this source wrote and is not live there any more is soft-deleted.
    """
    prepared = await asyncio.to_thread(lambda: _prepare(write.read()))
    read, command, live_numbers, before = prepared

    def versions(transaction: WriteTransaction, recorded: Recorded) -> dict[int, str]:
        listed = _listed(TransactionView(transaction).schemas, command)
        return {one.number: "created" if one.xid in recorded.processed else "equal" for one in listed}

    if write.params.has("dryrun"):
        submitted = writer.command_bus.submit(command, write.request.caller, versions, dryrun=True)
        added = await asyncio.wrap_future(submitted)
        return _answer(read, command, before, added.answer, added)
    added = await writer.record(write, command, versions)
    outcomes, last = added.answer, added
    if command.subject.name:
        numbers = live_numbers if read.body.get("deletes") is True else None
        deletion = DeleteImportedVersions(command.xid, command.subject, command.context_ids, command.source, numbers)
        deleted = await writer.record(write, deletion)
        outcomes = outcomes | await asyncio.to_thread(
            lambda: _deletions(write.read(), command, live_numbers, added, deleted)
        )
        last = deleted if deleted.xregcorrelationid is not None else added
    return _answer(read, command, before, outcomes, last)


def _prepare(read: ConfluentRead) -> tuple[ConfluentRead, ImportSubject, frozenset[int], ScopeSettings]:
    """What the state before the import tells, read in one thread, to which the view belongs."""
    command = _import_command(read)
    return read, command, _live_numbers(read), read.view.registry.settings(command.subject)


def _listed(schemas: SchemaIndex, command: ImportSubject) -> list[SchemaVersion]:
    """The versions of the subject that the request names."""
    named = {one.number for one in command.versions}
    return [one for one in schemas.versions(xids.entity_id(command.xid), command.subject.name) if one.number in named]


def _deletions(
    read: ConfluentRead, command: ImportSubject, live: frozenset[int], added: Recorded, deleted: Recorded
) -> dict[int, str]:
    """The outcomes of versions that were live here until now, or still are, and are not live at the source."""
    outcomes: dict[int, str] = {}
    for version in read.view.versions(command.subject):
        if version.xid in deleted.processed and version.xid not in added.processed:
            outcomes[version.number] = "deleted"
        elif version.is_live and version.number not in live and _is_copied(read, version, command.source):
            outcomes[version.number] = "kept"
    return outcomes


def _is_copied(read: ConfluentRead, version: SchemaVersion, source: str) -> bool:
    row = read.view.view.entity(version.xid)
    facts = facts_of(loads_trusted(row.private)) if row is not None else {}
    return bool(facts.get(IMPORTED, {}).get("source") == source)


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
    source = read.body.get("source")
    if not isinstance(source, str) or not source:
        raise SchemaRegistryError(422, 'The member "source" is missing')
    is_registry = is_of_registry(scope)
    return ImportSubject(
        xids.REGISTRY if is_registry else group_xid_of(read, scope),
        scope,
        read.view.context_ids,
        source,
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


def _live_numbers(read: ConfluentRead) -> frozenset[int]:
    """Raises: SchemaRegistryError."""
    numbers = read.body.get("live") or []
    if not isinstance(numbers, list) or not all(isinstance(number, int) for number in numbers):
        raise SchemaRegistryError(422, 'The member "live" has to be an array of numbers')
    return frozenset(numbers)


def _answer(
    read: ConfluentRead, command: ImportSubject, before: ScopeSettings, outcomes: dict[int, str], last: Recorded
) -> Response:
    """The answer, with the correlation id of the last interaction."""
    there = copied_settings(command)
    body: dict[str, Any] = {"versions": {str(number): outcomes[number] for number in sorted(outcomes)}}
    if there.config:
        body["config"] = _setting_outcome(dict(before.config), dict(there.config))
    if there.mode is not None:
        body["mode"] = _setting_outcome(before.mode, there.mode)
    note_position(last.position)
    id = last.xregcorrelationid
    headers: Headers = [(CORRELATION_HEADER, id.encode())] if id is not None else []
    return json_response(read.request, body, headers=headers)


def _setting_outcome(here: Any, there: Any) -> str:
    if not here:
        return "created"
    return "equal" if here == there else "conflict"
