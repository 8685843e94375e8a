"""A document that might become a Version: the checks that it needs, and the report of their results.

The form of the report is not from the spec.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from annals.domain.decisions.checks.document_checks import (
    CheckResult,
    CheckResults,
    CompatibilityCheck,
    DocumentCheck,
    FormatCheck,
)
from annals.domain.decisions.rules.ancestry import VersionLineage
from annals.domain.decisions.rules.document_errors import incompatibility_entry, members_of_location
from annals.domain.decisions.rules.version_checks import compatibility_checks


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A stored Version: its id, its ancestor's id, its creation time, and the check of its document.

    is_checked: whether its document was validated against its format; otherwise it is not compared.
    """

    id: str
    ancestor: str
    createdat: str
    document: FormatCheck
    is_checked: bool

    @property
    def lineage(self) -> VersionLineage:
        """The Version's place in the ancestry."""
        return VersionLineage(self.id, self.ancestor, self.createdat, self.createdat)


@dataclass(frozen=True, slots=True)
class CandidateVersion:
    """A document that might become a Version.

    rule: compatibility rule in lower case; None to compare nothing. against: nearest first. successors: stored Versions
    that are compared with it, as with their ancestor. unchecked_reason: why the rule cannot be checked; then nothing is
    compared.
    """

    xid: str
    document: FormatCheck
    rule: str | None
    against: Sequence[StoredVersion] = ()
    successors: Sequence[StoredVersion] = ()
    unchecked_reason: str | None = None

    def checks(self) -> Iterator[DocumentCheck]:
        """All checks that the result needs."""
        yield self.document
        for stored_version in self._compared_versions:
            yield from self._compatibility_checks(stored_version)

    def report(self, results: CheckResults) -> dict[str, Any]:
        """The response: `valid` with `violations`, `compatible` with `incompatibilities`.

        `compatible` is null if nothing was compared.
        """
        violations = results[self.document]
        incompatibilities = (
            []
            if violations
            else [
                finding
                for stored_version in self._compared_versions
                for finding in self._incompatibilities(stored_version, results)
            ]
        )
        is_comparable = self.rule is not None and not violations and self._skip_reason is None
        return {
            "xid": self.xid,
            "format": self.document.format,
            "valid": not violations,
            "violations": [{"text": finding.text, **members_of_location(finding.reader)} for finding in violations],
            "compatibility": self.rule,
            "against": [stored_version.id for stored_version in (*self.against, *self.successors)],
            "compatible": not incompatibilities if is_comparable else None,
            "reason": self._skip_reason if not violations else None,
            "incompatibilities": incompatibilities,
        }

    @property
    def _compared_versions(self) -> Sequence[StoredVersion]:
        return (*self.against, *self.successors) if self._skip_reason is None else ()

    @property
    def _skip_reason(self) -> str | None:
        """Why nothing is compared although there is a rule; None if the comparison runs."""
        if self.unchecked_reason is not None:
            return self.unchecked_reason
        return next(
            (
                f'"{stored_version.id}" was not validated'
                for stored_version in (*self.against, *self.successors)
                if not stored_version.is_checked
            ),
            None,
        )

    def _compatibility_checks(self, stored_version: StoredVersion) -> Iterator[CompatibilityCheck]:
        assert self.rule is not None
        version, ancestor = self.document, stored_version.document
        if stored_version in self.successors:
            version, ancestor = ancestor, version
        return compatibility_checks(self.rule, version, ancestor)

    def _incompatibilities(
        self, stored_version: StoredVersion, results: Mapping[DocumentCheck, CheckResult]
    ) -> Iterator[dict[str, Any]]:
        for compatibility_check in self._compatibility_checks(stored_version):
            for finding in results[compatibility_check]:
                entry = incompatibility_entry(finding, "", "", backward=compatibility_check.newer == "reader")
                here, there = entry["version"], entry["ancestor"]
                if stored_version in self.successors:
                    here, there = there, here
                place = {name: value for name, value in here.items() if name != "versionid"}
                yield {**entry, "version": place, "ancestor": {**there, "versionid": stored_version.id}}
