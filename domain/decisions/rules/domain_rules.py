"""Rules beyond the model, for the entities that a command wrote and for the messages that these affect.

Rules V-01 to V-13, V-16: see `annals.domain.messaging.findings`. All checks of inline schemas are requested in one
call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from annals.domain.access.roles import CanRead, can_read_everything
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.documents import digest
from annals.domain.decisions.changes.drafts import GroupDraft, ResourceDraft, VersionDraft
from annals.domain.decisions.checks.document_checks import FormatCheck
from annals.domain.errors.problems import InvalidAttribute, Problem, RequiredAttributeMissing
from annals.domain.messaging.findings import (
    L2,
    MESSAGES,
    BaseChains,
    Finding,
    SchemaCheck,
    ValidatedEntity,
    change_findings,
    entity_findings,
    inline_schema,
    kinds_by_type,
    membership_findings,
    referenced_xids,
)
from annals.domain.messaging.findings.agreement import BINDING
from annals.domain.messaging.findings.types_with_rules import GROUP_TYPES
from annals.domain.registry.entities import Attributes
from annals.domain.values import xid as xids

#: The maximum number of findings in an error.
MAX_LISTED: Final = 1000
_OFF: Final = "off"
_STRICT: Final = "strict"
#: The only rule that requires the presence of an attribute (EP-03).
_MISSING_RULE: Final = "EP-03"


def check_domain_rules(changes: ChangeSet) -> int:
    """The number of findings in what a command wrote.

    If it wrote nothing that has rules, this costs one look at each entity.

    Raises: InvalidAttribute, RequiredAttributeMissing for a finding of level L2 under `strict`; ChecksRequired if
    checks of inline schemas are needed first.
    """
    if changes.context.domainvalidation == _OFF:
        return 0
    entity_checks = list(_entity_checks(changes))
    if not entity_checks:
        return 0
    changes.world.prefetch({xid for entity_check in entity_checks for xid in referenced_xids(entity_check.attributes)})
    all_entities, readable_entities = (
        ChangedEntities(changes),
        ChangedEntities(changes, changes.context.caller.can_read),
    )
    check, chains = _schema_check(changes, entity_checks), BaseChains()
    findings = [
        finding
        for entity_check in entity_checks
        for finding in entity_check.findings(
            ValidatedEntity(
                entity_check.xid,
                entity_check.attributes,
                readable_entities if entity_check.kind else all_entities,
                check,
                chains,
            )
        )
    ]
    if changes.context.domainvalidation == _STRICT:
        _refuse_errors(findings)
    return len(findings)


@dataclass(frozen=True, slots=True)
class _EntityCheck:
    """An entity to check. kind: None if only its membership is checked. before: its previous attributes, if any.

    reported_xid: the xid that findings name if the caller may not see the entity's own.
    """

    xid: str
    attributes: Mapping[str, Any]
    kind: str | None
    before: Mapping[str, Any] | None = None
    reported_xid: str | None = None

    def findings(self, subject: ValidatedEntity) -> Iterator[Finding]:
        if self.kind is None:
            for finding in membership_findings(subject):
                yield replace(finding, xid=self.reported_xid or self.xid)
            return
        yield from entity_findings(self.kind, subject)
        if self.before is not None and self.kind == MESSAGES:
            yield from change_findings(self.before, subject)


class ChangedEntities:
    """Entities as they will be after a change: an `EntityLookup`.

    can_read: whether the caller may see an entity. An entity that the caller may not see is reported as missing, so
    that its existence stays hidden.
    """

    def __init__(self, changes: ChangeSet, can_read: CanRead = can_read_everything) -> None:
        self._changes = changes
        self._can_read = can_read
        self._collections: dict[str, set[str]] | None = None
        self._members: dict[str, Collection[str]] = {}

    def get(self, xid: str) -> Mapping[str, Any] | None:
        """See EntityLookup."""
        if not self._can_read(xid):
            return None
        segments = xids.segments(xid)
        if len(segments) == 2:
            return self._group_attributes(xid)
        pointer = self._xref_target(xids.join(*segments[:4]))
        if pointer is None:
            return self._own_attributes(segments)
        target_attributes = (
            self._own_attributes((*xids.segments(pointer), *segments[4:]))
            if self._xref_target(pointer) is None
            else None
        )
        return (
            {**target_attributes, "meta": {"xref": pointer}}
            if target_attributes is not None and len(segments) == 4
            else target_attributes
        )

    def members(self, collection: str) -> Collection[str]:
        """See EntityLookup. Cost: O(members) on the first call."""
        if not self._can_read(collection):
            return ()
        if collection not in self._members:
            stored_xids = {entity.xid for entity in self._changes.world.members(collection)}
            member_xids = sorted(stored_xids | self._changed_members(collection), key=xids.tree_key)
            self._members[collection] = [xid for xid in member_xids if self._is_live(xid)]
        return self._members[collection]

    def _changed_members(self, collection: str) -> set[str]:
        """The members of a collection that are part of the change."""
        if self._collections is None:
            self._collections = {}
            for draft in self._changes.resources.values():
                self._collections.setdefault(draft.xid.rpartition("/")[0], set()).add(draft.xid)
        return self._collections.get(collection, set())

    def _is_live(self, xid: str) -> bool:
        draft = self._changes.resources.get(xids.stream(xid))
        return not (draft.is_deleted if draft is not None else self._changes.is_deleted(xid))

    def _group_attributes(self, xid: str) -> Attributes | None:
        draft = self._changes.groups.get(xids.stream(xid))
        if draft is not None:
            return draft.attributes if draft.xid == xid and not draft.is_deleted else None
        entity = self._changes.find(xid)
        return entity.attributes if entity is not None else None

    def _xref_target(self, xid: str) -> str | None:
        """The target of a Resource's xref."""
        draft = self._changes.resources.get(xids.stream(xid))
        if draft is not None:
            return draft.xref
        entity = self._changes.find(xid)
        xref: str | None = entity.attributes.get("meta", {}).get("xref") if entity is not None else None
        return xref

    def _own_attributes(self, segments: tuple[str, ...]) -> Attributes | None:
        """The attributes of a Resource or a Version, without following an xref."""
        xid, resource = xids.join(*segments), xids.join(*segments[:4])
        draft = self._changes.resources.get(xids.stream(resource))
        if draft is None and self._changes.is_deleted(resource):
            return None
        if draft is not None:
            if draft.is_deleted or draft.xid != resource:
                return None
            id = segments[5] if len(segments) == 6 else str(_default_versionid(draft))
            version = draft.versions.get(id.lower())
            if version is not None:
                return version.attributes if version.deletion_reason is None and version.id == id else None
        entity = self._changes.find(xid)
        return entity.attributes if entity is not None else None


