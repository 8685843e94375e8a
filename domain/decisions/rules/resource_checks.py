"""Which Versions of one Resource a change affects, and the checks that they need.

Spec: core 1.0-rc4, "formatvalidated Attribute", "compatibilityvalidated Attribute"; model 1.0-rc4, "strictvalidation".
Rules ENT-110 to 113.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from annals.domain.decisions.capabilities import EnabledFormats
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import ResourceDraft, VersionDraft
from annals.domain.decisions.rules.compared_versions import (
    affects_descendants,
    compared_drafts,
    compares_all_ancestors,
    versions_to_check,
)
from annals.domain.decisions.rules.version_checks import ComparedVersion, VersionCheck, format_check
from annals.domain.errors.problems import CompatibilityUnknown, FormatExternal, FormatUnknown

_UNKNOWN_REASON: Final = "this registry does not know the format"
_EXTERNAL_REASON: Final = "the document is stored outside of this registry"
NO_RULE: Final = "this registry has no such rule for the format"


class ResourceChecks:
    """The checks of one Resource after a change."""

    def __init__(self, changes: ChangeSet, resource: ResourceDraft, enabled_formats: EnabledFormats) -> None:
        compatibility = resource.meta.attributes.get("compatibility")
        self._changes = changes
        self._resource = resource
        self._enabled_formats = enabled_formats
        self._rule = (
            str(compatibility).lower() if resource.type.validatecompatibility and compatibility is not None else None
        )
        #: What ancestors are compared by, or why they cannot be; each is an ancestor of many Versions.
        self._ancestors: dict[str, ComparedVersion | str] = {}

    def versions_to_check(self) -> Sequence[VersionDraft]:
        """The Versions whose results the change may affect."""
        resource, rule = self._resource, self._rule
        needs_all = self._needs_all_checked()
        may_affect_descendants = not resource.only_appends and (
            resource.needs_completion or affects_descendants(resource)
        )
        if needs_all or (rule is not None and may_affect_descendants):
            self._changes.load_versions(resource)
        if needs_all:
            return resource.live_versions()
        transitive = rule is not None and compares_all_ancestors(rule)
        return versions_to_check(resource, is_compared=rule is not None, transitive=transitive)

    def version_check(self, version: VersionDraft) -> VersionCheck:
        """The checks that a Version needs. Raises: FormatUnknown, FormatExternal, CompatibilityUnknown."""
        resource, rule = self._resource, self._rule
        skip_reason = self._why_format_skipped(version)
        if skip_reason is not None:
            return VersionCheck(resource, version, format_skipped=skip_reason, rule=rule)
        document = format_check(version)
        if rule is None:
            return VersionCheck(resource, version, document)
        rule_skip_reason = self._why_rule_skipped(version, rule)
        if rule_skip_reason is not None:
            return VersionCheck(resource, version, document, None, rule, rule_skip_reason)
        compared_versions: list[ComparedVersion] = []
        for ancestor in self._ancestors_of(version, rule):
            compared_version = self._compared_version(ancestor)
            if isinstance(compared_version, str):
                return VersionCheck(
                    resource, version, document, rule=rule, rule_skipped=f'"{ancestor.id}" was not validated'
                )
            compared_versions.append(compared_version)
        return VersionCheck(resource, version, document, None, rule, None, compared_versions)

    def _needs_all_checked(self) -> bool:
        """Whether every Version has to be checked again: the model or the compatibility rule changed."""
        meta = self._resource.meta
        is_rule_changed = (meta.before or {}).get("compatibility") != meta.attributes.get("compatibility")
        return self._changes.model is not self._changes.world.model or is_rule_changed or self._resource.needs_recheck

    def _compared_version(self, ancestor: VersionDraft) -> ComparedVersion | str:
        """What an ancestor is compared by, or why it cannot be compared. Raises: FormatUnknown, FormatExternal."""
        if ancestor.id not in self._ancestors:
            reason = self._why_format_skipped(ancestor)
            self._ancestors[ancestor.id] = reason or ComparedVersion(ancestor.id, format_check(ancestor))
        return self._ancestors[ancestor.id]

    def _why_format_skipped(self, version: VersionDraft) -> str | None:
        """Why a document cannot be checked; None if it can. Raises: FormatUnknown, FormatExternal."""
        name, type = str(version.attributes.get("format", "")), self._resource.type
        if not self._enabled_formats.is_validated(name):
            if type.strictvalidation:
                raise FormatUnknown(version.xid, format=name)
            return _UNKNOWN_REASON
        if version.attributes.get(type.singular + "url") is not None:
            if type.strictvalidation:
                raise FormatExternal(version.xid)
            return _EXTERNAL_REASON
        return None

    def _why_rule_skipped(self, version: VersionDraft, rule: str) -> str | None:
        """Why a rule cannot be checked; None if it can. Raises: CompatibilityUnknown."""
        if self._enabled_formats.has_rule(version.attributes["format"], rule):
            return None
        if self._resource.type.strictvalidation:
            raise CompatibilityUnknown(self._resource.xid, compat=rule, format=version.attributes["format"])
        return NO_RULE

    def _ancestors_of(self, version: VersionDraft, rule: str) -> Sequence[VersionDraft]:
        """The Versions that a Version is compared with: its ancestor, or all its ancestors (ENT-112)."""
        if compares_all_ancestors(rule):
            self._changes.load_versions(self._resource)
        else:
            self._changes.version(self._resource, version.attributes["ancestorid"])
        return compared_drafts(self._resource, version, rule)
