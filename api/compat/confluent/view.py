"""One moment of the registry as an answer of Confluent's API needs it: what the caller may read, as objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import Any, Final

from annals.commands.documents.document_checker import DocumentChecker
from annals.domain.access.roles import CONSOLE, Caller
from annals.domain.confluent.checks import (
    FormattedText,
    SameTextCheck,
    SchemaDocument,
    content_check,
    read_text,
)
from annals.domain.confluent.commands import SchemaRequest
from annals.domain.confluent.facts import CONTENT_MEMBERS, Facts, facts_of, subject_name
from annals.domain.confluent.schema_registry import SchemaRegistry
from annals.domain.confluent.schema_types import AVRO, PROTOBUF, common_format
from annals.domain.confluent.schema_versions import SchemaVersion
from annals.domain.confluent.settings import IMPORT, effective_config, effective_mode, is_of_registry
from annals.domain.confluent.subject_versions import SubjectVersions
from annals.domain.confluent.subjects import (
    DEFAULT_CONTEXT,
    GROUPS,
    RESOURCES,
    ContextIds,
    EntityMembers,
    Subject,
    candidate_xids,
    group_xid,
    sort_key,
)
from annals.domain.decisions.changes.documents import digest
from annals.domain.decisions.checks.document_checks import CheckResult, CheckResults, DocumentCheck, FormatCheck
from annals.domain.decisions.confluent.lookup import Candidate, find_version, versions_to_look_up
from annals.domain.decisions.confluent.register import checked_content, latest_extras, refused_schema
from annals.domain.decisions.replication.copy_rights import link_of_copy
from annals.domain.replication.link import Link
from annals.domain.values import xid as xids
from annals.domain.values.batched import batched
from annals.domain.values.json_text import loads_trusted
from annals.projections.entities.filters.selection import BATCH_MEMBERS
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.view import View

#: Entities that a view keeps in memory.
_KEPT_ENTITIES: Final = 1000
#: JSON between two runs of whitespace that are in no string.
_WITHOUT_SPACE: Final = re.compile(r'(?:[^\s"]++|"(?:[^"\\]++|\\.)*+"|")++')


@dataclass(frozen=True)
class ConfluentView:
    """See the module. read_model: as the caller sees it. default_level: the compatibility level where none is set."""

    read_model: View
    caller: Caller
    context_ids: ContextIds
    checker: DocumentChecker
    default_level: str

    @cached_property
    def registry(self) -> SchemaRegistry:
        find_target = None
        if not self.caller.sees_everything:  # reading an xref needs no right to its target (ACC-81)
            find_target = _KnownEntities(self.read_model.seen_by(CONSOLE))
        return SchemaRegistry(self.read_model.schemas, self._find, self.context_ids, find_target)

    # --- contexts and subjects ---------------------------------------------------------------------------------------

    @cached_property
    def groups(self) -> dict[str, str]:
        """The readable Groups by context, the default one first, then by name."""
        found = {
            self.context_ids.context_of(row.id, facts_of(loads_trusted(row.private)).get("context")): row.id
            for row in self.read_model.subtree(f"/{GROUPS}", [GROUPS])
        }
        return {context: found[context] for context in sorted(found, key=lambda one: (one != DEFAULT_CONTEXT, one))}

    def expect(self, subject: Subject) -> None:
        """Has the first look-up read what look-ups about a subject ask for one by one."""
        if subject.is_registrable:
            self._find.expect(lambda: [xids.REGISTRY, *candidate_xids(subject, self.context_ids)])

    def prefetch_all(self, subjects: Iterable[Subject]) -> None:
        """Reads in a few queries what look-ups about some subjects ask for, their versions included."""
        for batch in batched((one for one in subjects if one.is_registrable), BATCH_MEMBERS):
            xid_lists = (candidate_xids(subject, self.context_ids) for subject in batch)
            self._find.prefetch([*dict.fromkeys(chain([xids.REGISTRY], *xid_lists))])
            self.registry.prefetch(batch)

    def is_readonly(self, scope: Subject) -> bool:
        """Whether a subject, a context or all contexts refuse writes, as read-only or as a copy (CSR-711)."""
        if self.registry.is_readonly(scope):
            return True
        xid = self._scope_xid(scope) if self._links else None
        if xid is None:
            return False
        # Over other dialects than a log, a copied Group keeps its own attributes only, and not what is in it.
        entity = self._find(xid) if scope.name else None
        return link_of_copy(xid, self._links, entity.private if entity is not None else {}) is not None

    @cached_property
    def _links(self) -> tuple[Link, ...]:
        return tuple(self.read_model.links.all())

    def _scope_xid(self, scope: Subject) -> str | None:
        """The xid of what a scope stands for, or of the Resource that a new subject would get; None without a Group."""
        if is_of_registry(scope):
            return xids.REGISTRY
        group = self.registry.group(scope.context)
        if group is None or scope.is_context:
            return group_xid(group) if group is not None else None
        return self.registry.resource(group, scope.name) or self.registry.new_resource(group, scope.name)

    def versions(self, subject: Subject) -> SubjectVersions:
        """The live and soft-deleted versions of a subject."""
        group = self.registry.group(subject.context)
        if group is None or not subject.is_registrable:
            return SubjectVersions(())
        return self.registry.versions_in(group, subject.name)

    def found_subject(self, subject: Subject, *, is_qualified: bool) -> Subject:
        """The subject, or the one of its name in another context if it is unqualified and unknown (CSR-305)."""
        aliased = self.registry.with_alias(subject)
        if is_qualified or aliased.context != DEFAULT_CONTEXT or self.versions(aliased):
            return aliased
        others = (Subject(context, aliased.name) for context in self.groups if context != DEFAULT_CONTEXT)
        return next((other for other in others if self.versions(other)), aliased)

    def subject(self, version: SchemaVersion) -> Subject:
        return self.registry.subject(version)

    def subjects(self, contexts: Iterable[str], *, with_deleted: bool, only_deleted: bool) -> list[Subject]:
        """The subjects of contexts, in the order of answers."""
        found: set[Subject] = set()
        for context in contexts:
            if context in self.groups:
                names = self.read_model.schemas.subjects(
                    [self.groups[context]], with_deleted=with_deleted, only_deleted=only_deleted
                )
                found |= {Subject(context, name) for _, name in names} - self.shared_subjects.keys()
                for subject, versions in self.shared_subjects.items():
                    is_live = any(version.is_live for version in versions)
                    is_wanted = not is_live if only_deleted else is_live or with_deleted
                    if subject.context == context and versions and is_wanted:
                        found.add(subject)
        return sorted(found, key=sort_key)

    @cached_property
    def shared_subjects(self) -> dict[Subject, Sequence[SchemaVersion]]:
        """The subjects that show the versions of others, with those (CSR-909)."""
        subjects = (
            Subject(self.registry.context(xids.segments(row.xid)[1]), subject_name(row.xid, _facts(row)))
            for row in self.read_model.xref_rows(f"/{GROUPS}", [f"{GROUPS}.{RESOURCES}"])
            if self.caller.can_read(row.xid)
        )
        return {subject: self.versions(subject).all for subject in subjects}

    def aliases(self, contexts: Iterable[str]) -> dict[Subject, list[Subject]]:
        """The aliases in contexts, by the subjects for which they stand (CSR-312). Cost: O(subjects)."""
        found: dict[Subject, list[Subject]] = {}
        for context in contexts:
            if context in self.groups:
                for name in self._configured_names(self.groups[context]):
                    alias = Subject(context, name)
                    if (target := self.registry.with_alias(alias)) != alias:
                        found.setdefault(target, []).append(alias)
        return found

    def _configured_names(self, group: str) -> Iterator[str]:
        """The subjects of a Group that may have a config of their own."""
        entity = self._find(group_xid(group))
        yield from facts_of(entity.private).get("subjects", {}) if entity is not None else ()
        for row in self.read_model.subtree(group_xid(group), [f"{GROUPS}.{RESOURCES}"]):
            if _facts(row).get("config"):
                yield subject_name(row.xid, _facts(row))

    def listed_versions(self, contexts: Iterable[str]) -> Iterator[SchemaVersion]:
        """The live and soft-deleted versions of contexts, in no order."""
        known = [context for context in contexts if context in self.groups]
        for version in self.read_model.schemas.listed([self.groups[context] for context in known]):
            if self.subject(version) not in self.shared_subjects:
                yield version
        for subject, versions in self.shared_subjects.items():
            yield from versions if subject.context in known else ()

    def shared_versions(self) -> Iterator[SchemaVersion]:
        """The versions that are shown by subjects other than their own."""
        return (version for versions in self.shared_subjects.values() for version in versions)

    def highest_id(self) -> int:
        """The highest id that the caller can know of."""
        if self.caller.sees_everything:
            return self.read_model.schemas.highest_id()
        return max((version.id for version in self.listed_versions(self.groups)), default=0)

    def readable(self, versions: Iterable[SchemaVersion]) -> Iterator[SchemaVersion]:
        """Those of some versions that the caller may read."""
        return (version for version in versions if self.caller.can_read(group_xid(version.group)))

    # --- contents ----------------------------------------------------------------------------------------------------

    def content(self, schema: SchemaRequest, group: str, *, normalizes: bool, is_new: bool) -> Candidate:
        """A schema in a Group with its content. is_new: see `checked_content`.

        Raises: SchemaRegistryError if it is no schema.
        """
        sent = schema.text.encode()
        sha256 = digest(sent)
        if sha256 is None:
            raise refused_schema(())
        references = self.registry.references(group)
        numbered = references.numbered(schema.references, self.caller.can_read, only_live=False)
        if normalizes:
            numbered = tuple(sorted(dict.fromkeys(numbered), key=lambda one: (one.subject, one.version)))
        extras = schema.extras | ({"references": [reference.members() for reference in numbered]} if numbered else {})
        document = SchemaDocument(schema.type, sha256, references.documents(numbered))
        result = self.check(content_check(document, extras, normalizes=normalizes), {sha256: sent})
        return Candidate(document, extras, checked_content(result, is_new=is_new), normalizes)

    def candidates(
        self,
        subject: Subject,
        schema: SchemaRequest,
        versions: SubjectVersions,
        *,
        normalize: bool,
        is_new: bool,
    ) -> list[Candidate]:
        """A schema for a subject with its content: as given, and with what it inherits. is_new: see `checked_content`.

        Raises: SchemaRegistryError if it is no schema.
        """
        group = self.registry.group(subject.context) or self.context_ids.default_group
        config = effective_config(subject, self.registry.settings, self.default_level)
        is_import = effective_mode(subject, self.registry.settings) == IMPORT
        normalizes = normalize or (bool(config.get("normalize")) and not is_import)
        complete = schema.inheriting(latest_extras(versions), config)
        schemas = [schema] if complete == schema else [schema, complete]
        return [self.content(one, group, normalizes=normalizes, is_new=is_new) for one in schemas]

    def matching(
        self, candidates: Sequence[Candidate], text: str, versions: SubjectVersions, *, with_deleted: bool = False
    ) -> SchemaVersion | None:
        """The highest of a subject's versions with the content of one of the candidates, which have a text."""
        sent = text.encode()
        documents = {digest(sent) or "": sent}

        def run(checks: frozenset[SameTextCheck]) -> dict[SameTextCheck, CheckResult]:
            return {check: self.check(check, documents) for check in checks}

        def find(candidate: Candidate) -> SchemaVersion | None:
            found = versions_to_look_up(versions, candidate, with_deleted=with_deleted)
            return find_version(candidate, found, self.document, run)

        return next(filter(None, map(find, candidates)), None)

    def results_for_new(self, candidates: Sequence[Candidate], text: str, format: str | None) -> CheckResults:
        """Results of the checks that adding one of the candidates needs, so that it is decided once.

        format: of the Resource; None for a new one.
        """
        documents = {digest(sent) or "": sent for sent in [text.encode()]}
        results: dict[DocumentCheck, CheckResult] = {}
        for candidate in candidates:
            stored = (candidate.content.text if candidate.content.text is not None else text).encode()
            sha256 = digest(stored)
            documents[sha256 or ""] = stored
            common = common_format(format, candidate.document.type, candidate.content.declared_format)
            for check in (candidate.check, FormatCheck(common.lower(), sha256)):
                results[check] = self.check(check, documents)
        return results

    def check(self, check: DocumentCheck, documents: dict[str, bytes]) -> CheckResult:
        """The result of a check. documents: bytes that are not stored."""

        def load(sha256: str) -> bytes:
            return documents[sha256] if sha256 in documents else self.read_model.document(sha256)

        return self.checker.check([check], load)[check]

    def document(self, version: SchemaVersion) -> SchemaDocument:
        """A version as checks need it."""
        references = self.registry.references(version.group).documents(version.references)
        return SchemaDocument(version.type, version.document, references)

    def group_for(self, context: str) -> str | None:
        """The id of a context's Group, which may be new; None where no id is left for it."""
        found = self.context_ids.group_of(context, self._find)
        if found is not None and not found[1]:
            found = self.context_ids.group_of(context, self._find_in_any_case)
        return found[0] if found is not None else None

    def _find_in_any_case(self, group_xid: str) -> EntityMembers | None:
        """The Group at an xid, or another one whose id differs in letter case only (CSR-308)."""
        row = self.read_model.entity_in_any_case(group_xid)
        return _members(row)._replace(is_exact=row.xid == group_xid) if row is not None else None

    # --- objects -----------------------------------------------------------------------------------------------------

    def text(self, version: SchemaVersion, format: str = "") -> str:
        """The text of a version as answers show it (CSR-414, CSR-420)."""
        wanted = format.lower()
        if (wanted == "resolved" and version.type == AVRO) or (
            wanted in ("serialized", "ignore_extensions") and version.type == PROTOBUF
        ):
            text = read_text(self.check(FormattedText(self.document(version), wanted), {}))
            if text is not None:
                return text
        return self.shown_text(version, _decode(self.read_model.document(version.document)))

    def shown_text(self, version: SchemaVersion, text: str) -> str:
        """A stored text as answers show it: JSON without whitespace between its tokens."""
        return text if version.type == PROTOBUF else "".join(_WITHOUT_SPACE.findall(text))

    def schema_object(
        self, version: SchemaVersion, *, format: str = "", is_full: bool = False, qualifies: bool = False
    ) -> dict[str, Any]:
        """A version as an answer shows it. is_full: with what only newer clients read. qualifies: its references."""
        members = self.schema_members(version, self.text(version, format), is_full=is_full, qualifies=qualifies)
        return {"subject": self.subject(version).qualified, **members}

    def schema_objects(self, versions: Iterable[SchemaVersion], *, is_full: bool) -> Iterator[dict[str, Any]]:
        """`schema_object` of many versions; what they show is read in batches."""
        for batch in batched(versions, BATCH_MEMBERS):
            documents = self.read_model.small_documents({version.document for version in batch})
            rows = self._rows(batch) if is_full else {}
            for version in batch:
                content = documents.get(version.document)
                text = self.text(version) if content is None else self.shown_text(version, _decode(content))
                members = self.schema_members(version, text, is_full=is_full, row=rows.get(version.xid))
                yield {"subject": self.subject(version).qualified, **members}

    def schema_members(
        self,
        version: SchemaVersion,
        text: str,
        *,
        is_full: bool = False,
        qualifies: bool = False,
        row: EntityRow | None = None,
    ) -> dict[str, Any]:
        """`schema_object` without the subject. text: as answers show it. row: the version's, if it is known."""
        extras = {name: version.extras[name] for name in CONTENT_MEMBERS if name in version.extras}
        if qualifies and "references" in extras:
            extras["references"] = self._qualified(extras["references"], self.registry.context(version.group))
        shows_type = version.type != AVRO or is_full
        return {
            "version": version.number,
            "id": version.id,
            "guid": version.guid,
            **({"schemaType": version.type} if shows_type else {}),
            **extras,
            "schema": text,
            **(self._later_members(version, row) if is_full else {}),
        }

    def _later_members(self, version: SchemaVersion, row: EntityRow | None) -> dict[str, Any]:
        """The members that only newer clients read (CSR-113)."""
        createdat = self._createdat(version, row)
        timestamp = {"ts": round(datetime.fromisoformat(createdat).timestamp() * 1000)} if createdat is not None else {}
        return {**timestamp, "deleted": version.deleted is not None}

    def _rows(self, versions: Sequence[SchemaVersion]) -> dict[str, EntityRow]:
        """The rows of those versions that are live and of their own Resource."""
        return {row.xid: row for row in self.read_model.entities([version.xid for version in versions])}

    def _createdat(self, version: SchemaVersion, row: EntityRow | None) -> str | None:
        """When a version was created; a deleted one is found in the past."""
        if row is None:
            target = self.registry.xref(version.resource)
            xid = version.xid if target is None else target + version.xid.removeprefix(version.resource)
            row = self.read_model.entity(xid) or self.read_model.as_of(version.since).entity(xid)
        return loads_trusted(row.attributes).get("createdat") if row is not None else None

    def _qualified(self, references: Sequence[dict[str, Any]], context: str) -> list[dict[str, Any]]:
        return [
            one if one["subject"].startswith(":.") else {**one, "subject": Subject(context, one["subject"]).qualified}
            for one in references
        ]

    @cached_property
    def _find(self) -> _KnownEntities:
        return _KnownEntities(self.read_model)


