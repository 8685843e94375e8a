"""Errors about documents, with the details needed for a fix: the rule, the places and their content.

Spec: core 1.0-rc4, "Error Processing": it allows additional members of an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from domain.decisions.changes.drafts import ResourceDraft, VersionDraft
from domain.decisions.document_checks import CheckResult
from domain.errors.problems import CompatibilityViolation, FormatViolation, Problem
from domain.formats import DocumentLocation, Incompatibility


def format_violation(version: VersionDraft, verdict: CheckResult) -> Problem:
    """The error for a document that is invalid in its format; `violations` has the places."""
    found = [{"versionid": version.id, "text": one.text, **spot_members(one.reader)} for one in verdict]
    return FormatViolation(
        version.xid,
        format=version.attributes["format"],
        detail="; ".join(reason_with_spot(one.text, one.reader) for one in verdict),
        extensions={"violations": found},
    )


def compatibility_violation(resource: ResourceDraft, rule: str, entries: Sequence[dict[str, Any]]) -> Problem:
    """The error for Versions that break a rule; `incompatibilities` has the entries."""
    return CompatibilityViolation(
        resource.xid,
        compat=rule,
        detail="; ".join(entry_text(entry) for entry in entries),
        extensions={"incompatibilities": list(entries)},
    )


def incompatibility_entry(found: Incompatibility, version: str, ancestor: str, *, backward: bool) -> dict[str, Any]:
    """One incompatibility as members of a response: the rule, and the place in each of the two Versions.

    backward: the Version is the reader of its ancestor's data; otherwise the ancestor is the reader.
    """
    newer, older = (found.reader, found.writer) if backward else (found.writer, found.reader)
    return {
        "direction": "backward" if backward else "forward",
        "rule": found.rule,
        "text": found.text,
        "version": {"versionid": version, **spot_members(newer)},
        "ancestor": {"versionid": ancestor, **spot_members(older)},
    }


def entry_text(entry: dict[str, Any]) -> str:
    """An entry as text."""
    version, ancestor = entry["version"], entry["ancestor"]
    where = f" at {_where(version)}" if _where(version) else ""
    there = f" at {_where(ancestor)}" if _where(ancestor) else ""
    return (
        f'Version "{version["versionid"]}"{where} is not {entry["direction"]} compatible with '
        f'"{ancestor["versionid"]}"{there}: {entry["text"]} ({entry["rule"]})'
    )


def spot_members(spot: DocumentLocation | None) -> dict[str, Any]:
    """A place as members of a response."""
    if spot is None:
        return {}
    members = {"pointer": spot.pointer, "line": spot.line, "fragment": spot.fragment}
    return {name: value for name, value in members.items() if value is not None}


def reason_with_spot(text: str, spot: DocumentLocation | None) -> str:
    """A reason with its place, as text."""
    where = _where(spot_members(spot))
    return f"{text} (at {where})" if where else text


def _where(place: dict[str, Any]) -> str:
    if "pointer" in place:
        return f'"{place["pointer"]}"'
    return f"line {place['line']}" if "line" in place else ""
