"""Holds the model and the Versions after a change against the capabilities that it leaves (CAP-15).

Spec: core 1.0-rc4, "Registry Capabilities". A request can disable what its own model or data no longer use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from annals.domain.decisions.capabilities import (
    EnabledFormats,
    capabilities_after,
    current_capabilities,
    has_same_data,
)
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.errors.problems import CapabilityError, ModelError
from annals.domain.registry.entities import Attributes
from annals.domain.values import xid as xids


def check_versionmodes(changes: ChangeSet) -> None:
    """Raises: CapabilityError for a Resource type whose `versionmode` the change disables; ModelError for a new type
    with one that was disabled before."""
    enabled_before, enabled = (
        capabilities["versionmodes"] for capabilities in (current_capabilities(changes), capabilities_after(changes))
    )
    if changes.model is changes.world.model and enabled == enabled_before:
        return
    for group in changes.model.groups.values():
        for type in group.resources.values():
            if type.versionmode not in enabled:
                detail = f'"{group.plural}.{type.plural}" uses the versionmode "{type.versionmode}"'
                if type.versionmode in enabled_before:
                    raise CapabilityError(error_detail=detail)
                raise ModelError(error_detail=f"{detail}, which is switched off")


def recheck_formats(changes: ChangeSet) -> None:
    """Schedules a new check of the Versions whose format or rule the change enables. Cost: O(Versions) if it does.

    Raises: CapabilityError for a stored Version that still uses a format or rule that the change disables.
    """
    before, after = current_capabilities(changes), capabilities_after(changes)
    if has_same_data(before, after):
        return
    usages = _FormatUsages(changes, EnabledFormats(before), EnabledFormats(after))
    for group in changes.model.groups.values():
        for type in group.resources.values():
            if type.validateformat:
                for xid in usages.affected_resources(f"{group.plural}.{type.plural}"):
                    changes.resource(xid).needs_recheck = True


class _FormatUsages:
    """How stored Versions use formats and rules after a change, and which of these it enables or disables."""

    def __init__(self, changes: ChangeSet, previous: EnabledFormats, current: EnabledFormats) -> None:
        self._changes = changes
        self._previous = previous
        self._current = current

    def affected_resources(self, type: str) -> list[str]:
        """The Resources of a type for which a format or rule is enabled, each once. Raises: CapabilityError."""
        rules = dict(self._rules(type))
        affected: dict[str, None] = {}
        for xid, attributes in self._versions(type):
            resource = xids.resource_of(xid)
            if "format" in attributes and self._is_affected(xid, attributes["format"], rules.get(resource)):
                affected[resource] = None
        return list(affected)

    def _rules(self, type: str) -> Iterator[tuple[str, str]]:
        for entity in self._changes.world.entities_of_type(type):
            draft = self._changes.resources.get(xids.stream(entity.xid))
            meta: Attributes = draft.meta.attributes if draft else entity.attributes["meta"]
            if (rule := meta.get("compatibility")) is not None:
                yield entity.xid, rule.lower()

    def _versions(self, type: str) -> Iterator[tuple[str, Attributes]]:
        for entity in self._changes.world.entities_of_type(f"{type}.versions"):
            if not self._changes.is_version_deleted(entity.xid):
                draft = self._changes.resources.get(xids.stream(xids.resource_of(entity.xid)))
                version = draft.versions.get(entity.id.lower()) if draft else None
                yield entity.xid, version.attributes if version else entity.attributes

    def _is_affected(self, version: str, format: Any, rule: str | None) -> bool:
        was_enabled, is_enabled = (
            (enabled.is_validated(format), rule is not None and enabled.has_rule(format, rule))
            for enabled in (self._previous, self._current)
        )
        for usage, was, is_now in zip(
            (f'the format "{format}"', f'the rule "{rule}" of "{format}"'), was_enabled, is_enabled, strict=True
        ):
            if was and not is_now:
                raise CapabilityError(error_detail=f'"{version}" uses {usage}')
        return was_enabled != is_enabled
