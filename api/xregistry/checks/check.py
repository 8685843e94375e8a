"""Checks a document without writing it: against its format, and against stored Versions.

Spec: core 1.0-rc4, "formatvalidated Attribute", "compatibility Attribute". The form of the response is not from the
spec.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from api.http.query_params import invalid_param
from api.xregistry.request.paths import RequestTarget
from domain.decisions.capabilities import INITIAL, EnabledFormats
from domain.decisions.changes.documents import digest
from domain.decisions.document_checks import CheckResult, CheckResults, CompatibilityCheck, DocumentCheck, FormatCheck
from domain.decisions.rules import ancestry
from domain.decisions.rules.ancestry import VersionLineage
from domain.decisions.rules.document_errors import incompatibility_entry, spot_members
from domain.decisions.rules.formats import NO_RULE
from domain.errors.problems import NotFound
from domain.values import xid as xids
from domain.values.json_text import loads
from projections.entities.query import View
from projections.entities.xref import xref_of

_TRANSITIVE: Final = "_transitive"


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A stored Version: its id, its ancestor's id, its creation time, and the check of its document.

    checked: whether its document was validated against its format; otherwise it is not compared.
    """

    id: str
    ancestor: str
    createdat: str
    document: FormatCheck
    checked: bool

    @property
    def lineage(self) -> VersionLineage:
        """The Version's place in the ancestry."""
        return VersionLineage(self.id, self.ancestor, self.createdat, self.createdat)


@dataclass(frozen=True, slots=True)
class CandidateVersion:
    """A document that might become a Version.

    rule: compatibility rule in lower case; None to compare nothing. against: nearest first. unchecked_reason: the
    reason why the rule cannot be checked, if there is one; nothing is compared then.
    """

    xid: str
    document: FormatCheck
    rule: str | None
    against: Sequence[StoredVersion] = ()
    unchecked_reason: str | None = None

    def questions(self) -> Iterator[DocumentCheck]:
        """All checks that the result needs."""
        yield self.document
        for other in self._compared:
            yield from self._compatibility_checks(other)

    def report(self, verdicts: CheckResults) -> dict[str, Any]:
        """The response: `valid` with `violations`, `compatible` with `incompatibilities`.

        `compatible` is null if nothing was compared.
        """
        flaws = verdicts[self.document]
        found = [] if flaws else [one for other in self._compared for one in self._incompatibilities(other, verdicts)]
        answered = self.rule is not None and not flaws and self._unchecked is None
        return {
            "xid": self.xid,
            "format": self.document.format,
            "valid": not flaws,
            "violations": [{"text": one.text, **spot_members(one.reader)} for one in flaws],
            "compatibility": self.rule,
            "against": [other.id for other in self.against],
            "compatible": not found if answered else None,
            "reason": self._unchecked if not flaws else None,
            "incompatibilities": found,
        }

    @property
    def _compared(self) -> Sequence[StoredVersion]:
        return self.against if self._unchecked is None else ()

    @property
    def _unchecked(self) -> str | None:
        """Why nothing is compared although there is a rule; None if the comparison runs."""
        if self.unchecked_reason is not None:
            return self.unchecked_reason
        return next((f'"{other.id}" was not validated' for other in self.against if not other.checked), None)

    def _compatibility_checks(self, other: StoredVersion) -> Iterator[CompatibilityCheck]:
        assert self.rule is not None
        if not self.rule.startswith("forward"):
            yield CompatibilityCheck(self.document, other.document)
        if not self.rule.startswith("backward"):
            yield CompatibilityCheck(other.document, self.document, newer="writer")

    def _incompatibilities(
        self, other: StoredVersion, verdicts: Mapping[DocumentCheck, CheckResult]
    ) -> Iterator[dict[str, Any]]:
        for reading in self._compatibility_checks(other):
            for one in verdicts[reading]:
                told = incompatibility_entry(one, "", other.id, backward=reading.newer == "reader")
                yield {
                    **told,
                    "version": {name: value for name, value in told["version"].items() if name != "versionid"},
                }


