"""The route with which `annals import --from-confluent` records subjects whole: one interaction adds the versions and
settings of a subject, a second one soft-deletes those that are soft-deleted at the source.

It is no route of Confluent's registry, which can do neither in one piece, and keeps no guids. Rules CSR-1003 to
CSR-1006, CSR-1011.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from annals.api.compat.confluent.reading import ConfluentRead
from annals.api.compat.confluent.request_params import check_config, schema_request
from annals.api.compat.confluent.responses import json_response, problem_error
from annals.api.compat.confluent.writing import ConfluentWrite, ConfluentWriter, group_xid_of
from annals.api.http.response import CORRELATION_HEADER, Headers, Response
from annals.commands.pending_command import PendingCommand
from annals.commands.store.write_transaction import Recorded
from annals.domain.confluent.checks import ContentCheck, read_content
from annals.domain.confluent.content import GUID
from annals.domain.confluent.errors import SchemaRegistryError
from annals.domain.confluent.facts import facts_of, number_of
from annals.domain.confluent.import_commands import (
    IMPORTED,
    LIVE,
    SOFT_DELETED,
    DeleteImportedVersions,
    ImportedVersion,
    ImportSubject,
)
from annals.domain.confluent.schema_types import common_format
from annals.domain.confluent.schema_versions import SchemaVersion
from annals.domain.confluent.settings import ScopeSettings, is_of_registry
from annals.domain.confluent.subjects import parse_subject
from annals.domain.decisions.changes.documents import digest
from annals.domain.decisions.checks.document_checks import CheckResult, CheckResults, FormatCheck
from annals.domain.decisions.commands import RegistryCommand
from annals.domain.decisions.confluent.import_subject import ImportedContentCheck, content_checks, copied_settings
from annals.domain.errors.problems import Problem
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads_trusted
from annals.projections.log.answer_position import note_position


async def import_subjects(writer: ConfluentWriter, write: ConfluentWrite) -> Response:
    """POST: for each subject the outcome of each version by its number, and of the settings, or why it was refused.

    The body has `source`, by which it is known what a copy wrote, and `subjects`. Each of these has its `subject`;
    `versions` as `GET /subjects/{subject}/versions/{version}` shows them, with `guid` and `deleted`, maybe not all;
    `live`, the numbers of all live ones; `config` and `mode`. With `deletes: true`, what copies from this source wrote
    and is not live there any more is soft-deleted.
    With the parameter `dryrun` nothing is recorded.
    Subjects are independent of each other: the commands of all are sent at once, to share transactions.
    """
    prepared = await asyncio.to_thread(lambda: _prepare(write.read()))
    answers = await asyncio.gather(*(_import(writer, write, one) for one in prepared))
    recorded = [one for answer in answers for one in answer.results]
    if recorded and not write.params.has("dryrun"):
        note_position(max(one.position for one in recorded))
    ids = [one.xregcorrelationid for one in recorded if one.xregcorrelationid is not None]
    headers: Headers = [(CORRELATION_HEADER, ids[-1].encode())] if ids else []
    return json_response(write.request, {"subjects": [answer.members for answer in answers]}, headers=headers)


class _Import(NamedTuple):
    """A subject to import. live_numbers: at the source. before: its settings here.

    unlisted: numbers and xids of versions that copies from this source wrote, live here and not live there.
    check_results: that the decision will need.
    """

    command: ImportSubject
    live_numbers: frozenset[int]
    before: ScopeSettings
    unlisted: Mapping[int, str]
    deletes: bool
    check_results: CheckResults

    @property
    def deletion(self) -> DeleteImportedVersions | None:
        """What soft-deletes, if there may be something."""
        is_needed = self.unlisted or any(one.state == SOFT_DELETED for one in self.command.versions)
        if not self.command.subject.name or not is_needed:
            return None
        command = self.command
        numbers = self.live_numbers if self.deletes else None
        return DeleteImportedVersions(command.xid, command.subject, command.context_ids, command.source, numbers)


class _Answer(NamedTuple):
    """members: of the answer. results: of the commands of a subject."""

    members: Mapping[str, Any]
    results: Sequence[Recorded] = ()


def _prepare(read: ConfluentRead) -> list[_Import | SchemaRegistryError]:
    """What the state before the import tells of each subject, read in one thread, to which the view belongs.

    Raises: SchemaRegistryError for a body of another form.
    """
    source, subjects = read.body.get("source"), read.body.get("subjects")
    if not isinstance(source, str) or not source:
        raise SchemaRegistryError(422, 'The member "source" is missing')
    if not isinstance(subjects, list) or not all(isinstance(one, dict) for one in subjects):
        raise SchemaRegistryError(422, 'The member "subjects" has to be an array of objects')
    read.view.prefetch_all(parse_subject(_name(one)) for one in subjects)
    return _with_check_results(read, [_prepare_subject(read, source, one) for one in subjects])


def _name(members: Mapping[str, Any]) -> str:
    """The subject as a body names it."""
    return str(members.get("subject", ""))


def _prepare_subject(read: ConfluentRead, source: str, members: Mapping[str, Any]) -> _Import | SchemaRegistryError:
    try:
        command = _import_command(read, source, members)
        live = _live_numbers(members)
    except SchemaRegistryError as error:
        return error
    unlisted = {
        version.number: version.xid
        for version in read.view.versions(command.subject).live
        if version.number not in live and _is_copied(read, version, source)
    }
    settings = read.view.registry.settings(command.subject)
    return _Import(command, live, settings, unlisted, read.body.get("deletes") is True, {})


def _with_check_results(
    read: ConfluentRead, subjects: Sequence[_Import | SchemaRegistryError]
) -> list[_Import | SchemaRegistryError]:
    """The subjects with results of the checks that decisions will need, run in one go, so that each is decided once.

    What is missing here, because something refers to no schema, the decision says.
    """
    by_subject = [_checks_of(read, one) for one in subjects]
    checks = [imported for found in by_subject for imported in found]
    documents = _documents_of(read, checks)
    contents = read.view.checker.check({imported.check for imported in checks}, documents.__getitem__)
    formats = {imported.check: _format_check(contents[imported.check], imported, documents) for imported in checks}
    format_checks = {check for check in formats.values() if check is not None}
    results = {**contents, **read.view.checker.check(format_checks, documents.__getitem__)}
    return [
        one._replace(check_results=_results_of(found, formats, results)) if isinstance(one, _Import) else one
        for one, found in zip(subjects, by_subject, strict=True)
    ]


def _checks_of(read: ConfluentRead, one: _Import | SchemaRegistryError) -> Sequence[ImportedContentCheck]:
    """The checks of the versions of a subject; none if the subject is refused."""
    if isinstance(one, SchemaRegistryError):
        return ()
    try:
        return content_checks(read.view.registry, one.command, read.view.caller.can_read)
    except SchemaRegistryError:
        return ()


def _documents_of(read: ConfluentRead, checks: Sequence[ImportedContentCheck]) -> dict[str, bytes]:
    """The texts that are checked and those to which they refer, by SHA-256 in hex."""
    documents = {imported.check.schema.sha256: imported.text for imported in checks}
    referenced = {sha256 for imported in checks for _, sha256 in imported.check.schema.references}
    return {sha256: read.view.read_model.document(sha256) for sha256 in referenced - documents.keys()} | documents


def _format_check(
    content: CheckResult, imported: ImportedContentCheck, documents: dict[str, bytes]
) -> FormatCheck | None:
    """The check of the document that a Version of a new subject will have; None if it is no schema.

    The document is added to the documents.
    """
    found = read_content(content)
    if found is None:
        return None
    stored = found.text.encode() if found.text is not None else imported.text
    sha256 = digest(stored)
    documents[sha256 or ""] = stored
    format = common_format(None, imported.check.schema.type, found.declared_format)
    return FormatCheck(format.lower(), sha256)


def _results_of(
    checks: Sequence[ImportedContentCheck], formats: Mapping[ContentCheck, FormatCheck | None], results: CheckResults
) -> CheckResults:
    wanted = [check for one in checks for check in (one.check, formats[one.check]) if check is not None]
    return {check: results[check] for check in wanted}


async def _import(writer: ConfluentWriter, write: ConfluentWrite, one: _Import | SchemaRegistryError) -> _Answer:
    """The answer for one subject. Raises: what is not its own fault."""
    try:
        if isinstance(one, SchemaRegistryError):
            raise one
        added = await _send(writer, write, one.command, one.check_results)
        if one.deletion is None:
            return _Answer(_outcomes(one, added), [added])
        deleted = await _send(writer, write, one.deletion)
        return _Answer(_outcomes(one, added, deleted.processed), [added, deleted])
    except SchemaRegistryError as error:
        return _refusal(error)
    except Problem as problem:
        refused = problem_error(problem, write.request)
        if refused.status >= 500:
            raise
        return _refusal(refused)


async def _send(
    writer: ConfluentWriter, write: ConfluentWrite, command: RegistryCommand, check_results: CheckResults | None = None
) -> Recorded:
    """What a command recorded, durably, or would record. Raises: SchemaRegistryError, Problem."""
    return await writer.record(
        PendingCommand(
            command,
            write.request.caller,
            dryrun=write.params.has("dryrun"),
            rebuild_command=lambda: command,
            check_results=check_results,
        )
    )


def _refusal(error: SchemaRegistryError) -> _Answer:
    return _Answer({"error_code": error.code, "message": error.message})


def _outcomes(one: _Import, added: Recorded, deleted: Collection[str] = ()) -> dict[str, Any]:
    """The outcomes of the versions of the request and of those that are unlisted, and of settings. deleted: xids."""
    created = _added_numbers(added)
    outcomes = {version.number: "created" if version.number in created else "equal" for version in one.command.versions}
    outcomes |= {number: "deleted" if xid in deleted else "kept" for number, xid in one.unlisted.items()}
    members: dict[str, Any] = {"versions": {str(number): outcomes[number] for number in sorted(outcomes)}}
    there = copied_settings(one.command)
    if there.config:
        members["config"] = _setting_outcome(dict(one.before.config), dict(there.config))
    if there.mode is not None:
        members["mode"] = _setting_outcome(one.before.mode, there.mode)
    return members


def _added_numbers(added: Recorded) -> set[int]:
    """The numbers of the versions that a command added."""
    processed = set(added.processed)
    return {
        number_of(xids.entity_id(event.xid), facts_of(event.private))
        for _, event in added.events
        if event.xid in processed
    }


def _is_copied(read: ConfluentRead, version: SchemaVersion, source: str) -> bool:
    row = read.view.read_model.entity(version.xid)
    facts = facts_of(loads_trusted(row.private)) if row is not None else {}
    return bool(facts.get(IMPORTED, {}).get("source") == source)


def _import_command(read: ConfluentRead, source: str, members: Mapping[str, Any]) -> ImportSubject:
    """Raises: SchemaRegistryError."""
    scope, versions = parse_subject(_name(members)), members.get("versions") or []
    if not isinstance(versions, list) or not all(isinstance(one, dict) for one in versions):
        raise SchemaRegistryError(422, 'The member "versions" has to be an array of objects')
    if versions and scope.is_context:
        raise SchemaRegistryError(422, "A context has no versions")
    config, mode = members.get("config") or {}, members.get("mode")
    if not isinstance(config, dict) or not isinstance(mode, str | None):
        raise SchemaRegistryError(422, 'The member "config" has to be an object, "mode" a string')
    check_config(config)
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
    if guid is not None and not (isinstance(guid, str) and GUID.fullmatch(guid)):
        raise SchemaRegistryError(422, "The guid of a version has to be a UUID")
    return ImportedVersion(
        schema.version,
        schema.id,
        replace(schema, id=None, version=None),
        guid.lower() if guid else None,
        SOFT_DELETED if members.get("deleted") is True else LIVE,
    )


def _live_numbers(members: Mapping[str, Any]) -> frozenset[int]:
    """Raises: SchemaRegistryError."""
    numbers = members.get("live") or []
    if not isinstance(numbers, list) or not all(isinstance(number, int) for number in numbers):
        raise SchemaRegistryError(422, 'The member "live" has to be an array of numbers')
    return frozenset(numbers)


def _setting_outcome(here: Any, there: Any) -> str:
    if not here:
        return "created"
    return "equal" if here == there else "conflict"
