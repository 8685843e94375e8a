"""A Version to check: the document checks that it needs, and what their results mean for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from annals.domain.decisions.changes.drafts import ResourceDraft, VersionDraft
from annals.domain.decisions.checks.document_checks import CheckResults, CompatibilityCheck, DocumentCheck, FormatCheck
from annals.domain.decisions.rules import document_errors
from annals.domain.errors.problems import Problem

_NOT_VALIDATED_REASON: Final = "the format was not validated"
#: The maximum number of incompatibilities in one error.
MAX_REPORTED: Final = 50


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
    compared_versions: Sequence[VersionDraft] = ()

    def document_checks(self) -> Iterator[DocumentCheck]:
        if self.document is None:
            return
        yield self.document
        for ancestor in self.compared_versions:
            yield from self.compatibility_checks(ancestor)

    def compatibility_checks(self, ancestor: VersionDraft) -> Iterator[CompatibilityCheck]:
        """The checks between it and an ancestor."""
        assert self.document is not None and self.rule is not None
        return compatibility_checks(self.rule, self.document, format_check(ancestor))

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
    if not rule.startswith("forward"):
        yield CompatibilityCheck(version, ancestor)
    if not rule.startswith("backward"):
        yield CompatibilityCheck(ancestor, version, newer="writer")


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
    for ancestor in version_check.compared_versions:
        for compatibility_check in version_check.compatibility_checks(ancestor):
            if results.get(compatibility_check.reader) or results.get(compatibility_check.writer):
                continue  # reported as invalid in its format
            backward = compatibility_check.newer == "reader"
            for incompatibility in results[compatibility_check]:
                yield document_errors.incompatibility_entry(
                    incompatibility, version_check.version.id, ancestor.id, backward=backward
                )


def _validation_members(prefix: str, reason: str | None) -> dict[str, Any]:
    if reason is None:
        return {f"{prefix}validated": True}
    return {f"{prefix}validated": False, f"{prefix}validatedreason": reason}