def load_candidate(
    view: View, target: RequestTarget, content: bytes, format: str | None, rule: str | None, against: str | None
) -> CandidateVersion:
    """A document as the next Version of a Resource. If `format` is given, the Resource need not exist.

    format: of the document; by default that of the default Version. rule: by default `meta.compatibility`. against:
    `latest`, `all` or ids of Versions; by default what the rule requires. Raises: NotFound; BadRequest for a format or
    a rule that this registry cannot check.
    """
    row = view.entity(target.xid)
    row = view.entity(pointed) if row and (pointed := xref_of(row)) else row
    shown: dict[str, Any] = loads(row.attributes) if row else {}
    if row is None and format is None:
        raise NotFound(target.xid, detail='a Resource that does not exist yet needs the parameter "format"')
    switched = _switched(view)
    document = FormatCheck(_checked(switched, format or shown.get("format")), digest(content))
    known = (rule or shown.get("meta", {}).get("compatibility") or "").lower() or None
    if known is not None and not switched.compares(document.format, known):
        if rule:
            raise invalid_param("compatibility", f'"{rule}" cannot be checked for "{document.format}"')
        return CandidateVersion(target.xid, document, known, unchecked_reason=NO_RULE)
    if known is None or row is None:
        return CandidateVersion(target.xid, document, known)
    whole = {"all": True, "latest": False}.get(against or "", known.endswith(_TRANSITIVE))
    chosen = None if against in (None, "", "all", "latest") else [one.strip() for one in str(against).split(",")]
    versions = _versions(view, row.xid, switched, f"{target.resource.singular}url" if target.resource else "")
    others = _chosen(versions, chosen, target.xid) if chosen else _lineage(versions, whole=whole)
    return CandidateVersion(target.xid, document, known, others)


def _switched(view: View) -> EnabledFormats:
    row = view.entity(xids.CAPABILITIES)
    return EnabledFormats(loads(row.attributes) if row else INITIAL)


def _checked(switched: EnabledFormats, name: Any) -> str:
    """The name of an enabled format, in lower case. Raises: BadRequest."""
    if not isinstance(name, str):
        raise invalid_param("format", "it is needed")
    if not switched.validates(name):
        can = ", ".join(switched.formats) or "nothing"
        raise invalid_param("format", f'"{name}" cannot be checked here; use one of: {can}')
    return name.lower()


def _versions(view: View, resource: str, switched: EnabledFormats, url: str) -> dict[str, StoredVersion]:
    """The Versions of a Resource by lower-case id.

    url: the attribute of Versions whose document is stored elsewhere.
    """
    found = {}
    for row in view.subtree(f"{resource}/versions"):
        shown = loads(row.attributes)
        name = str(shown.get("format", ""))
        checked = switched.validates(name) and url not in shown
        document = FormatCheck(name.lower(), row.document)
        found[row.id.lower()] = StoredVersion(row.id, str(shown["ancestorid"]), row.createdat, document, checked)
    return found


def _chosen(versions: Mapping[str, StoredVersion], ids: Sequence[str], xid: str) -> list[StoredVersion]:
    for id in ids:
        if id.lower() not in versions:
            raise NotFound(f"{xid}/versions/{id}")
    return [versions[id.lower()] for id in ids]


def _lineage(versions: Mapping[str, StoredVersion], *, whole: bool) -> list[StoredVersion]:
    """The newest Version, which would be the ancestor of the next one; with `whole`, also all of its ancestors."""
    # In the computed modes the Versions are one chain that ends at the newest; in `manual` mode this is the rule.
    newest = ancestry.newest_version("manual", [one.lineage for one in versions.values()])
    line = [versions[newest.id.lower()]]
    while whole and line[-1].ancestor != line[-1].id:
        line.append(versions[line[-1].ancestor.lower()])
    return line
