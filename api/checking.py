"""What a document is checked against without being written: its format, and Versions that are stored.

Spec: core 1.0-rc4, "formatvalidated Attribute", "compatibility Attribute"; the answer's form is ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from api.feeds.asked import refused
from api.paths import Target
from domain import formats
from domain import xid as xids
from domain.capabilities import INITIAL, Switched
from domain.checks import Document, Question, Reading, Verdict, Verdicts
from domain.documents import digest
from domain.jsontext import loads
from domain.problems import NotFound
from domain.rules.violations import entry, place
from projections.entities.query import View
from projections.entities.xref import xref_of

_TRANSITIVE: Final = "_transitive"


@dataclass(frozen=True, slots=True)
class Stored:
    """A Version with a document: its id, its ancestor's, and what is asked about its document."""

    id: str
    ancestor: str
    document: Document


@dataclass(frozen=True, slots=True)
class Candidate:
    """A document that might become a Version. rule: lower case; None: nothing is compared. against: nearest first."""

    xid: str
    document: Document
    rule: str | None
    against: Sequence[Stored]

    def questions(self) -> Iterator[Question]:
        """All that has to be known."""
        yield self.document
        for other in self.against:
            yield from self._readings(other)

    def told(self, verdicts: Verdicts) -> dict[str, Any]:
        """The answer: `valid` with `violations`, `compatible` with `incompatibilities`; null where nothing compares."""
        flaws = verdicts[self.document]
        found = [] if flaws else [one for other in self.against for one in self._told(other, verdicts)]
        return {
            "xid": self.xid,
            "format": self.document.format,
            "valid": not flaws,
            "violations": [{"text": one.text, **place(one.reader)} for one in flaws],
            "compatibility": self.rule,
            "against": [other.id for other in self.against],
            "compatible": None if self.rule is None or flaws else not found,
            "incompatibilities": found,
        }

    def _readings(self, other: Stored) -> Iterator[Reading]:
        assert self.rule is not None
        if not self.rule.startswith("forward"):
            yield Reading(self.document, other.document)
        if not self.rule.startswith("backward"):
            yield Reading(other.document, self.document, newer="writer")

    def _told(self, other: Stored, verdicts: Mapping[Question, Verdict]) -> Iterator[dict[str, Any]]:
        for reading in self._readings(other):
            backward = reading.reader == self.document
            for one in verdicts[reading]:
                told = entry(one, "", other.id, backward=backward)
                yield {**told, "version": {name: value for name, value in told["version"].items() if value}}


def candidate(
    view: View, target: Target, content: bytes, format: str | None, rule: str | None, against: str | None
) -> Candidate:
    """A document in the place of the next Version of a Resource, which need not be there yet when the format is given.

    format: of the document, else that of the default Version. rule: else `meta.compatibility`. against: `latest`, `all`
    or ids of Versions, else what the rule says. Raises: NotFound, BadRequest for what cannot be checked here.
    """
    row = view.entity(target.xid)
    row = view.entity(pointed) if (pointed := xref_of(row)) else row
    shown: dict[str, Any] = loads(row.attributes) if row else {}
    if row is None and format is None:
        raise NotFound(target.xid, detail='a Resource that is not there yet needs the parameter "format"')
    name = format or shown.get("format")
    rule = (rule or shown.get("meta", {}).get("compatibility") or "").lower() or None
    document = Document(_checked(view, name, rule), digest(content))
    if rule is None or row is None:
        return Candidate(target.xid, document, rule, ())
    whole = {"all": True, "latest": False}.get(against or "", rule.endswith(_TRANSITIVE))
    chosen = None if against in (None, "all", "latest") else [one.strip() for one in str(against).split(",")]
    versions = _versions(view, row.xid)
    others = _chosen(versions, chosen, target.xid) if chosen else _line(versions, shown["versionid"], whole=whole)
    return Candidate(target.xid, document, rule, others)


def _checked(view: View, name: Any, rule: str | None) -> str:
    """The name of a format, in lower case, that is switched on and has the rule. Raises: BadRequest."""
    row = view.entity(xids.CAPABILITIES)
    switched = Switched(loads(row.attributes) if row else INITIAL)
    if not isinstance(name, str) or not switched.validates(name):
        known = ", ".join(name for room in formats.ROOMS for name in room.names)
        raise refused("format", f"{name!r} cannot be checked here; what can be: {known}" if name else "it is needed")
    if rule is not None and not switched.compares(name, rule):
        raise refused("compatibility", f'"{rule}" cannot be checked for "{name}"')
    return name.lower()


def _versions(view: View, resource: str) -> dict[str, Stored]:
    """The Versions of a Resource by id in lower case."""
    found = {}
    for row in view.subtree(f"{resource}/versions"):
        shown = loads(row.attributes)
        document = Document(str(shown.get("format", "")).lower(), row.document)
        found[row.id.lower()] = Stored(row.id, str(shown["ancestorid"]), document)
    return found


def _chosen(versions: Mapping[str, Stored], ids: Sequence[str], xid: str) -> list[Stored]:
    for id in ids:
        if id.lower() not in versions:
            raise NotFound(f"{xid}/versions/{id}")
    return [versions[id.lower()] for id in ids if _comparable(versions[id.lower()])]


def _line(versions: Mapping[str, Stored], default: str, *, whole: bool) -> list[Stored]:
    """The default Version, and with `whole` all that it descends from."""
    line = [versions[default.lower()]]
    while whole and line[-1].ancestor != line[-1].id:
        line.append(versions[line[-1].ancestor.lower()])
    return [one for one in line if _comparable(one)]


def _comparable(version: Stored) -> bool:
    return version.document.sha256 is not None and formats.find(version.document.format) is not None
