"""A Version to check: the document checks that it needs, and what their results mean for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from domain.decisions.changes.drafts import ResourceDraft, VersionDraft
from domain.decisions.document_checks import CheckResults, CompatibilityCheck, DocumentCheck, FormatCheck
from domain.decisions.rules import document_errors
from domain.errors.problems import Problem

_NOT_VALIDATED: Final = "the format was not validated"
#: The maximum number of incompatibilities in one error.
MAX_REPORTED: Final = 50


@dataclass(frozen=True, slots=True)
class VersionCheck:
    """A Version to check.

    document: the check of its format; None if nothing can be checked, and then flaw is the reason. ancestors: the
    Versions that it is compared with, nearest first. rule: that of its Resource, lower case; None: no rule is checked.
    rule_skipped: why the rule cannot be checked.
    """

    resource: ResourceDraft
    version: VersionDraft
    document: FormatCheck | None = None
    format_skipped: str | None = None
    rule: str | None = None
    rule_skipped: str | None = None
    ancestors: Sequence[VersionDraft] = ()

    def document_checks(self) -> Iterator[DocumentCheck]:
        if self.document is None:
            return
        yield self.document
        for ancestor in self.ancestors:
            yield from self.compatibility_checks(ancestor)

    def compatibility_checks(self, ancestor: VersionDraft) -> Iterator[CompatibilityCheck]:
        """The checks between it and an ancestor: backward, forward or, for full, both."""
        assert self.document is not None and self.rule is not None
        other = format_check(ancestor)
        if not self.rule.startswith("forward"):
            yield CompatibilityCheck(self.document, other)
        if not self.rule.startswith("backward"):
            yield CompatibilityCheck(other, self.document, newer="writer")

    def validation_attributes(self, verdicts: CheckResults) -> dict[str, Any]:
        """The attributes that show the results; empty if nothing is checked. Raises: FormatViolation."""
        if self.document is not None and (found := verdicts[self.document]):
            raise document_errors.format_violation(self.version, found)
        if self.document is None and self.format_skipped is None:
            return {}
        said = _validated("format", self.format_skipped)
        if self.rule is not None:
            said |= _validated("compatibility", _NOT_VALIDATED if self.format_skipped else self.rule_skipped)
        return said


def format_check(version: VersionDraft) -> FormatCheck:
    """The check of a Version's document against its format."""
    return FormatCheck(str(version.attributes.get("format", "")).lower(), version.document)


def compatibility_violations(
    dues: Sequence[VersionCheck], verdicts: CheckResults
) -> Iterator[tuple[VersionDraft, Problem]]:
    """One error per Resource whose Versions break its rule (SC-30), with one of these Versions.

    A written Version is preferred to a stored one.
    """
    by_resource: dict[str, list[VersionCheck]] = {}
    for due in dues:
        if due.ancestors:
            by_resource.setdefault(due.resource.xid, []).append(due)
    for some in by_resource.values():
        found = [(due.version, entry) for due in some for entry in _entries(due, verdicts)]
        if found:
            resource, told = some[0].resource, [entry for _, entry in found[:MAX_REPORTED]]
            written = (version for version in resource.live_versions() if version.written)
            yield next(written, found[0][0]), document_errors.compatibility_violation(resource, str(some[0].rule), told)


def _entries(due: VersionCheck, verdicts: CheckResults) -> Iterator[dict[str, Any]]:
    for ancestor in due.ancestors:
        for reading in due.compatibility_checks(ancestor):
            if verdicts.get(reading.reader) or verdicts.get(reading.writer):
                continue  # reported as invalid in its format
            backward = reading.newer == "reader"
            for one in verdicts[reading]:
                yield document_errors.incompatibility_entry(one, due.version.id, ancestor.id, backward=backward)


def _validated(what: str, flaw: str | None) -> dict[str, Any]:
    if flaw is None:
        return {f"{what}validated": True}
    return {f"{what}validated": False, f"{what}validatedreason": flaw}
