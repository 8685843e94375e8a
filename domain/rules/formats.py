"""Checks of documents against their `format`, and of Versions against `meta.compatibility`.

Spec: core 1.0-rc4, "formatvalidated Attribute", "compatibilityvalidated Attribute"; model 1.0-rc4, "validateformat",
"validatecompatibility", "strictvalidation". Rules ENT-110 to 116.
"""

from __future__ import annotations

from typing import Any, Final

from domain import formats
from domain.changes import ChangeSet
from domain.drafts import ResourceDraft, VersionDraft
from domain.formats import Format, Violation
from domain.problems import (
    CompatibilityUnknown,
    CompatibilityViolation,
    FormatExternal,
    FormatUnknown,
    FormatViolation,
)

_UNKNOWN: Final = "this registry does not know the format"
_EXTERNAL: Final = "the document is stored outside of this registry"
_NO_RULE: Final = "this registry has no such rule for the format"
_NOT_VALIDATED: Final = "the format was not validated"


def formats_hold(changes: ChangeSet) -> None:
    """Checks the Versions that a change reached, and those whose answer the change may have changed (ENT-113, ENT-115).

    Raises: FormatUnknown, FormatExternal, FormatViolation, CompatibilityUnknown, CompatibilityViolation.
    """
    for resource in changes.resources.values():
        if resource.deleted or resource.xref is not None:
            continue
        if not resource.type.validateformat:
            _forget(resource)
            continue
        if _asks_for_all(changes, resource):
            changes.load_versions(resource)
        for version in resource.living():
            if version.written or _asks_for_all(changes, resource):
                version.validated = _validated(changes, resource, version)


def _asks_for_all(changes: ChangeSet, resource: ResourceDraft) -> bool:
    """Whether every Version is to be looked at again: the model, the compatibility or the line of Versions changed."""
    before = resource.meta.before or {}
    moved = before.get("compatibility") != resource.meta.attributes.get("compatibility")
    binding = resource.type.validatecompatibility and resource.meta.attributes.get("compatibility") is not None
    return changes.model is not changes.world.model or moved or (binding and resource.unsettled)


def _forget(resource: ResourceDraft) -> None:
    for version in resource.living():
        version.validated = {}


def _validated(changes: ChangeSet, resource: ResourceDraft, version: VersionDraft) -> dict[str, Any]:
    """The attributes that say what was checked; none where nothing is."""
    name = version.attributes.get("format")
    if name is None:
        return {}
    found = formats.find(name)
    flaw = _format_flaw(changes, resource, version, found)
    shown = _said("format", flaw)
    compatibility = resource.meta.attributes.get("compatibility")
    if resource.type.validatecompatibility and compatibility is not None:
        shown |= _said("compatibility", _NOT_VALIDATED if flaw else _compatibility(changes, resource, version, found))
    return shown


def _said(what: str, flaw: str | None) -> dict[str, Any]:
    if flaw is None:
        return {f"{what}validated": True}
    return {f"{what}validated": False, f"{what}validatedreason": flaw}


def _format_flaw(
    changes: ChangeSet, resource: ResourceDraft, version: VersionDraft, found: Format | None
) -> str | None:
    """Why a document was not validated; None where it was. Raises: FormatUnknown, FormatExternal, FormatViolation."""
    name, strict = version.attributes["format"], resource.type.strictvalidation
    if found is None:
        if strict:
            raise FormatUnknown(version.xid, format=name)
        return _UNKNOWN
    if version.attributes.get(resource.type.singular + "url") is not None:
        if strict:
            raise FormatExternal(version.xid)
        return _EXTERNAL
    try:
        found.check(content_of(changes, version))
    except Violation as violation:
        raise FormatViolation(version.xid, format=name, detail=str(violation)) from None
    return None


def _compatibility(
    changes: ChangeSet, resource: ResourceDraft, version: VersionDraft, found: Format | None
) -> str | None:
    """Why compatibility was not checked; None where it was and holds."""
    rule = str(resource.meta.attributes["compatibility"]).lower()
    if found is None or rule not in found.compatibilities:
        if resource.type.strictvalidation:
            raise CompatibilityUnknown(resource.xid, compat=rule, format=version.attributes["format"])
        return _NO_RULE
    older = [content_of(changes, other) for other in _ancestors(resource, version, rule)]
    try:
        found.compare(content_of(changes, version), older, rule.removesuffix("_transitive"))
    except Violation as violation:
        raise CompatibilityViolation(resource.xid, compat=rule, detail=str(violation)) from None
    return None


def _ancestors(resource: ResourceDraft, version: VersionDraft, rule: str) -> list[VersionDraft]:
    """The Versions that one is compared with: its ancestor, or all of its line (ENT-112)."""
    line: list[VersionDraft] = []
    at = version
    while at.attributes["ancestorid"] != at.id:
        at = resource.versions[at.attributes["ancestorid"].lower()]
        line.append(at)
        if not rule.endswith("_transitive"):
            break
    return line


def content_of(changes: ChangeSet, version: VersionDraft) -> bytes:
    """The bytes of a Version's document, none where it has none (ENT-114)."""
    name = version.document
    if name is None:
        return b""
    return changes.documents[name] if name in changes.documents else changes.world.document(name)
