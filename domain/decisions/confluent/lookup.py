"""Which version of a subject has a content: by its key, else by what it is besides its form.

Two contents of one schema have different keys where only one has the property of CSR-512, and where one has references
and the other one the texts themselves (CSR-509).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from annals.domain.confluent.checks import ContentCheck, SameTextCheck, SchemaContent, SchemaDocument, content_check
from annals.domain.confluent.commands import LATEST_OR_NEXT
from annals.domain.confluent.content import comparable
from annals.domain.confluent.errors import SchemaRegistryError
from annals.domain.confluent.metadata_rules import VERSION_PROPERTY, version_in, without_version
from annals.domain.confluent.schema_versions import SchemaVersion
from annals.domain.confluent.subject_versions import SubjectVersions
from annals.domain.decisions.checks.document_checks import TIMED_OUT, CheckResult

#: Returns the results of checks.
RunChecks = Callable[[frozenset[SameTextCheck]], Mapping[SameTextCheck, CheckResult]]
#: Returns a version as checks need it.
DocumentOf = Callable[[SchemaVersion], SchemaDocument]


class Candidate(NamedTuple):
    """A schema to look up. extras: its references, metadata and rule set. normalizes: normalized texts are compared."""

    document: SchemaDocument
    extras: Mapping[str, Any]
    content: SchemaContent
    normalizes: bool

    @property
    def check(self) -> ContentCheck:
        """The check that has found the content."""
        return content_check(self.document, self.extras, normalizes=self.normalizes)


def find_version(
    candidate: Candidate, versions: Sequence[SchemaVersion], document_of: DocumentOf, run: RunChecks
) -> SchemaVersion | None:
    """The highest of some versions with a content, one with its key first. versions: from `versions_to_look_up`.

    Raises: SchemaRegistryError if texts were not compared in time.
    """
    key, newest_first = candidate.content.identity.key, versions[::-1]
    for version in newest_first:
        if version.key == key:
            return version
    checks = [
        (version, SameTextCheck(candidate.normalizes, candidate.document, document_of(version)))
        for version in newest_first
        if _differs_in_form_only(candidate, version)
    ]
    results = run(frozenset(check for _, check in checks)) if checks else {}
    for version, check in checks:
        if results[check] == (TIMED_OUT,):
            raise SchemaRegistryError(50002, f"The schemas were not compared: {TIMED_OUT.text}")
        if not results[check]:
            return version
    return None


def versions_to_look_up(
    versions: SubjectVersions, candidate: Candidate, number: int | None = None, *, with_deleted: bool = False
) -> Sequence[SchemaVersion]:
    """The versions of a subject that may have a content, by number; others may be among them.

    number: the one that is asked for, None for any. with_deleted: also soft-deleted ones.
    """
    if number == LATEST_OR_NEXT:
        return [versions.latest] if versions.latest is not None else []
    found = _with_key_or_other_form(versions, candidate) if number is None else versions.with_number(number)
    return [version for version in found if version.is_live or with_deleted]


def _with_key_or_other_form(versions: SubjectVersions, candidate: Candidate) -> Sequence[SchemaVersion]:
    """The versions with the key of a candidate, and all for which `_differs_in_form_only` may hold."""
    if version_in(candidate.extras.get("metadata")) is not None:
        return versions.all
    names = [VERSION_PROPERTY, *([] if candidate.extras.get("references") else ["references"])]
    return versions.with_key_or_member(candidate.content.identity.key, names)


def _differs_in_form_only(candidate: Candidate, version: SchemaVersion) -> bool:
    """Whether a version with another key is the same schema if their texts are the same."""
    own, other = candidate.extras, version.extras
    if own == other:
        return False
    is_same_type = candidate.document.type == version.type
    if not is_same_type or comparable(own.get("ruleSet")) != comparable(other.get("ruleSet")):
        return False
    own_metadata, other_metadata = own.get("metadata"), other.get("metadata")
    if comparable(without_version(own_metadata)) != comparable(without_version(other_metadata)):
        return False
    own_version, other_version = version_in(own_metadata), version_in(other_metadata)
    if own_version != other_version and other_version is not None and own_version is not None:
        return False
    if own_version is not None and other_version is None and own_version != str(version.number):
        return False
    references, other_references = own.get("references", []), other.get("references", [])
    if references == other_references:
        return own_version != other_version
    return not references
