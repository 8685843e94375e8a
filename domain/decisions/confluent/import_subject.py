"""Copies of subjects of another schema registry: what is missing is added whole, what contradicts it is refused.

Modes do not bind a copy, and compatibility is not checked: the source has done that. Nothing that is here is changed.
Rules CSR-1003 to CSR-1005, CSR-1011.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from annals.domain.access.roles import CanRead
from annals.domain.confluent.checks import ContentCheck, SchemaContent, SchemaDocument, content_check, read_content
from annals.domain.confluent.commands import SettingKind, WriteSettings
from annals.domain.confluent.errors import SchemaRegistryError, invalid_schema, invalid_subject
from annals.domain.confluent.facts import facts_of, with_facts
from annals.domain.confluent.import_commands import (
    IMPORTED,
    SOFT_DELETED,
    DeleteImportedVersions,
    ImportedVersion,
    ImportSubject,
)
from annals.domain.confluent.schema_registry import SchemaRegistry
from annals.domain.confluent.schema_versions import SchemaVersion
from annals.domain.confluent.settings import ScopeSettings, changed_config, parse_mode
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.documents import digest
from annals.domain.decisions.changes.drafts import ResourceDraft
from annals.domain.decisions.confluent.delete import delete_versions
from annals.domain.decisions.confluent.register import refused_schema
from annals.domain.decisions.confluent.schema_ids import check_imported_id
from annals.domain.decisions.confluent.subject_resource import (
    NewSchemaVersion,
    add_schema_version,
    set_common_format,
    subject_resource,
)
from annals.domain.decisions.confluent.subject_settings import set_resource_settings, store_settings
from annals.domain.decisions.confluent.world_entities import entity_finder, subject_xids
from annals.domain.registry.entities import Entity
from annals.domain.values import timestamps
from annals.domain.values import xid as xids


def import_subject(changes: ChangeSet, command: ImportSubject) -> None:
    """Applies one ImportSubject to a change; `changes.processed` has the Versions that it adds.

    Raises: SchemaRegistryError, 40902 for a version that contradicts what is here; ChecksRequired; any Problem of a
    write.
    """
    registry = SchemaRegistry(changes.world.schemas, entity_finder(changes.world), command.context_ids)
    if command.versions and not command.subject.is_registrable:
        raise invalid_subject(command.subject.qualified)
    changes.world.prefetch(subject_xids(changes.world, command))
    missing = _missing_versions(changes, registry, command)
    here, there = registry.settings(command.subject), copied_settings(command)
    settings = ScopeSettings(here.config or there.config, here.mode or there.mode)
    resource = _add_versions(changes, registry, command, missing) if missing else None
    if settings != here and resource is not None:
        set_resource_settings(changes, resource, settings)
    elif settings != here:
        write = WriteSettings(command.xid, command.subject, SettingKind.CONFIG, command.context_ids)
        store_settings(changes, registry, write, settings)


def delete_imported_versions(changes: ChangeSet, command: DeleteImportedVersions) -> None:
    """Applies one DeleteImportedVersions to a change; `changes.processed` has the Versions that it deletes."""
    registry = SchemaRegistry(changes.world.schemas, entity_finder(changes.world), command.context_ids)
    live = registry.versions(command.subject).live
    targets = [version for version in live if _is_to_delete(changes, registry, command, version)]
    if targets:
        delete_versions(changes, targets)
        deleted_xids = [version.xid for version in targets]
        descendants = _descendants(changes, live, frozenset(deleted_xids))
        _note_own_change(changes, command.source, descendants)
        changes.processed += deleted_xids


def _descendants(
    changes: ChangeSet, versions: Sequence[SchemaVersion], deleted_xids: Set[str]
) -> Iterator[SchemaVersion]:
    """The Versions that get another ancestor, because theirs is deleted."""
    deleted_ids = set(map(xids.entity_id, deleted_xids))
    for version in (one for one in versions if one.xid not in deleted_xids):
        entity = changes.world.get(version.xid)
        assert entity is not None
        if entity.attributes["ancestorid"] in deleted_ids:
            yield version


def _note_own_change(changes: ChangeSet, source: str, versions: Iterable[SchemaVersion]) -> None:
    """Keeps Versions unchanged since their import that this change updates, because it is the copy's own."""
    for version in versions:
        entity = changes.world.get(version.xid)
        imported = facts_of(entity.private).get(IMPORTED, {}) if entity is not None else {}
        if entity is not None and imported.get("source") == source and _is_unchanged(entity, imported):
            noted = {**imported, "epoch": entity.epoch + 1, "modifiedat": timestamps.to_text(changes.context.now)}
            draft = changes.version(changes.existing_resource(version.resource), entity.id)
            draft.confluent = with_facts(draft.confluent, imported=noted)


def _is_unchanged(entity: Entity, imported: Mapping[str, Any]) -> bool:
    """Whether only the copy has written a Version that it imported.

    One that was deleted and restored has its first epoch and its facts again, but not the time of its last change.
    imported: the fact, in which copies of old did not keep that time.
    """
    modifiedat = entity.attributes["modifiedat"]
    return bool(entity.epoch == imported.get("epoch", 1) and modifiedat == imported.get("modifiedat", modifiedat))


# --- what is missing -------------------------------------------------------------------------------------------------


class _Missing(NamedTuple):
    """A version that is not here, and its content. extras: its references, metadata and rule set."""

    version: ImportedVersion
    content: SchemaContent
    extras: Mapping[str, Any]


