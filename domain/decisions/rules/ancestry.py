"""The order and ancestry of Versions per `versionmode`: the newest, the oldest, and who descends from whom.

Spec: model 1.0-rc4, "versionmode"; core 1.0-rc4, "ancestorid Attribute". Rules ENT-100 to 108.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import Any, Final, NamedTuple

from annals.domain.values import timestamps

_SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?\Z"
)


class VersionLineage(NamedTuple):
    """The members of a Version that ancestry needs.

    ancestor: its `ancestorid`; None: not stated yet. ordering_time: its ordering time in `modifiedat` mode (ENT-101).
    """

    id: str
    ancestor: str | None
    createdat: str
    ordering_time: str

    @property
    def is_root(self) -> bool:
        return self.ancestor == self.id


def is_semver(versionid: str) -> bool:
    """Whether an id has a place in `semver` order (ENT-102)."""
    return _SEMVER.match(versionid) is not None


def newest_version(mode: str, lineages: Sequence[VersionLineage]) -> VersionLineage:
    """The newest of the Versions, of which there is at least one."""
    candidates = _leaves(lineages) if mode == "manual" else lineages
    return max(candidates or lineages, key=_SORT_KEYS[mode])


def oldest_versions(
    mode: str, lineages: Sequence[VersionLineage], count: int, excluded_id: str | None = None
) -> list[VersionLineage]:
    """The Versions to remove first, in order: each is the oldest of the remaining ones.

    excluded_id: id of a Version that is never chosen; in `manual` mode its descendants then count as roots.

    O(n log n), because an import or a lower `maxversions` removes thousands.
    """
    candidates = sorted((lineage for lineage in lineages if lineage.id != excluded_id), key=_SORT_KEYS[mode])
    return list(islice(_oldest_roots_first(candidates, excluded_id) if mode == "manual" else candidates, count))


def assign_ancestors(
    mode: str, stored: Sequence[VersionLineage], added: Sequence[VersionLineage]
) -> list[VersionLineage]:
    """All Versions with their ancestors assigned.

    stored: Versions from before the request; added: those that it creates. In the computed modes only the order counts.
    In `manual` mode a stated ancestor is used. A Version whose ancestor is gone becomes a root. An unstated ancestor is
    the newest Version at that moment; new Versions are added in the order of their ids (ENT-100, ENT-107).
    """
    if mode != "manual":
        return _link_in_order(sorted([*stored, *added], key=_SORT_KEYS[mode]))
    all_ids = {lineage.id for lineage in (*stored, *added)}
    assigned = [lineage if lineage.ancestor in all_ids else lineage._replace(ancestor=lineage.id) for lineage in stored]
    forest = _Forest([*assigned, *added])
    for lineage in assigned:
        forest.add(lineage)
    latest: str | None = None  # the last Version whose ancestor was the newest: it is the newest now
    for lineage in sorted(added, key=lambda line: line.id.lower()):
        if lineage.ancestor is not None:
            latest = None
        else:
            is_latest = latest is not None and not forest.descends(latest, lineage.id)
            newest = latest if is_latest else forest.newest_outside(lineage.id)
            lineage = lineage._replace(ancestor=newest or lineage.id)
            latest = lineage.id
        assigned.append(lineage)
        forest.add(lineage)
    return assigned


def append_in_order(mode: str, newest: VersionLineage, added: Sequence[VersionLineage]) -> list[VersionLineage] | None:
    """New Versions with their ancestors assigned, the newest last; None unless all of them come after `newest`.

    It equals `assign_ancestors` for all Versions, of which `newest` is the newest: the others stay as they are.
    """
    key = _SORT_KEYS[mode]
    if any(lineage.ancestor not in (None, newest.id) for lineage in added) or (
        len(added) > 1 and any(lineage.ancestor is not None for lineage in added)
    ):
        return None
    ordered = sorted(added, key=(lambda lineage: lineage.id.lower()) if mode == "manual" else key)
    if any(key(lineage) <= key(newest) for lineage in (ordered[-1:] if mode == "manual" else ordered)):
        return None
    return [
        lineage._replace(ancestor=ancestor.id) for lineage, ancestor in zip(ordered, [newest, *ordered], strict=False)
    ]


def chain_of(lineages: Sequence[VersionLineage]) -> tuple[str, ...] | None:
    """The ids of Versions that are a chain, the oldest first; None if they are not.

    In a chain, one Version is a root, and each Version is the ancestor of one other at most. So there is no choice of
    the next one to remove, whatever the mode is.
    """
    successors = {lineage.ancestor: lineage.id for lineage in lineages if not lineage.is_root}
    ids = root_ids(lineages)
    if len(ids) + len(successors) != len(lineages) or len(ids) != 1:
        return None
    while (successor := successors.get(ids[-1])) is not None:
        ids.append(successor)
    return tuple(ids) if len(ids) == len(lineages) else None


def earlier_ordering_times(lineages: Sequence[VersionLineage], movable_ids: Collection[str]) -> dict[str, str]:
    """The ordering times to change, by id, so that each Version is before its descendants in `modifiedat` mode.

    movable_ids: Versions whose times may change; they become earlier. Versions on a cycle are left as they are.
    """
    key, ids = _SORT_KEYS["modifiedat"], {lineage.id for lineage in lineages}
    children: defaultdict[str | None, list[VersionLineage]] = defaultdict(list)
    ancestors_first: list[VersionLineage] = []
    for lineage in lineages:
        is_first = lineage.is_root or lineage.ancestor not in ids
        (ancestors_first if is_first else children[lineage.ancestor]).append(lineage)
    for lineage in ancestors_first:
        ancestors_first.extend(children[lineage.id])
    settled: dict[str, VersionLineage] = {}
    for lineage in reversed(ancestors_first):
        successor = min((settled[child.id] for child in children[lineage.id]), key=key, default=None)
        if successor is not None and key(lineage) > key(successor) and lineage.id in movable_ids:
            lineage = lineage._replace(ordering_time=successor.ordering_time)
            if key(lineage) > key(successor):
                lineage = lineage._replace(ordering_time=timestamps.just_before(successor.ordering_time))
        settled[lineage.id] = lineage
    return {
        lineage.id: time
        for lineage in lineages
        if (time := settled.get(lineage.id, lineage).ordering_time) != lineage.ordering_time
    }


def root_ids(lineages: Iterable[VersionLineage]) -> list[str]:
    """Ids of the Versions that are their own ancestor."""
    return [lineage.id for lineage in lineages if lineage.is_root]


def find_cycle(lineages: Sequence[VersionLineage]) -> list[str] | None:
    """Ids along a cycle of ancestors, None if there is none."""
    ancestors = {lineage.id: lineage.ancestor for lineage in lineages}
    acyclic_ids: set[str] = set()
    for start_id in ancestors:
        path: dict[str, None] = {}  # a list would make a long chain of ancestors quadratic
        current_id: str | None = start_id
        while current_id is not None and current_id not in acyclic_ids and ancestors.get(current_id) != current_id:
            if current_id in path:
                return list(path)[list(path).index(current_id) :]
            path[current_id] = None
            current_id = ancestors.get(current_id)
        acyclic_ids.update(path)
    return None


def _oldest_roots_first(ordered: Sequence[VersionLineage], excluded_id: str | None) -> Iterator[VersionLineage]:
    """Versions, always the oldest root next; the children of a removed Version become roots."""
    roots, children = list[int](), dict[str | None, list[int]]()
    for rank, lineage in enumerate(ordered):
        (
            roots if lineage.is_root or lineage.ancestor == excluded_id else children.setdefault(lineage.ancestor, [])
        ).append(rank)
    removed_ranks, all_ranks = set[int](), iter(range(len(ordered)))
    while len(removed_ranks) < len(ordered):
        # If only cycles are left, there is no root. The request is refused unless pruning breaks them here.
        rank = heappop(roots) if roots else next(all_ranks)
        if rank not in removed_ranks:
            removed_ranks.add(rank)
            yield ordered[rank]
            for child in children.pop(ordered[rank].id, ()):
                heappush(roots, child)


def _leaves(lineages: Sequence[VersionLineage]) -> list[VersionLineage]:
    ancestor_ids = {lineage.ancestor for lineage in lineages if not lineage.is_root}
    return [lineage for lineage in lineages if lineage.id not in ancestor_ids]


def _link_in_order(ordered: Sequence[VersionLineage]) -> list[VersionLineage]:
    previous = [ordered[0], *ordered[:-1]] if ordered else []
    return [lineage._replace(ancestor=ancestor.id) for lineage, ancestor in zip(ordered, previous, strict=True)]


class _Forest:
    """The Versions of a `manual` Resource while ancestors are assigned: who descends from whom, and which is newest.

    A step takes the time of a few look-ups, so that a request with thousands of Versions does not become quadratic.
    """

    def __init__(self, lineages: Iterable[VersionLineage]) -> None:
        """lineages: all Versions, also those that are added later."""
        self._newest_first = sorted(lineages, key=_SORT_KEYS["manual"], reverse=True)
        self._rank_by_id = {lineage.id: rank for rank, lineage in enumerate(self._newest_first)}
        self._leaf_ranks: list[int] = []  # a heap; members that have got children are dropped when they are read
        self._parent_ids: set[str] = set()
        self._ancestor_by_id: dict[str, str] = {}  # any ancestor, the farther the better
        for lineage in self._newest_first:
            self._link(lineage)

    def add(self, lineage: VersionLineage) -> None:
        """Makes a Version, which has an ancestor now, a candidate for the newest."""
        self._link(lineage)
        heappush(self._leaf_ranks, self._rank_by_id[lineage.id])
        if lineage.ancestor is not None and not lineage.is_root:
            self._parent_ids.add(lineage.ancestor)

    def descends(self, id: str, ancestor: str) -> bool:
        """Whether a Version descends from one whose ancestor is not assigned yet."""
        return self._first_ancestor(id) == ancestor

    def newest_outside(self, ancestor: str) -> str | None:
        """The id of the newest Version, except descendants of one whose ancestor is not assigned yet."""
        skipped: list[int] = []
        newest = None
        while self._leaf_ranks and newest is None:
            rank = heappop(self._leaf_ranks)
            id = self._newest_first[rank].id
            if id not in self._parent_ids:
                skipped.append(rank)
                newest = None if self.descends(id, ancestor) else id
        for rank in skipped:
            heappush(self._leaf_ranks, rank)
        return newest

    def _link(self, lineage: VersionLineage) -> None:
        """Records the ancestor of a Version. A link that would close a cycle is left out."""
        if lineage.id not in self._ancestor_by_id and lineage.ancestor is not None:
            first_id = self._first_ancestor(lineage.ancestor)
            if first_id != lineage.id:
                self._ancestor_by_id[lineage.id] = first_id

    def _first_ancestor(self, id: str) -> str:
        """The Version at the end of the known ancestors."""
        path: list[str] = []
        while id in self._ancestor_by_id:
            path.append(id)
            id = self._ancestor_by_id[id]
        self._ancestor_by_id.update(dict.fromkeys(path, id))
        return id


def _semver_order(lineage: VersionLineage) -> Any:
    match = _SEMVER.match(lineage.id)
    if match is None:
        return ((0, 0, 0), (0, ()), lineage.id.lower())
    release = tuple(int(part) for part in match.group(1, 2, 3))
    parts = match[4].split(".") if match[4] else []
    prerelease = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
    return (release, (0, prerelease) if parts else (1, ()), lineage.id.lower())


_SORT_KEYS: Final[dict[str, Callable[[VersionLineage], Any]]] = {
    "manual": lambda line: (timestamps.instant_key(line.createdat), line.id.lower()),
    "createdat": lambda line: (timestamps.instant_key(line.createdat), line.id.lower()),
    "modifiedat": lambda line: (timestamps.instant_key(line.ordering_time), line.id.lower()),
    "semver": _semver_order,
}

#: All values of `versionmode` that this registry supports.
MODES: Final = tuple(_SORT_KEYS)
