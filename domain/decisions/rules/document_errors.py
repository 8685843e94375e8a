"""Errors about documents, with the details needed for a fix: the rule, the places and their content.

Spec: core 1.0-rc4, "Error Processing": it allows additional members of an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from annals.domain.decisions.changes.drafts import ResourceDraft, VersionDraft
from annals.domain.decisions.checks.document_checks import CheckResult
from annals.domain.errors.problems import CompatibilityViolation, FormatViolation, Problem
from annals.domain.formats import DocumentLocation, Incompatibility


def format_violation(version: VersionDraft, result: CheckResult) -> Problem:
    """The error for a document that is invalid in its format; `violations` has the places."""
    violations = [
        {"versionid": version.id, "text": incompatibility.text, **members_of_location(incompatibility.reader)}
        for incompatibility in result
    ]
    return FormatViolation(
        version.xid,
        format=version.attributes["format"],
        detail="; ".join(
            reason_with_location(incompatibility.text, incompatibility.reader) for incompatibility in result
        ),
        extensions={"violations": violations},
    )


def compatibility_violation(resource: ResourceDraft, rule: str, entries: Sequence[dict[str, Any]]) -> Problem:
    """The error for Versions that break a rule; `incompatibilities` has the entries."""
    return CompatibilityViolation(
        resource.xid,
        compat=rule,
        detail="; ".join(entry_text(entry) for entry in entries),
        extensions={"incompatibilities": list(entries)},
    )


def incompatibility_entry(
    incompatibility: Incompatibility, version: str, ancestor: str, *, backward: bool
) -> dict[str, Any]:
    """One incompatibility as members of a response: the rule, and the place in each of the two Versions.

    backward: the Version is the reader of its ancestor's data; otherwise the ancestor is the reader.
    """
    newer, older = (
        (incompatibility.reader, incompatibility.writer)
        if backward
        else (incompatibility.writer, incompatibility.reader)
    )
    return {
        "direction": "backward" if backward else "forward",
        "rule": incompatibility.rule,
        "text": incompatibility.text,
        "version": {"versionid": version, **members_of_location(newer)},
        "ancestor": {"versionid": ancestor, **members_of_location(older)},
    }


def entry_text(entry: dict[str, Any]) -> str:
    """An entry as text."""
    version, ancestor = entry["version"], entry["ancestor"]
    version_place = f" at {_location_text(version)}" if _location_text(version) else ""
    ancestor_place = f" at {_location_text(ancestor)}" if _location_text(ancestor) else ""
    return (
        f'Version "{version["versionid"]}"{version_place} is not {entry["direction"]} compatible with '
        f'"{ancestor["versionid"]}"{ancestor_place}: {entry["text"]} ({entry["rule"]})'
    )


def members_of_location(location: DocumentLocation | None) -> dict[str, Any]:
    """A place as members of a response."""
    if location is None:
        return {}
    members = {"pointer": location.pointer, "line": location.line, "fragment": location.fragment}
    return {name: value for name, value in members.items() if value is not None}


def reason_with_location(text: str, location: DocumentLocation | None) -> str:
    """A reason with its place, as text."""
    place = _location_text(members_of_location(location))
    return f"{text} (at {place})" if place else text


def _location_text(location_members: dict[str, Any]) -> str:
    if "pointer" in location_members:
        return f'"{location_members["pointer"]}"'
    return f"line {location_members['line']}" if "line" in location_members else ""
