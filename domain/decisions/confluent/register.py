"""Registering a schema: the version of a subject that has it, which may be there already.

Rules CSR-403, CSR-416, CSR-418, CSR-502 to CSR-517, CSR-801, CSR-802.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

from annals.domain.confluent.checks import (
    SameTextCheck,
    SchemaComparison,
    SchemaContent,
    SchemaDocument,
    content_check,
    read_content,
    read_differences,
)
from annals.domain.confluent.commands import LATEST_OR_NEXT, RegisterSchema, SchemaRequest
from annals.domain.confluent.errors import (
    SchemaRegistryError,
    incompatible,
    invalid_schema,
    invalid_subject,
    not_permitted,
)
from annals.domain.confluent.facts import MAX_NUMBER, with_facts
from annals.domain.confluent.messages import closing_messages, difference_messages
from annals.domain.confluent.metadata_rules import (
    check_rule_set,
    version_in,
    with_version,
)
from annals.domain.confluent.schema_index import id_in_group
from annals.domain.confluent.schema_registry import SchemaRegistry
from annals.domain.confluent.schema_versions import NamedReference, SchemaVersion
from annals.domain.confluent.settings import (
    FORWARD,
    IMPORT,
    LEVEL,
    NONE_LEVEL,
    READONLY_MODES,
    effective_config,
    effective_mode,
)
from annals.domain.confluent.subject_versions import SubjectVersions
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.documents import digest
from annals.domain.decisions.checks.document_checks import TIMED_OUT, CheckResult, DocumentCheck
from annals.domain.decisions.confluent.delete import forget_versions
from annals.domain.decisions.confluent.lookup import Candidate, find_version, versions_to_look_up
from annals.domain.decisions.confluent.schema_ids import check_imported_id
from annals.domain.decisions.confluent.shared_subjects import check_not_shared
from annals.domain.decisions.confluent.subject_resource import (
    NewSchemaVersion,
    add_schema_version,
    set_common_format,
    subject_resource,
)
from annals.domain.decisions.confluent.world_entities import entity_finder, subject_xids
from annals.domain.values import xid as xids
from annals.domain.values.batched import batched

#: The number of versions with which a schema is compared before another request of checks.
_COMPARED_AT_ONCE: Final = 500


def register_schema(changes: ChangeSet, command: RegisterSchema) -> None:
    """Applies one RegisterSchema to a change; the rules complete it, and give the version its id.

    Raises: SchemaRegistryError; ChecksRequired; any Problem of a write.
    """
    check_rule_set(command.schema.rule_set)
    if not command.subject.is_registrable:
        raise invalid_subject(command.subject.qualified)
    registration = _Registration(changes, command)
    known = registration.known_version()
    if known is None:
        registration.check_mode()
        registration.check_schema()
        registration.check_compatibility()
        registration.check_id()
        registration.check_number()
        registration.write()
    else:
        changes.processed.append(known.xid)
        changes.number = known.number


class _Registration:
    def __init__(self, changes: ChangeSet, command: RegisterSchema) -> None:
        self._changes, self._command = changes, command
        self._group = xids.entity_id(command.xid)
        self._registry = SchemaRegistry(changes.world.schemas, entity_finder(changes.world), command.context_ids)
        changes.world.prefetch(subject_xids(changes.world, command))
        self._versions = self._registry.versions_in(self._group, command.subject.name)
        settings = cache(self._registry.settings)
        self._config = effective_config(command.subject, settings, command.default_level)
        self._mode = effective_mode(command.subject, settings)
        self._normalizes = bool(command.normalize or (self._config.get("normalize") and self._mode != IMPORT))
        self._schema = self._with_latest_text(command.schema)
        self._content = self._schema.text.encode()
        self._candidates: list[Candidate] = []

    def known_version(self) -> SchemaVersion | None:
        """The live version with this content: as it is given, else with what it inherits (CSR-502, CSR-505)."""
        if not self._schema.text:
            return None
        given, inheriting = self._candidate(self._schema), self._inheriting(self._schema)
        self._candidates = [given, given if inheriting == self._schema else self._candidate(inheriting)]
        if self._mode == IMPORT:
            return self._known_import(given)
        return next(filter(None, map(self._find, self._candidates)), None)

    def check_mode(self) -> None:
        subject = self._command.subject.qualified
        if self._mode in READONLY_MODES or self._registry.is_readonly(self._command.subject):
            raise not_permitted(f"Subject {subject} is in read-only mode")
        check_not_shared(self._registry, self._group, self._command.subject)
        if self._schema.id is not None and self._mode not in (IMPORT, FORWARD):
            raise not_permitted(f"Subject {subject} is not in import mode")
        if self._schema.id is None and self._mode in (IMPORT, FORWARD):
            raise not_permitted(f"Subject {subject} is in {self._mode.lower()} mode, which needs an id")

    def check_schema(self) -> None:
        """Checks that there is a text, and that references lead to live versions."""
        if not self._schema.text:
            raise invalid_schema("Empty schema")
        if self._mode != IMPORT:
            self._registry.references(self._group).numbered(
                self._schema.references, self._changes.context.caller.can_read, only_live=True
            )

    def check_compatibility(self) -> None:
        """Compares the schema with live versions, the latest first, up to the first incompatible one."""
        level = str(self._config[LEVEL])
        if self._command.force or level == NONE_LEVEL or self._mode == IMPORT:
            return
        new = self._candidates[-1]
        compared = compared_versions(self._versions, level, self._config, new.extras.get("metadata"))
        messages = incompatibility_messages(
            self._changes, self._registry, new.document, self._documents, compared, level, self._config
        )
        if messages:
            raise incompatible(self._command.subject.qualified, messages)

    def check_id(self) -> None:
        """Checks that a given id has no other content (CSR-407)."""
        if self._mode == FORWARD and self._schema.id is not None:  # an import is checked before
            self._check_id(self._schema.id, self._candidates[-1].content.identity.key)

    def check_number(self) -> None:
        """Checks that a given number is the next one (CSR-512)."""
        version = self._schema.version
        if self._mode == IMPORT or version in (None, LATEST_OR_NEXT):
            return
        next_number = self._next_number()
        if version != next_number:
            raise invalid_schema(f"Version {version} is not the next version, which is {next_number}")

    def write(self) -> None:
        """Adds the Version."""
        changes, command, candidate = self._changes, self._command, self._candidates[-1 if self._mode != IMPORT else 0]
        resource = subject_resource(changes, self._registry, command.xid, command.subject, command.context_ids)
        number = self._schema.version if self._mode == IMPORT and (self._schema.version or 0) > 0 else None
        number = number or self._next_number()
        new = NewSchemaVersion(
            number,
            self._schema.type,
            candidate.content.text if candidate.content.text is not None else self._schema.text,
            with_facts(
                self._numbered(candidate.extras, number),
                id=self._schema.id if self._mode in (IMPORT, FORWARD) else None,
            ),
            xids.entity_id(self._versions.latest.xid) if self._versions.latest is not None else None,
        )
        format = set_common_format(changes, resource, (self._schema.type, candidate.content.declared_format))
        add_schema_version(changes, resource, command.subject, format, new)
        replaced = [one for one in self._versions.with_number(number) if not one.is_live]
        forget_versions(changes, [*self._repeated_versions(candidate, new), *replaced])
        changes.number = new.number

    # --- contents ----------------------------------------------------------------------------------------------------

    @property
    def _documents(self) -> dict[str, bytes]:
        sha256 = digest(self._content)
        return {sha256: self._content} if sha256 is not None else {}

    def _repeated_versions(self, candidate: Candidate, new: NewSchemaVersion) -> list[SchemaVersion]:
        """The soft-deleted versions that a new one repeats: with its content and id, and not referred to (CSR-511)."""
        key = candidate.content.identity.key
        repeated = [one for one in self._versions.with_key(key) if not one.is_live and one.number < new.number]
        if not repeated or new.facts.get("metadata") != candidate.extras.get("metadata"):
            return []
        ids = self._changes.world.schema_ids.ids_of_keys({key})[key]
        new_id = new.facts.get("id") or id_in_group(ids, self._group)
        return [one for one in repeated if one.id == new_id and not self._registry.referrers(one)]

    def _numbered(self, extras: Mapping[str, Any], number: int) -> Mapping[str, Any]:
        """The extras with the property of CSR-512, where the request asks for a version or they have it already."""
        metadata = extras.get("metadata")
        if self._mode == IMPORT or (self._schema.version is None and version_in(metadata) is None):
            return extras
        return {**extras, "metadata": with_version(metadata, number)}

    def _find(self, candidate: Candidate) -> SchemaVersion | None:
        versions = versions_to_look_up(self._versions, candidate, self._schema.version)
        return find_version(candidate, versions, self._document, self._check_texts)

    def _document(self, version: SchemaVersion) -> SchemaDocument:
        references = self._registry.references(version.group).documents(version.references)
        return SchemaDocument(version.type, version.document, references)

    def _check_texts(self, checks: frozenset[SameTextCheck]) -> Mapping[SameTextCheck, CheckResult]:
        results = self._changes.world.check_results(frozenset[DocumentCheck](checks), self._documents)
        return {check: results[check] for check in checks}

    def _candidate(self, schema: SchemaRequest) -> Candidate:
        sha256 = digest(schema.text.encode())
        assert sha256 is not None, "the text is not empty"
        references = self._registry.references(self._group)
        can_read = self._changes.context.caller.can_read
        numbered = self._ordered(references.numbered(schema.references, can_read, only_live=False))
        document = SchemaDocument(schema.type, sha256, references.documents(numbered))
        extras = replace(schema, references=numbered).extras
        check = content_check(document, extras, normalizes=self._normalizes)
        result = self._changes.world.check_results(frozenset((check,)), self._documents)[check]
        content = checked_content(result, is_new=self._command.schema.is_new)
        return Candidate(document, extras, content, self._normalizes)

    def _ordered(self, references: Sequence[NamedReference]) -> tuple[NamedReference, ...]:
        if not self._normalizes:
            return tuple(references)
        return tuple(sorted(dict.fromkeys(references), key=lambda one: (one.subject, one.version)))

    def _with_latest_text(self, schema: SchemaRequest) -> SchemaRequest:
        """The request; without a text it is for that of the latest version (CSR-504)."""
        latest = self._versions.latest
        if schema.text or latest is None:
            return schema
        text = self._changes.world.document(latest.document).decode()
        return replace(schema, text=text, type=latest.type, references=tuple(latest.references))

    def _inheriting(self, schema: SchemaRequest) -> SchemaRequest:
        """The request with metadata and rules of the latest version, and with those that the config adds (CSR-505)."""
        if self._mode == IMPORT:
            return schema
        return schema.inheriting(latest_extras(self._versions), self._config)

    def _known_import(self, candidate: Candidate) -> SchemaVersion | None:
        """The version that an import repeats. Raises: SchemaRegistryError for an id or number of another content."""
        schema, key = self._schema, candidate.content.identity.key
        if schema.id is None:
            return next((version for version in reversed(self._versions.with_key(key)) if version.is_live), None)
        self._check_id(schema.id, key)
        number, versions = schema.version, self._versions
        found = versions.with_key(key) if number is None else versions.with_number(number)
        for version in (one for one in found if one.is_live):
            if version.key != key:
                raise not_permitted(f"Overwrite of version {version.number} with another schema is not permitted.")
            if version.id == schema.id:
                return version
        return None

    def _check_id(self, id: int, key: str) -> None:
        check_imported_id(self._changes, id)
        holders = [row for row in self._changes.world.schemas.by_id(id) if row.group == self._group]
        if any(row.key != key for row in holders):
            raise not_permitted(f"Overwrite new schema with id {id} is not permitted.")

    # --- writing -----------------------------------------------------------------------------------------------------

    def _next_number(self) -> int:
        number = 1 + self._versions.highest_number
        if number > MAX_NUMBER:
            raise SchemaRegistryError(50001, "Error in the backend data store: all version numbers are in use")
        return number


def checked_content(result: CheckResult, *, is_new: bool) -> SchemaContent:
    """The content that a ContentCheck has found. is_new: the schema comes from no registry that has stored it already.

    Raises: SchemaRegistryError for a text that is no schema, or that a new one may not have.
    """
    content = read_content(result)
    if content is None:
        raise refused_schema(result)
    if is_new and content.violation is not None:
        raise _invalid_text(content.violation)
    return content


def refused_schema(result: CheckResult) -> SchemaRegistryError:
    """The error for a text that is no schema."""
    if result == (TIMED_OUT,):
        return SchemaRegistryError(50002, f"The schema was not checked: {TIMED_OUT.text}")
    return _invalid_text("; ".join(one.text for one in result))


def _invalid_text(reason: str) -> SchemaRegistryError:
    return invalid_schema(f"Invalid schema: {reason}")


def latest_extras(versions: SubjectVersions) -> Mapping[str, Any]:
    """The extras of the latest live version; empty if there is none."""
    return versions.latest.extras if versions.latest is not None else {}


def compared_versions(
    versions: SubjectVersions, level: str, config: Mapping[str, Any], metadata: Mapping[str, Any] | None
) -> list[SchemaVersion]:
    """The versions that a new one is compared with, the latest first (CSR-801)."""
    group, is_transitive = config.get("compatibilityGroup"), level.endswith("_TRANSITIVE")
    if group is None and not is_transitive:
        return [versions.latest] if versions.latest is not None else []
    compared = versions.live[::-1]
    if group is not None:
        wanted = _property(metadata, group)
        compared = [version for version in compared if _property(version.extras.get("metadata"), group) == wanted]
    return compared if is_transitive else compared[:1]


def _property(metadata: Mapping[str, Any] | None, name: str) -> Any:
    return ((metadata or {}).get("properties") or {}).get(name)


def incompatibility_messages(
    changes: ChangeSet,
    registry: SchemaRegistry,
    new: SchemaDocument,
    documents: Mapping[str, bytes],
    compared: Sequence[SchemaVersion],
    level: str,
    config: Mapping[str, Any],
) -> list[str]:
    """Why a schema is incompatible with the first of some versions with which it is; empty if it is with none."""
    is_lenient = config.get("compatibilityPolicy") == "LENIENT"

    def comparisons_with(version: SchemaVersion) -> dict[bool, SchemaComparison]:
        references = registry.references(version.group).documents(version.references)
        old = SchemaDocument(version.type, version.document, references)
        return comparisons_of(new, old, level, is_lenient=is_lenient)

    # Most incompatible schemas are so with the latest version. Of the others many are asked for at once, because a
    # decision is made again for each request of checks, and only a few times.
    for versions in (compared[:1], *batched(compared[1:], _COMPARED_AT_ONCE)):
        compared_pairs = [(version, comparisons_with(version)) for version in versions]
        checks = frozenset(check for _, comparisons in compared_pairs for check in comparisons.values())
        results = changes.world.check_results(checks, documents) if checks else {}
        for version, comparisons in compared_pairs:
            if messages := messages_of(comparisons, results):
                old_text = changes.world.document(version.document).decode("utf-8", "replace")
                return [*messages, *closing_messages(version.number, old_text, level)]
    return []


def comparisons_of(
    new: SchemaDocument, old: SchemaDocument, level: str, *, is_lenient: bool
) -> dict[bool, SchemaComparison]:
    """The comparisons that a level asks for; True is the one in which the new schema reads (CSR-802)."""
    backward, forward = SchemaComparison(new, old, is_lenient), SchemaComparison(old, new, is_lenient)
    directions = {True: backward, False: forward}
    if level.startswith("FULL"):
        return directions
    return {True: backward} if level.startswith("BACKWARD") else {False: forward} if level != NONE_LEVEL else {}


def messages_of(comparisons: Mapping[bool, SchemaComparison], results: Mapping[Any, CheckResult]) -> list[str]:
    """The messages about the results of comparisons. Raises: SchemaRegistryError if one was not made in time."""
    messages: list[str] = []
    for is_backward, comparison in comparisons.items():
        result = results[comparison]
        if result == (TIMED_OUT,):
            raise SchemaRegistryError(50002, f"The schemas were not compared: {TIMED_OUT.text}")
        messages += difference_messages(read_differences(result), is_backward=is_backward)
    return messages
