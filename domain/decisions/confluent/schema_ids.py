"""Ids and numbers of schemas, assigned in the interaction that writes them, whichever API it is of.

Rules CSR-402, CSR-404 to CSR-409, CSR-412, CSR-608.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from annals.domain.confluent.checks import ContentCheck, SchemaContent, SchemaDocument, content_check, read_content
from annals.domain.confluent.content import ContentIdentity
from annals.domain.confluent.errors import SchemaRegistryError, not_permitted
from annals.domain.confluent.facts import (
    CONTENT_MEMBERS,
    facts_of,
    number_of,
    parse_number,
    subject_name,
    type_of_schema,
    with_facts,
)
from annals.domain.confluent.schema_index import ANY_GROUP, id_in_group
from annals.domain.confluent.schema_registry import SchemaRegistry
from annals.domain.confluent.schema_versions import MAX_ID, NamedReference
from annals.domain.confluent.subject_versions import SubjectVersions
from annals.domain.confluent.subjects import GROUPS, RESOURCES, VERSIONS_TYPE
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import ResourceDraft, VersionDraft
from annals.domain.decisions.checks.document_checks import DocumentCheck
from annals.domain.decisions.confluent.world_entities import entity_finder
from annals.domain.values import xid as xids


def content_checks(changes: ChangeSet) -> frozenset[DocumentCheck]:
    """The checks that `assign_schema_ids` needs."""
    return frozenset(check for _, _, check in _changed_schemas(changes))


def assign_schema_ids(changes: ChangeSet) -> None:
    """Gives each schema that a change adds or changes its id, and each new Version of a subject its number.

    Raises: ChecksRequired.
    """
    schemas = list(_changed_schemas(changes))
    if not schemas:
        return
    results = changes.world.check_results(frozenset(check for _, _, check in schemas), changes.documents)
    contents = [read_content(results[check]) for _, _, check in schemas]
    ids = _NewIds(changes, {content.identity.key for content in contents if content is not None})
    numbers = _NewNumbers(changes)
    for (resource, version, _), content in zip(schemas, contents, strict=True):
        if content is None:
            version.confluent = with_facts(version.confluent, id=None, key=None, guid=None)
            continue
        ids.assign(resource, version, content)
        numbers.assign(resource, version)
    numbers.record()


#: The highest id that a writer of some Groups may import: with a higher one it could use up the ids of all others.
MAX_IMPORTED_ID: Final = 2**30


def check_imported_id(changes: ChangeSet, id: int) -> None:
    """Checks that a caller may import a schema with an id (CSR-409). Raises: SchemaRegistryError."""
    if id > MAX_IMPORTED_ID and not changes.context.caller.administers(xids.REGISTRY):
        raise not_permitted(f"Only an administrator of the whole registry may import ids above {MAX_IMPORTED_ID}.")


def load_schemas_without_ids(changes: ChangeSet) -> None:
    """Loads the Resources with Versions that may be schemas and have no id, so that these get theirs (CSR-911).

    Those that a link copies with the log of another registry get the ids that they have there.
    """
    group = changes.model.groups.get(GROUPS)
    if group is None or RESOURCES not in group.resources:
        return
    changes.assigns_missing_ids = True
    copied = [link.scope for link in changes.world.links if link.follows_log and not link.is_promoted]
    missing = {
        xids.resource_of(entity.xid)
        for entity in changes.world.entities_of_type(VERSIONS_TYPE)
        if "id" not in facts_of(entity.private) and not any(scope.has(entity.xid) for scope in copied)
    }
    for xid in sorted(missing):
        changes.load_versions(changes.resource(xid))


def _changed_schemas(changes: ChangeSet) -> Iterator[tuple[ResourceDraft, VersionDraft, ContentCheck]]:
    """The Versions whose content may be a new one, with the checks that tell."""
    for resource in changes.resources.values():
        segments = xids.segments(resource.xid)
        if (segments[0], segments[2]) != (GROUPS, RESOURCES) or resource.is_deleted or resource.xref is not None:
            continue
        for version in resource.live_versions():
            is_missing = changes.assigns_missing_ids and "id" not in version.confluent
            check = _content_check(changes, version) if is_missing or _has_changed(version) else None
            if check is not None:
                yield resource, version, check


def _has_changed(version: VersionDraft) -> bool:
    stored = version.entity
    if stored is None or version.document != stored.document:
        return True
    return stored.attributes.get("format") != version.attributes.get("format") or any(
        version.confluent.get(name) != facts_of(stored.private).get(name) for name in CONTENT_MEMBERS
    )


def _content_check(changes: ChangeSet, version: VersionDraft) -> ContentCheck | None:
    type = type_of_schema(str(version.attributes.get("format", "")), version.confluent)
    if type is None or version.document is None:
        return None
    extras: dict[str, Any] = {name: version.confluent[name] for name in CONTENT_MEMBERS if name in version.confluent}
    return content_check(SchemaDocument(type, version.document, _referenced(changes, version)), extras)


def _referenced(changes: ChangeSet, version: VersionDraft) -> tuple[tuple[str, str], ...]:
    references = [NamedReference(**members) for members in version.confluent.get("references", ())]
    if not references:
        return ()
    group = xids.segments(version.xid)[1]
    try:
        registry = SchemaRegistry(changes.world.schemas, entity_finder(changes.world), changes.context.context_ids)
        return registry.references(group).documents(references)
    except SchemaRegistryError:
        return ()  # what it referred to is gone, so the text is no schema by itself any more


class _NewIds:
    """The ids of contents: those that they ever had, else the next ones (CSR-408, CSR-409)."""

    def __init__(self, changes: ChangeSet, keys: Collection[str]) -> None:
        """keys: of all contents that will be asked for."""
        self._schemas = changes.world.schemas
        self._known = changes.world.schema_ids.ids_of_keys(keys)
        self._highest_known = changes.world.schema_ids.highest_id
        self._assigned: dict[str, int] = {}
        self._highest: int | None = None

    def assign(self, resource: ResourceDraft, version: VersionDraft, content: SchemaContent) -> None:
        identity, facts = content.identity, version.confluent
        keeps_id = "id" in facts and facts.get("key") in (None, identity.key)
        id = facts["id"] if keeps_id else self._id_of(identity, xids.segments(resource.xid)[1])
        guid = facts["guid"] if keeps_id and "guid" in facts else identity.guid
        self._assigned.setdefault(identity.key, id)
        version.confluent = with_facts(facts, id=id, key=identity.key, guid=guid)

    def _id_of(self, identity: ContentIdentity, group: str) -> int:
        if identity.key in self._assigned:
            return self._assigned[identity.key]
        known_ids = self._known.get(identity.key, ())
        known_id = id_in_group(known_ids, group)
        is_certain = any(known_group in (group, ANY_GROUP) for known_group, _ in known_ids)
        if known_id is not None and (is_certain or not self._is_of_other_content(known_id, identity.key, group)):
            return known_id
        if self._highest is None:
            self._highest = self._highest_known()
        self._highest += 1
        if self._highest > MAX_ID:
            raise SchemaRegistryError(50001, "Error in the backend data store: all schema ids are in use")
        return self._highest

    def _is_of_other_content(self, id: int, key: str, group: str) -> bool:
        """Whether an id that a content has elsewhere names another one in a Group, into which it was imported."""
        return any(row.group == group and row.key != key for row in self._schemas.by_id(id))


@dataclass
class _NewNumbers:
    """The numbers of new Versions (CSR-404)."""

    changes: ChangeSet
    highest: dict[str, int] = field(default_factory=dict)

    def assign(self, resource: ResourceDraft, version: VersionDraft) -> None:
        if version.entity is not None and "id" in facts_of(version.entity.private):
            return  # a version keeps its number
        own_number = parse_number(version.id)
        highest = self._highest_of(resource)
        number: int = version.confluent.get("number") or 0
        if not number or self._is_live(resource, version, number):
            is_free = own_number and (own_number > highest or not self._is_taken(resource, version, own_number))
            number = own_number if is_free else highest + 1
        subject = subject_name(resource.xid, resource.confluent)
        has_own_name = subject == subject_name(resource.xid, {})
        version.confluent = with_facts(
            version.confluent,
            number=None if number == own_number else number,
            subject=None if has_own_name else subject,
        )
        self.highest[resource.xid] = max(highest, number)

    def record(self) -> None:
        """Records the highest numbers, so that later Versions get theirs without a look-up."""
        for xid, number in self.highest.items():
            resource = self.changes.resources[xids.stream(xid)]
            resource.confluent = with_facts(resource.confluent, highest=number)

    def _highest_of(self, resource: ResourceDraft) -> int:
        if resource.xid not in self.highest:
            recorded: int | None = resource.confluent.get("highest")
            if recorded is None:
                is_first = resource.is_new and not self.changes.world.revision(resource.xid)
                recorded = 0 if is_first else self._stored(resource).highest_number
            self.highest[resource.xid] = recorded
        return self.highest[resource.xid]

    def _is_live(self, resource: ResourceDraft, version: VersionDraft, number: int) -> bool:
        """Whether another live version has a number, which a restored one had before."""
        return any(one.is_live and one.xid != version.xid for one in self._stored(resource).with_number(number))

    def _is_taken(self, resource: ResourceDraft, version: VersionDraft, number: int) -> bool:
        """Whether a stored version has a number, or another one that this change has added."""
        others = (one for one in resource.live_versions() if one is not version and "id" in one.confluent)
        is_added = any(number_of(one.id, one.confluent) == number for one in others)
        return is_added or bool(self._stored(resource).with_number(number))

    def _stored(self, resource: ResourceDraft) -> SubjectVersions:
        path = xids.segments(resource.xid)[1], subject_name(resource.xid, resource.confluent)
        return self.changes.world.schemas.subject_versions([path])[path]