class _KnownEntities:
    """Finds entities as `FindEntity`, and keeps them: all versions of a list ask for their Groups."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._known: dict[str, EntityMembers | None] = {}
        self._prefetched: dict[str, EntityMembers | None] = {}
        self._expected: Callable[[], Sequence[str]] | None = None

    def __call__(self, xid: str) -> EntityMembers | None:
        if self._expected is not None:
            expected, self._expected = self._expected(), None
            self.prefetch(expected)
        if xid in self._prefetched:
            return self._prefetched[xid]
        if xid not in self._known:
            if len(self._known) >= _KEPT_ENTITIES:
                self._known.clear()
            row = self._view.entity(xid)
            self._known[xid] = _members(row) if row is not None else None
        return self._known[xid]

    def expect(self, xids: Callable[[], Sequence[str]]) -> None:
        """Has the first look-up read some entities."""
        self._expected = xids

    def prefetch(self, xids: Sequence[str]) -> None:
        """Reads some entities in one query."""
        members = {row.xid: _members(row) for row in self._view.entities(xids)}
        self._prefetched |= {xid: members.get(xid) for xid in xids}


def _members(row: EntityRow) -> EntityMembers:
    return EntityMembers(loads_trusted(row.attributes), loads_trusted(row.private))


def _decode(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _facts(row: EntityRow) -> Facts:
    return facts_of(loads_trusted(row.private))


def one_version(versions: SubjectVersions, number: int, *, with_deleted: bool) -> SchemaVersion | None:
    """The version with a number, 0 for the latest live one; None if there is none that the request may see."""
    if number == 0:
        return versions.latest
    found = reversed(versions.with_number(number))
    return next((version for version in found if version.is_live or with_deleted), None)
