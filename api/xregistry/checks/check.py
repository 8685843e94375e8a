"""Checks a document without writing it: against its format, and against stored Versions.

Spec: core 1.0-rc4, "formatvalidated Attribute", "compatibility Attribute". The form of the response is not from the
spec.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from annals.api.http.query_params import invalid_param
from annals.api.xregistry.request.paths import RequestTarget
from annals.domain.decisions.capabilities import INITIAL, EnabledFormats
from annals.domain.decisions.changes.documents import digest
from annals.domain.decisions.checks.document_checks import (
    CheckResult,
    CheckResults,
    CompatibilityCheck,
    DocumentCheck,
    FormatCheck,
)
from annals.domain.decisions.rules import ancestry
from annals.domain.decisions.rules.ancestry import VersionLineage
from annals.domain.decisions.rules.document_errors import incompatibility_entry, members_of_location
from annals.domain.decisions.rules.formats import NO_RULE
from annals.domain.errors.problems import NotFound
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads
from annals.projections.entities.view import View
from annals.projections.entities.xref import xref_of

_TRANSITIVE: Final = "_transitive"


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
        if not self.rule.startswith("forward"):
            yield CompatibilityCheck(version, ancestor)
        if not self.rule.startswith("backward"):
            yield CompatibilityCheck(ancestor, version, newer="writer")

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


def load_candidate(
    view: View,
    target: RequestTarget,
    content: bytes,
    format: str | None,
    rule: str | None,
    against: str | None,
    replaced: str | None = None,
) -> CandidateVersion:
    """A document as the next Version of a Resource. If `format` is given, the Resource need not exist.

    format: of the document; by default that of the default Version. rule: by default `meta.compatibility`. against:
    `latest`, `all` or ids of Versions; by default what the rule requires. replaced: the id of the Version whose
    document it replaces, which is compared with its ancestors and its successors as the rule requires. Raises:
    NotFound; BadRequest for a format or a rule that this registry cannot check, and for both `against` and `replaced`.
    """
    if against is not None and replaced is not None:
        raise invalid_param("against", 'it cannot be combined with "version"')
    row = view.entity(target.xid)
    row = view.entity(xref_xid) if row and (xref_xid := xref_of(row)) else row
    attributes: dict[str, Any] = loads(row.attributes) if row else {}
    if row is None and format is None:
        raise NotFound(target.xid, detail='a Resource that does not exist yet needs the parameter "format"')
    enabled_formats = _enabled_formats(view)
    document = FormatCheck(_check_format(enabled_formats, format or attributes.get("format")), digest(content))
    compatibility = (rule or attributes.get("meta", {}).get("compatibility") or "").lower() or None
    if compatibility is not None and not enabled_formats.has_rule(document.format, compatibility):
        if rule:
            raise invalid_param("compatibility", f'"{rule}" cannot be checked for "{document.format}"')
        return CandidateVersion(target.xid, document, compatibility, unchecked_reason=NO_RULE)
    if compatibility is None or row is None:
        return CandidateVersion(target.xid, document, compatibility)
    versions = _stored_versions(
        view, row.xid, enabled_formats, f"{target.resource.singular}url" if target.resource else ""
    )
    include_ancestors = {"all": True, "latest": False}.get(against or "", compatibility.endswith(_TRANSITIVE))
    if replaced is not None:
        version = _select_versions(versions, [replaced], target.xid)[0]
        ancestors = _ancestors(versions, version)[: None if include_ancestors else 1]
        successors = _successors(versions, version, all_successors=include_ancestors)
        return CandidateVersion(target.xid, document, compatibility, ancestors, successors)
    if against in (None, "", "all", "latest"):
        compared_versions = _newest_versions(versions, include_ancestors=include_ancestors)
    else:
        version_ids = [version_id.strip() for version_id in str(against).split(",")]
        compared_versions = _select_versions(versions, version_ids, target.xid)
    return CandidateVersion(target.xid, document, compatibility, compared_versions)


def _enabled_formats(view: View) -> EnabledFormats:
    row = view.entity(xids.CAPABILITIES)
    return EnabledFormats(loads(row.attributes) if row else INITIAL)


def _check_format(enabled_formats: EnabledFormats, name: Any) -> str:
    """The name of an enabled format, in lower case. Raises: BadRequest."""
    if not isinstance(name, str):
        raise invalid_param("format", "it is needed")
    if not enabled_formats.is_validated(name):
        supported = ", ".join(enabled_formats.formats) or "nothing"
        raise invalid_param("format", f'"{name}" cannot be checked here; use one of: {supported}')
    return name.lower()


def _stored_versions(view: View, resource: str, enabled_formats: EnabledFormats, url: str) -> dict[str, StoredVersion]:
    """The Versions of a Resource by lower-case id.

    url: the attribute of Versions whose document is stored elsewhere.
    """
    stored_versions = {}
    for row in view.subtree(f"{resource}/versions"):
        attributes = loads(row.attributes)
        name = str(attributes.get("format", ""))
        is_validated = enabled_formats.is_validated(name) and url not in attributes
        document = FormatCheck(name.lower(), row.document)
        stored_versions[row.id.lower()] = StoredVersion(
            row.id, str(attributes["ancestorid"]), row.times.createdat, document, is_validated
        )
    return stored_versions


def _select_versions(
    versions: Mapping[str, StoredVersion], version_ids: Sequence[str], xid: str
) -> list[StoredVersion]:
    for id in version_ids:
        if id.lower() not in versions:
            raise NotFound(f"{xid}/versions/{id}")
    return [versions[id.lower()] for id in version_ids]


def _newest_versions(versions: Mapping[str, StoredVersion], *, include_ancestors: bool) -> list[StoredVersion]:
    """The newest Version, which would be the next one's ancestor; with `include_ancestors` also all of its own."""
    # In the computed modes the Versions are one chain that ends at the newest; in `manual` mode this is the rule.
    newest = ancestry.newest_version("manual", [stored_version.lineage for stored_version in versions.values()])
    version = versions[newest.id.lower()]
    return [version, *_ancestors(versions, version)] if include_ancestors else [version]


def _ancestors(versions: Mapping[str, StoredVersion], version: StoredVersion) -> list[StoredVersion]:
    """The ancestors of a Version, nearest first; a root has none."""
    ancestors: list[StoredVersion] = []
    while version.ancestor != version.id:
        version = versions[version.ancestor.lower()]
        ancestors.append(version)
    return ancestors


def _successors(
    versions: Mapping[str, StoredVersion], version: StoredVersion, *, all_successors: bool
) -> list[StoredVersion]:
    """The Versions with a Version as nearest ancestor, or as any ancestor."""
    children = defaultdict[str, list[StoredVersion]](list)
    for each in versions.values():
        if each.ancestor != each.id:
            children[each.ancestor.lower()].append(each)
    successors = [*children[version.id.lower()]]
    for each in successors if all_successors else ():
        successors += children[each.id.lower()]
    return successors
