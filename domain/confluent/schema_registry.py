"""The registry as Confluent's API sees it: contexts, subjects, their Resources and settings.

Decisions use it inside the write lock, answers on a view of the read model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from annals.domain.confluent.facts import facts_of, subject_name
from annals.domain.confluent.references import References
from annals.domain.confluent.schema_index import SchemaIndex
from annals.domain.confluent.schema_versions import SchemaVersion
from annals.domain.confluent.settings import (
    NO_SETTINGS,
    ScopeSettings,
    is_of_registry,
    settings_of_facts,
    settings_of_resource,
)
from annals.domain.confluent.subject_versions import SubjectVersions
from annals.domain.confluent.subjects import (
    DEFAULT_CONTEXT,
    GLOBAL_CONTEXT,
    GROUPS,
    RESOURCES,
    ContextIds,
    EntityMembers,
    FindEntity,
    Subject,
    candidate_ids,
    group_xid,
    id_for,
    parse_subject,
    resource_xid,
)
from annals.domain.values import xid as xids

#: Subjects whose versions stay in memory; an import has many.
_KEPT_SUBJECTS: Final = 16


class SchemaRegistry:
    """One moment of the registry. find: finds its entities. find_target: finds those to which an xref leads; None if
    that is the same, because whoever reads sees all.

    It asks for the versions of a subject once: name, settings and mode of a subject depend on them as well.
    """

    def __init__(
        self, index: SchemaIndex, find: FindEntity, context_ids: ContextIds, find_target: FindEntity | None = None
    ) -> None:
        self.index = index
        self._find = find
        self._find_target = find_target or find
        self._context_ids = context_ids
        self._prefetched: dict[tuple[str, str], SubjectVersions] = {}
        self._read_versions = lru_cache(_KEPT_SUBJECTS)(self._read_stored_versions)

    def prefetch(self, subjects: Iterable[Subject]) -> None:
        """Reads all versions of some subjects in one query."""
        groups = ((self.group(subject.context), subject.name) for subject in subjects)
        found = self.index.versions_of({(group, name) for group, name in groups if group is not None})
        self._prefetched |= {subject: SubjectVersions(versions) for subject, versions in found.items()}

    def group(self, context: str) -> str | None:
        """The id of a context's Group; None if it does not exist."""
        found = self._context_ids.group_of(context, self._find)
        return found[0] if found is not None and found[1] else None

    def _group_or_former(self, context: str) -> str | None:
        """The id of a context's Group, also of a deleted one, whose versions schemas may still refer to (CSR-607)."""
        found = self._context_ids.group_of(context, self._find_target)
        return found[0] if found is not None else None

    def context(self, group: str) -> str:
        """The context for which an existing Group stands."""
        return self._context_of(self._find(group_xid(group)), group)

    def _context_of(self, entity: EntityMembers | None, group: str) -> str:
        return self._context_ids.context_of(group, facts_of(entity.private).get("context") if entity else None)

    def subject(self, version: SchemaVersion) -> Subject:
        """The subject of a version."""
        return Subject(self.context(version.group), version.subject)

    def versions(self, subject: Subject) -> SubjectVersions:
        """The live and soft-deleted versions of a subject."""
        group = self.group(subject.context)
        return self.versions_in(group, subject.name) if group is not None else SubjectVersions(())

    def versions_in(self, group: str, name: str) -> SubjectVersions:
        """The live and soft-deleted versions of a subject in a Group.

        A subject whose Resource has an xref shows those of its target. An xref without a target shows nothing, and so
        does one whose target has an xref as well (CSR-909).
        """
        versions = self._stored_versions(group, name)
        if versions.latest is not None:
            return versions
        xid = self.resource(group, name)
        target = self.xref(xid) if xid is not None else None
        if xid is None or target is None:
            return versions
        return SubjectVersions(self._versions_through(xid, name, target))

    def _stored_versions(self, group: str, name: str) -> SubjectVersions:
        prefetched = self._prefetched.get((group, name))
        return prefetched if prefetched is not None else self._read_versions(group, name)

    def _read_stored_versions(self, group: str, name: str) -> SubjectVersions:
        return self.index.subject_versions([(group, name)])[group, name]

    def xref(self, resource: str) -> str | None:
        """The xid of the Resource that a Resource shows in its place; None if it shows itself, or does not exist."""
        entity = self._find(resource)
        xref: str | None = entity.attributes["meta"].get("xref") if entity is not None else None
        return xref

    def _versions_through(self, resource: str, name: str, target: str) -> list[SchemaVersion]:
        """The versions of a target as those of the Resource that refers to it."""
        entity, (groups, group, resources, _) = self._find_target(target), xids.segments(target)
        if entity is None or "xref" in entity.attributes["meta"] or (groups, resources) != (GROUPS, RESOURCES):
            return []
        context = self._context_of(self._find_target(group_xid(group)), group)
        is_hidden = self._find(target) is None  # what it has had is hidden as well
        is_elsewhere = xids.segments(resource)[1] != group
        return [
            version._replace(
                xid=resource + version.xid.removeprefix(target),
                subject=name,
                extras=_qualified_references(version.extras, context) if is_elsewhere else version.extras,
            )
            for version in self._stored_versions(group, subject_name(target, facts_of(entity.private))).all
            if version.resource == target and (version.is_live or not is_hidden)
        ]

    def resource(self, group: str, name: str) -> str | None:
        """The xid of a subject's live Resource; None if it has none."""
        seen: set[str] = set()
        for xid in self._possible_resources(group, name):
            if xid in seen:
                continue
            seen.add(xid)
            entity = self._find(xid)
            if entity is not None and entity.is_exact and subject_name(xid, facts_of(entity.private)) == name:
                return xid
        return None

    def _possible_resources(self, group: str, name: str) -> Iterator[str]:
        """The xids that a subject's Resource may have, likeliest first."""
        stored = self._stored_versions(group, name)
        if stored.oldest is not None:  # another API can give the name to a second Resource
            yield stored.oldest.resource
        yield from (version.resource for version in stored.newest)
        yield from (resource_xid(group, id) for id in candidate_ids(name))
        yield from (version.resource for version in stored.all)

    def new_resource(self, group: str, name: str) -> str | None:
        """The xid for a subject without a Resource; None if every id for it stands for another one (CSR-308)."""

        def is_free(id: str) -> bool:
            xid = resource_xid(group, id)
            return self._find(xid) is None and all(other == name for other in self.index.names_at(xid))

        id = id_for(name, is_free)
        return resource_xid(group, id) if id is not None else None

    def references(self, group: str) -> References:
        """Follows references of schemas in a Group."""
        return References(self.versions_in, group, self._group_or_former)

    def referrers(self, version: SchemaVersion) -> list[SchemaVersion]:
        """The live and soft-deleted versions that refer to a version."""
        qualified = f":{self.context(version.group)}:{version.subject}"
        return list(self.index.referrers(version.group, version.subject, version.number, qualified))

    def settings(self, scope: Subject) -> ScopeSettings:
        """What is set for a subject, a context or all contexts."""
        if is_of_registry(scope):
            registry = self._find(xids.REGISTRY)
            contexts = facts_of(registry.private).get("contexts", {}) if registry is not None else {}
            return settings_of_facts(contexts.get(scope.context, {}))
        group = self.group(scope.context) if scope.context != GLOBAL_CONTEXT else None
        group_members = self._find(group_xid(group)) if group is not None else None
        if group is None or group_members is None:
            return NO_SETTINGS
        facts = facts_of(group_members.private)
        if scope.is_context:
            return settings_of_facts(facts)
        xid = self.resource(group, scope.name)
        resource = self._find(xid) if xid is not None else None
        if resource is None:
            return settings_of_facts(facts.get("subjects", {}).get(scope.name, {}))
        compatibility = resource.attributes["meta"].get("compatibility")
        return settings_of_resource(facts_of(resource.private), compatibility)

    def is_readonly(self, subject: Subject) -> bool:
        """Whether the Resource of a subject is read-only in the registry (CSR-711)."""
        group = self.group(subject.context)
        xid = self.resource(group, subject.name) if group is not None and subject.name else None
        resource = self._find(xid) if xid is not None else None
        return resource is not None and bool(resource.attributes["meta"].get("readonly"))

    def with_alias(self, subject: Subject) -> Subject:
        """The subject for which a name stands, one step (CSR-312)."""
        alias = self.settings(subject).config.get("alias") if subject.name else None
        if not alias:
            return subject
        return parse_subject(alias, subject.context or DEFAULT_CONTEXT)


def _qualified_references(extras: Mapping[str, Any], context: str) -> Mapping[str, Any]:
    """The extras of a version with the context in each reference, for use in another context."""
    if "references" not in extras:
        return extras
    references = [
        one if one["subject"].startswith(":.") else {**one, "subject": f":{context}:{one['subject']}"}
        for one in extras["references"]
    ]
    return {**extras, "references": references}
