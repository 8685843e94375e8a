"""Which Versions a Version is compared with, and which Versions a change may affect.

Spec: core 1.0-rc4, "compatibility Attribute", "ancestorid Attribute". Rules ENT-112, ENT-113, SC-32, SC-33.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from annals.domain.decisions.changes.drafts import ResourceDraft, VersionDraft

V = TypeVar("V")


def compares_all_ancestors(rule: str) -> bool:
    """Whether a rule compares a Version with all its ancestors, otherwise only with the nearest (ENT-112).

    rule: in lower case.
    """
    return rule.endswith("_transitive")


def ancestors_of(version: V, ancestor_of: Callable[[V], V | None], *, all_ancestors: bool) -> list[V]:
    """A Version's ancestors, nearest first; a root has none (SC-32).

    ancestor_of: returns the nearest ancestor of a Version; None for a root. all_ancestors: all up to the root,
    otherwise only the nearest.
    """
    ancestors: list[V] = []
    current = ancestor_of(version)
    while current is not None:
        ancestors.append(current)
        current = ancestor_of(current) if all_ancestors else None
    return ancestors


def compared_drafts(resource: ResourceDraft, version: VersionDraft, rule: str) -> list[VersionDraft]:
    """The Versions that a rule compares a Version with. The loaded Versions of the Resource have to contain them."""

    def ancestor_of(draft: VersionDraft) -> VersionDraft | None:
        return None if _is_root(draft) else resource.versions[_ancestor_id(draft)]

    return ancestors_of(version, ancestor_of, all_ancestors=compares_all_ancestors(rule))


def versions_to_check(resource: ResourceDraft, *, is_compared: bool, transitive: bool) -> list[VersionDraft]:
    """The Versions to check after a change: the changed ones, and those that descend from them.

    is_compared: whether Versions are compared with ancestors at all. transitive: all descendants count, otherwise only
    the nearest. O(loaded Versions).
    """
    versions = resource.live_versions()
    url = resource.type.singular + "url"
    if not is_compared:
        return [version for version in versions if _needs_check(version, url)]
    by_id = {version.id.lower(): version for version in versions}
    decisions: dict[str, bool] = {}
    for version in versions:
        for candidate in reversed(_undecided_ancestors(version, by_id, decisions)):
            ancestor = None if _is_root(candidate) else by_id.get(_ancestor_id(candidate))
            is_inherited = ancestor is not None and (
                decisions[ancestor.id] if transitive else _has_other_content(ancestor, url)
            )
            decisions[candidate.id] = _needs_check(candidate, url) or is_inherited
    return [version for version in versions if decisions[version.id]]


def affects_descendants(resource: ResourceDraft) -> bool:
    """Whether a loaded change can affect the results of descendant Versions, which may not be loaded."""
    url = resource.type.singular + "url"
    return any(_needs_check(version, url) for version in resource.live_versions())


def _undecided_ancestors(
    version: VersionDraft, by_id: Mapping[str, VersionDraft], decisions: Mapping[str, bool]
) -> list[VersionDraft]:
    """A Version and its ancestors, up to the first one that is decided."""
    path: list[VersionDraft] = []
    current: VersionDraft | None = version
    while current is not None and current.id not in decisions:
        path.append(current)
        current = None if _is_root(current) else by_id.get(_ancestor_id(current))
    return path


def _needs_check(version: VersionDraft, url: str) -> bool:
    """Whether its own result may have changed.

    This is the case for another document, for another ancestor, and if an earlier check was not possible.
    """
    stored = version.before
    if stored is None or stored["ancestorid"] != version.attributes["ancestorid"] or _has_other_content(version, url):
        return True
    return version.is_written and any(value is False for value in version.validation_results.values())


def _has_other_content(version: VersionDraft, url: str) -> bool:
    """Whether its document, or the format of its document, has changed."""
    entity = version.entity
    if entity is None or version.document != entity.document:
        return True
    names = ("format", url) if version.is_written else ()
    return any(entity.attributes.get(name) != version.attributes.get(name) for name in names)


def _is_root(version: VersionDraft) -> bool:
    return bool(version.attributes["ancestorid"] == version.id)


def _ancestor_id(version: VersionDraft) -> str:
    return str(version.attributes["ancestorid"]).lower()
