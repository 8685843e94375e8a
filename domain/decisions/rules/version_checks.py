"""A Version to check: the document checks that it needs, and what their results mean for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from annals.domain.decisions.changes.drafts import ResourceDraft, VersionDraft
from annals.domain.decisions.checks.document_checks import (
    AncestorsCheck,
    CheckResult,
    CheckResults,
    CompatibilityCheck,
    DocumentCheck,
    FormatCheck,
    IncompatibleAncestor,
    compare_with_ancestor,
    find_incompatible,
)
from annals.domain.decisions.rules import document_errors
from annals.domain.errors.problems import Problem
from annals.domain.formats.contract import NewerSide

_NOT_VALIDATED_REASON: Final = "the format was not validated"
#: The number of ancestors up to which each is compared by a check of its own; beyond, one check compares so many.
COMPARED_TOGETHER: Final = 64
#: The maximum number of incompatibilities in one error.
MAX_REPORTED: Final = 50


class ComparedVersion(NamedTuple):
    """A Version that others are compared with."""

    id: str
    document: FormatCheck


@dataclass(frozen=True, slots=True)
class VersionCheck:
    """A Version to check.

    document: the check of its format; None if nothing can be checked, and then `format_skipped` is the reason.
    rule: that of its Resource, lower case; None: no rule is checked. rule_skipped: why the rule cannot be checked.
    compared_versions: the Versions that it is compared with, nearest first.
    """

    resource: ResourceDraft
    version: VersionDraft
    document: FormatCheck | None = None
    format_skipped: str | None = None
    rule: str | None = None
    rule_skipped: str | None = None
    compared_versions: Sequence[ComparedVersion] = ()

    def document_checks(self) -> Iterator[DocumentCheck]:
        if self.document is not None:
            yield self.document
            yield from (check for check, _ in self.comparisons())

    def comparisons(self) -> Iterator[tuple[CompatibilityCheck | AncestorsCheck, Sequence[ComparedVersion]]]:
        """The comparisons with ancestors, each with those that it is about; many ancestors are compared together."""
        if not self.compared_versions:
            return
        assert self.document is not None and self.rule is not None
        if len(self.compared_versions) <= COMPARED_TOGETHER:
            for ancestor in self.compared_versions:
                for check in compatibility_checks(self.rule, self.document, ancestor.document):
                    yield check, (ancestor,)
            return
        # Counted from the root, so that the checks of all Versions of a lineage load the same documents together.
        shorter = len(self.compared_versions) % COMPARED_TOGETHER
        for end in range(shorter or COMPARED_TOGETHER, len(self.compared_versions) + 1, COMPARED_TOGETHER):
            ancestors = self.compared_versions[max(end - COMPARED_TOGETHER, 0) : end]
            documents = tuple(ancestor.document for ancestor in ancestors)
            yield AncestorsCheck(self.document, documents, _newer_sides(self.rule)), ancestors

    def validation_attributes(self, results: CheckResults) -> dict[str, Any]:
        """The attributes that show the results; empty if nothing is checked. Raises: FormatViolation."""
        if self.document is not None and (violations := results[self.document]):
            raise document_errors.format_violation(self.version, violations)
        if self.document is None and self.format_skipped is None:
            return {}
        attributes = _validation_members("format", self.format_skipped)
        if self.rule is not None:
            attributes |= _validation_members(
                "compatibility", _NOT_VALIDATED_REASON if self.format_skipped else self.rule_skipped
            )
        return attributes

    def violation_texts(self, results: CheckResults) -> dict[str, Any]:
        """The attributes of a Version that is kept although it breaks rules; empty if it breaks none."""
        if self.document is None:
            return {}
        if violations := results[self.document]:
            attributes = _validation_members("format", violations[0].text)
            return attributes | (_validation_members("compatibility", _NOT_VALIDATED_REASON) if self.rule else {})
        entries = list(_violation_entries(self, results))
        if not entries:
            return {}
        return _validation_members("format", None) | _validation_members(
            "compatibility", document_errors.entry_text(entries[0])
        )


def compatibility_checks(rule: str, version: FormatCheck, ancestor: FormatCheck) -> Iterator[CompatibilityCheck]:
    """The checks of a rule, in lower case, between two documents: backward, forward or, for full, both."""
    for newer in _newer_sides(rule):
        yield compare_with_ancestor(version, ancestor, newer)


def _newer_sides(rule: str) -> tuple[NewerSide, ...]:
    """The sides that the newer document takes under a rule in lower case."""
    if rule.startswith("backward"):
        return ("reader",)
    return ("writer",) if rule.startswith("forward") else ("reader", "writer")


def format_check(version: VersionDraft) -> FormatCheck:
    """The check of a Version's document against its format."""
    return FormatCheck(str(version.attributes.get("format", "")).lower(), version.document)


def compatibility_violations(
    version_checks: Sequence[VersionCheck], results: CheckResults
) -> Iterator[tuple[VersionDraft, Problem]]:
    """One error per Resource whose Versions break its rule (SC-30), with one of these Versions.

    A written Version is preferred to a stored one.
    """
    by_resource: dict[str, list[VersionCheck]] = {}
    for version_check in version_checks:
        if version_check.compared_versions:
            by_resource.setdefault(version_check.resource.xid, []).append(version_check)
    for resource_checks in by_resource.values():
        version_entries = [
            (version_check.version, entry)
            for version_check in resource_checks
            for entry in _violation_entries(version_check, results)
        ]
        if version_entries:
            resource, reported_entries = (
                resource_checks[0].resource,
                [entry for _, entry in version_entries[:MAX_REPORTED]],
            )
            written_versions = (version for version in resource.live_versions() if version.is_written)
            yield (
                next(written_versions, version_entries[0][0]),
                document_errors.compatibility_violation(resource, str(resource_checks[0].rule), reported_entries),
            )


def _violation_entries(version_check: VersionCheck, results: CheckResults) -> Iterator[dict[str, Any]]:
    if version_check.document is None or results.get(version_check.document):
        return  # a document that is not valid in its format is reported as such
    for check, ancestors in version_check.comparisons():
        found = _find_incompatible(check, results[check])
        if found is None:
            continue
        ancestor = ancestors[found.ancestor_index or 0]
        if found.ancestor_index is not None and results.get(ancestor.document):
            continue
        for incompatibility in found.incompatibilities:
            yield document_errors.incompatibility_entry(
                incompatibility, version_check.version.id, ancestor.id, backward=found.newer == "reader"
            )


def _find_incompatible(check: CompatibilityCheck | AncestorsCheck, result: CheckResult) -> IncompatibleAncestor | None:
    if isinstance(check, AncestorsCheck):
        return find_incompatible(check, result)
    return IncompatibleAncestor(0, check.newer, result) if result else None


def _validation_members(prefix: str, reason: str | None) -> dict[str, Any]:
    if reason is None:
        return {f"{prefix}validated": True}
    return {f"{prefix}validated": False, f"{prefix}validatedreason": reason}
