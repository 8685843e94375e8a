"""The order and ancestry of Versions per `versionmode`: the newest, the oldest, and who descends from whom.

Spec: model 1.0-rc4, "versionmode"; core 1.0-rc4, "ancestorid Attribute". Rules ENT-100 to 108.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import islice
from typing import Any, Final

from domain.values import timestamps

_SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?\Z"
)


@dataclass(frozen=True, slots=True)
class VersionLineage:
    """The members of a Version that ancestry needs.

    ancestor: its `ancestorid`; None: not stated yet. ordered: its ordering time in `modifiedat` mode (ENT-101).
    """

    id: str
    ancestor: str | None
    createdat: str
    ordered: str

    @property
    def is_root(self) -> bool:
        return self.ancestor == self.id


def is_semver(versionid: str) -> bool:
    """Whether an id has a place in `semver` order (ENT-102)."""
    return _SEMVER.match(versionid) is not None


def newest_version(mode: str, lines: Sequence[VersionLineage]) -> VersionLineage:
    """The newest of the Versions, of which there is at least one."""
    candidates = _leaves(lines) if mode == "manual" else lines
    return max(candidates or lines, key=_ORDERS[mode])


def oldest_versions(
    mode: str, lines: Sequence[VersionLineage], count: int, skipped: str | None = None
) -> list[VersionLineage]:
    """The Versions to remove first, in order: each is the oldest of the remaining ones.

    skipped: id of a Version that is never chosen; in `manual` mode its descendants then count as roots.

    O(n log n), because an import or a lower `maxversions` removes thousands.
    """
    others = sorted((line for line in lines if line.id != skipped), key=_ORDERS[mode])
    return list(islice(_from_the_roots(others, skipped) if mode == "manual" else others, count))


def assign_ancestors(
    mode: str, stored: Sequence[VersionLineage], added: Sequence[VersionLineage]
) -> list[VersionLineage]:
    """All Versions with their ancestors assigned.

    stored: Versions from before the request; added: those that it creates. In the computed modes only the order counts.
    In `manual` mode a stated ancestor is used. A Version whose ancestor is gone becomes a root. An unstated ancestor is
    the newest Version at that moment; new Versions are added in the order of their ids (ENT-100, ENT-107).
    """
    if mode != "manual":
        return _chain(sorted([*stored, *added], key=_ORDERS[mode]))
    present = {line.id for line in (*stored, *added)}
    settled = [line if line.ancestor in present else replace(line, ancestor=line.id) for line in stored]
    named = {line.ancestor for line in (*stored, *added)}
    latest: VersionLineage | None = None  # the last Version whose ancestor was the newest: it is the newest now
    for line in sorted(added, key=lambda line: line.id.lower()):
        if line.ancestor is not None:
            settled.append(line)
            latest = None
            continue
        below = _below(line.id, [*settled, *added]) if line.id in named else frozenset()
        latest = replace(line, ancestor=_newest_but(below, settled, latest) or line.id)
        settled.append(latest)
    return settled


def root_ids(lines: Iterable[VersionLineage]) -> list[str]:
    """Ids of the Versions that are their own ancestor."""
    return [line.id for line in lines if line.is_root]


def find_cycle(lines: Sequence[VersionLineage]) -> list[str] | None:
    """Ids along a cycle of ancestors, None if there is none."""
    ancestors = {line.id: line.ancestor for line in lines}
    sound: set[str] = set()
    for start in ancestors:
        path: dict[str, None] = {}  # a list would make a long chain of ancestors quadratic
        at: str | None = start
        while at is not None and at not in sound and ancestors.get(at) != at:
            if at in path:
                return list(path)[list(path).index(at) :]
            path[at] = None
            at = ancestors.get(at)
        sound.update(path)
    return None


def _from_the_roots(ordered: Sequence[VersionLineage], skipped: str | None) -> Iterator[VersionLineage]:
    """Versions, always the oldest root next; the children of a removed Version become roots."""
    roots, children = list[int](), dict[str | None, list[int]]()
    for rank, line in enumerate(ordered):
        (roots if line.is_root or line.ancestor == skipped else children.setdefault(line.ancestor, [])).append(rank)
    gone, any_of_them = set[int](), iter(range(len(ordered)))
    while len(gone) < len(ordered):
        # If only cycles are left, there is no root. The request is refused unless pruning breaks them here.
        rank = heappop(roots) if roots else next(any_of_them)
        if rank not in gone:
            gone.add(rank)
            yield ordered[rank]
            for child in children.pop(ordered[rank].id, ()):
                heappush(roots, child)


def _leaves(lines: Sequence[VersionLineage]) -> list[VersionLineage]:
    named = {line.ancestor for line in lines if not line.is_root}
    return [line for line in lines if line.id not in named]


def _chain(ordered: Sequence[VersionLineage]) -> list[VersionLineage]:
    previous = [ordered[0], *ordered[:-1]] if ordered else []
    return [replace(line, ancestor=before.id) for line, before in zip(ordered, previous, strict=True)]


def _newest_but(below: frozenset[str], settled: Sequence[VersionLineage], latest: VersionLineage | None) -> str | None:
    """The newest Version so far, except descendants of the new Version, which would create a cycle."""
    if latest is not None and latest.id not in below:
        return latest.id
    candidates = [line for line in settled if line.id not in below]
    return newest_version("manual", candidates).id if candidates else None


def _below(id: str, lines: Sequence[VersionLineage]) -> frozenset[str]:
    """Ids of the Versions that descend from the given one."""
    children: dict[str, list[str]] = {}
    for line in lines:
        if line.ancestor is not None and not line.is_root:
            children.setdefault(line.ancestor, []).append(line.id)
    found, todo = set[str](), [id]
    while todo:
        for child in children.get(todo.pop(), ()):
            if child not in found:
                found.add(child)
                todo.append(child)
    return frozenset(found)


def _semver_order(line: VersionLineage) -> Any:
    found = _SEMVER.match(line.id)
    if found is None:
        return ((0, 0, 0), (0, ()), line.id.lower())
    release = tuple(int(part) for part in found.group(1, 2, 3))
    parts = found[4].split(".") if found[4] else []
    prerelease = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
    return (release, (0, prerelease) if parts else (1, ()), line.id.lower())


_ORDERS: Final[dict[str, Callable[[VersionLineage], Any]]] = {
    "manual": lambda line: (timestamps.instant_key(line.createdat), line.id.lower()),
    "createdat": lambda line: (timestamps.instant_key(line.createdat), line.id.lower()),
    "modifiedat": lambda line: (timestamps.instant_key(line.ordered), line.id.lower()),
    "semver": _semver_order,
}

#: All values of `versionmode` that this registry supports.
MODES: Final = tuple(_ORDERS)