def _entity_checks(changes: ChangeSet) -> Iterator[_EntityCheck]:
    """The written entities that have rules, and the messages whose Group changed or whose xref shows a written one."""
    groups = [group for group in changes.groups.values() if group.is_written and xids.type_of(group.xid) in GROUP_TYPES]
    resources = [resource for resource in changes.resources.values() if resource.type.plural == MESSAGES]
    if not groups and not resources:
        return
    kinds_of_type, lookup = kinds_by_type(changes.model), ChangedEntities(changes)
    checked_xids: set[str] = set()
    for resource in resources:
        if not resource.is_deleted and xids.type_of(resource.xid) in kinds_of_type:
            for entity_check in _checks_of_resource(changes, resource, lookup):
                checked_xids.add(entity_check.xid)
                yield entity_check
    for group in groups:
        if not group.is_deleted and (kind := kinds_of_type.get(xids.type_of(group.xid))):
            yield _EntityCheck(group.xid, group.attributes, kind)
            if _has_changed_binding(group):
                yield from _membership_checks(set(lookup.members(f"{group.xid}/{MESSAGES}")) - checked_xids, lookup)


def _checks_of_resource(changes: ChangeSet, resource: ResourceDraft, lookup: ChangedEntities) -> Iterator[_EntityCheck]:
    if resource.xref is not None:
        attributes = lookup.get(resource.xid) if resource.meta.is_written else None
        if attributes is not None:
            yield _EntityCheck(resource.xid, attributes, MESSAGES)
        return
    default, written_versions = _default_versionid(resource), list[VersionDraft]()
    for version in resource.live_versions():
        if version.is_written or (version.id == default and resource.default_before != default):
            written_versions.append(version)
            xid = resource.xid if version.id == default else version.xid
            yield _EntityCheck(xid, version.attributes, MESSAGES, version.before)
    if written_versions and not resource.is_new:
        for entity_check in _membership_checks(changes.world.xref_sources(resource.xid), lookup):
            yield (
                entity_check
                if changes.context.caller.can_read(entity_check.xid)
                else replace(entity_check, reported_xid=resource.xid)
            )


def _membership_checks(messages: Iterable[str], lookup: ChangedEntities) -> Iterator[_EntityCheck]:
    """Messages that were not written, but may no longer agree with their Groups."""
    for xid in sorted(messages, key=xids.tree_key):
        attributes = lookup.get(xid)
        if attributes is not None:
            yield _EntityCheck(xid, attributes, None)


def _has_changed_binding(group: GroupDraft) -> bool:
    previous = group.before
    return previous is not None and any(previous.get(name) != group.attributes.get(name) for name in BINDING)


def _default_versionid(resource: ResourceDraft) -> str | None:
    versionid: str | None = resource.meta.attributes.get("defaultversionid")
    return versionid


def _schema_check(changes: ChangeSet, entity_checks: Iterable[_EntityCheck]) -> SchemaCheck:
    """The function that checks inline schemas. Raises: ChecksRequired."""
    inline_schemas = [
        inline_schema(entity_check.attributes) for entity_check in entity_checks if entity_check.kind == MESSAGES
    ]
    contents = {
        _schema_format_check(name, content): content
        for name, content in filter(None, inline_schemas)
        if content is not None
    }
    documents = {
        document_check.sha256: content
        for document_check, content in contents.items()
        if document_check.sha256 is not None
    }
    results = changes.world.check_results(frozenset(contents), documents) if contents else {}

    def check(name: str, document: bytes) -> str | None:
        result = results.get(_schema_format_check(name, document))
        return result[0].text if result else None

    return check


def _schema_format_check(name: str, document: bytes) -> FormatCheck:
    return FormatCheck(name.lower(), digest(document))


def _refuse_errors(findings: list[Finding]) -> None:
    """Raises: InvalidAttribute, RequiredAttributeMissing if there is a finding of level L2."""
    first_error = next((finding for finding in findings if finding.level == L2), None)
    if first_error is not None:
        raise _findings_problem(first_error, findings)


def _findings_problem(first_error: Finding, findings: list[Finding]) -> Problem:
    name = first_error.path[1:].partition("/")[0]
    detail = f"{first_error.rule} at {first_error.path}: {first_error.text}"
    listed: dict[str, object] = {"findings": [asdict(finding) for finding in findings[:MAX_LISTED]]}
    if first_error.rule == _MISSING_RULE:
        return RequiredAttributeMissing(first_error.xid, list=name, detail=detail, extensions=listed)
    return InvalidAttribute(first_error.xid, name=name, error_detail=first_error.text, detail=detail, extensions=listed)