def conflict(reason: str) -> SchemaRegistryError:
    """The refusal of a copy that contradicts what is here (CSR-1004)."""
    return SchemaRegistryError(40902, reason)


def _missing_versions(changes: ChangeSet, registry: SchemaRegistry, command: ImportSubject) -> list[_Missing]:
    """The versions to add. Raises: SchemaRegistryError for a conflict."""
    stored = {version.number: version for version in registry.versions(command.subject).all}
    group = xids.entity_id(command.xid)
    keys_by_id: dict[int, str] = {}
    missing = []
    for one in _contents(changes, registry, command):
        number, id, key = one.version.number, one.version.id, one.content.identity.key
        check_imported_id(changes, id)
        here = stored.get(number)
        if here is not None and (here.key, here.id) != (key, id):
            raise conflict(f"Version {number} is here with id {here.id} and {_same(here.key == key)} schema")
        holders = {row.key for row in changes.world.schemas.by_id(id) if row.group == group}
        if holders - {key} or keys_by_id.setdefault(id, key) != key:
            raise conflict(f"Version {number} has id {id}, which is the id of another schema in this context")
        if here is None:
            missing.append(one)
    return missing


def _same(is_same: bool) -> str:
    return "the same" if is_same else "another"


class ImportedContentCheck(NamedTuple):
    """The check of the content of a version. text: as the source has it. extras: references, metadata and rule set."""

    version: ImportedVersion
    check: ContentCheck
    text: bytes
    extras: Mapping[str, Any]


def content_checks(registry: SchemaRegistry, command: ImportSubject, can_read: CanRead) -> list[ImportedContentCheck]:
    """The checks that a command needs, by number. can_read: of its caller. Raises: SchemaRegistryError."""
    references = registry.references(xids.entity_id(command.xid))
    checks = []
    for version in sorted(command.versions, key=lambda one: one.number):
        text = version.schema.text.encode()
        sha256 = digest(text)
        if sha256 is None:
            raise invalid_schema(f"Version {version.number}: Empty schema")
        numbered = references.numbered(version.schema.references, can_read, only_live=False)
        extras = replace(version.schema, references=numbered).extras
        document = SchemaDocument(version.schema.type, sha256, references.documents(numbered))
        checks.append(ImportedContentCheck(version, content_check(document, extras), text, extras))
    return checks


def _contents(changes: ChangeSet, registry: SchemaRegistry, command: ImportSubject) -> list[_Missing]:
    """The contents of all versions, by number, parsed in one go. Raises: SchemaRegistryError; ChecksRequired."""
    checks = content_checks(registry, command, changes.context.caller.can_read)
    documents = {one.check.schema.sha256: one.text for one in checks}
    results = changes.world.check_results(frozenset(one.check for one in checks), documents)
    contents = []
    for version, check, _, extras in checks:
        found = read_content(results[check])
        if found is None:
            refusal = refused_schema(results[check])
            raise SchemaRegistryError(refusal.code, f"Version {version.number}: {refusal.message}")
        contents.append(_Missing(version, found, extras))
    return contents


def copied_settings(command: ImportSubject) -> ScopeSettings:
    """The settings at the source. Raises: SchemaRegistryError."""
    return ScopeSettings(changed_config({}, command.config), parse_mode(command.mode, command.subject))


# --- writing ---------------------------------------------------------------------------------------------------------


def _add_versions(
    changes: ChangeSet, registry: SchemaRegistry, command: ImportSubject, missing: Sequence[_Missing]
) -> ResourceDraft:
    """Adds Versions in the order of their numbers. Their times differ, because the newest is the default one."""
    resource = subject_resource(changes, registry, command.xid, command.subject, command.context_ids)
    formats = ((one.version.schema.type, one.content.declared_format) for one in missing)
    format = set_common_format(changes, resource, *formats)
    live = registry.versions(command.subject).live
    if resource.entity is not None and resource.entity.attributes.get("format") != format:
        _note_own_change(changes, command.source, live)
    ancestors = {one.number: xids.entity_id(one.xid) for one in live}
    now = changes.context.now
    for place, one in enumerate(missing):
        version = one.version
        lower = max((number for number in ancestors if number < version.number), default=None)
        imported = {"source": command.source, "state": version.state, "modifiedat": timestamps.to_text(now)}
        facts = with_facts(one.extras, id=version.id, guid=version.guid, imported=imported)
        new = NewSchemaVersion(
            version.number,
            version.schema.type,
            one.content.text if one.content.text is not None else version.schema.text,
            facts,
            ancestors[lower] if lower is not None else None,
            timestamps.to_text(now - timedelta(microseconds=len(missing) - 1 - place)),
        )
        ancestors[version.number] = add_schema_version(changes, resource, command.subject, format, new).id
    return resource


def _is_to_delete(
    changes: ChangeSet, registry: SchemaRegistry, command: DeleteImportedVersions, version: SchemaVersion
) -> bool:
    """Whether the source has deleted a live version that a copy from it wrote, and nobody has changed it here since."""
    entity = changes.world.get(version.xid)
    imported = facts_of(entity.private).get(IMPORTED, {}) if entity is not None else {}
    if entity is None or imported.get("source") != command.source or not _is_unchanged(entity, imported):
        return False
    if imported["state"] == SOFT_DELETED:
        return True
    if command.live_numbers is None or version.number in command.live_numbers:
        return False
    own = (version.group, version.subject)
    others = [one for one in registry.referrers(version) if one.is_live and (one.group, one.subject) != own]
    return not others
