"""Puts each incompatibility at the change that it names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

from annals.domain.formats.changes.elements import DocumentElements
from annals.domain.formats.changes.schema_change import ChangeKind, SchemaChange
from annals.domain.formats.contract import DocumentLocation, Incompatibility

_WORD: Final = re.compile(r"[\w@]+")
_QUOTED: Final = re.compile(r'"([^"]+)"')


class _SidePlace(NamedTuple):
    """A location in one of the two documents: a pointer or a line."""

    is_left: bool
    at: str | int


class _Reason(NamedTuple):
    """An incompatibility with its locations in the two documents."""

    direction: Literal["backward", "forward"]
    incompatibility: Incompatibility
    left: DocumentLocation | None
    right: DocumentLocation | None

    @property
    def places(self) -> list[_SidePlace]:
        """The newer document is the first, because most changes have their place there."""
        return [place for place in (_place(self.right, is_left=False), _place(self.left, is_left=True)) if place]


class ChangesWithVerdicts:
    """Changes, each with at most one reason in each direction.

    all: the changes found, and then those that only a reason shows.
    """

    def __init__(self, found: Sequence[SchemaChange], left: DocumentElements, right: DocumentElements) -> None:
        self.all: list[SchemaChange] = []
        self._paths = {**_paths_by_place(left, is_left=True), **_paths_by_place(right, is_left=False)}
        #: Changes of properties, see `fields.py`, by the path of what has them.
        self._by_owner: defaultdict[str, list[int]] = defaultdict(list)
        self._by_place: defaultdict[_SidePlace, list[int]] = defaultdict(list)
        self._by_parent: defaultdict[_SidePlace, list[int]] = defaultdict(list)
        self._by_member: defaultdict[tuple[_SidePlace, str], list[int]] = defaultdict(list)
        for change in found:
            self._append(change)

    def add_reasons(self, backward: Iterable[Incompatibility], forward: Iterable[Incompatibility]) -> None:
        """Puts each reason at a change; a reason that fits none becomes one."""
        for one in backward:
            self._add(_Reason("backward", one, one.writer, one.reader))
        for one in forward:
            self._add(_Reason("forward", one, one.reader, one.writer))

    def _add(self, reason: _Reason) -> None:
        verdict: dict[str, Any] = {reason.direction: reason.incompatibility}
        for index in self._candidates(reason):
            if getattr(self.all[index], reason.direction) is None:
                self.all[index] = replace(self.all[index], **verdict)
                return
        self._append(replace(self._own_change(reason), **verdict))

    def _append(self, change: SchemaChange) -> None:
        index = len(self.all)
        self.all.append(change)
        owner, space, _ = change.path.partition(" ")
        if space and change.name:
            self._by_owner[owner].append(index)
        for place in filter(None, (_place(change.left, is_left=True), _place(change.right, is_left=False))):
            self._by_place[place].append(index)
            if isinstance(place.at, str) and place.at:
                self._by_parent[_SidePlace(place.is_left, place.at.rpartition("/")[0])].append(index)
            for owner_place in _owners(place):
                self._by_member[owner_place, change.name].append(index)

    def _candidates(self, reason: _Reason) -> Iterator[int]:
        """The changes that a reason may be about, the most likely first."""
        text, places = reason.incompatibility.text, reason.places
        names = dict.fromkeys(_QUOTED.findall(text))
        for place in places:
            for name in names:
                yield from self._by_member.get((place, name), ())
        words = {*names, *_WORD.findall(text), *reason.incompatibility.rule.split("-")}
        for by_place in (self._by_place, self._by_parent):
            for place in places:
                yield from (index for index in by_place.get(place, ()) if self.all[index].name in words)
        for _, nearest in sorted(map(self._nearest, places)):
            yield from nearest
        properties = self._by_owner.get(self._path_around(places), ())
        if len(properties) == 1:
            yield from properties

    def _nearest(self, place: _SidePlace) -> tuple[int, list[int]]:
        """The changes at a place, or at the innermost part around it, and how many levels that is away."""
        for distance, around in enumerate(_places_around(place)):
            found = self._by_place.get(around)
            # With several parts on one line, only a name says which of them is meant.
            if found and (isinstance(place.at, str) or len(found) == 1):
                return distance, found
        return 0, []

    def _path_around(self, places: Iterable[_SidePlace]) -> str:
        """The path of the innermost element at or around the first place that has one; empty for the document."""
        paths = (self._paths.get(around) for place in places for around in _places_around(place))
        return next(filter(None, paths), "")

    def _own_change(self, reason: _Reason) -> SchemaChange:
        path = self._path_around(reason.places)
        before, after = (None if side is None else side.fragment for side in (reason.left, reason.right))
        left, right = (None if side is None else replace(side, fragment=None) for side in (reason.left, reason.right))
        return SchemaChange(ChangeKind.CHANGED, path, path.rpartition(".")[2], left, right, before, after)


def _place(location: DocumentLocation | None, *, is_left: bool) -> _SidePlace | None:
    if location is None:
        return None
    at = location.line if location.pointer is None else location.pointer
    return None if at is None else _SidePlace(is_left, at)


def _places_around(place: _SidePlace) -> Iterator[_SidePlace]:
    """The place, and those of the parts of a JSON document around it, the innermost first."""
    yield place
    at = place.at
    while isinstance(at, str) and at:
        at = at.rpartition("/")[0]
        yield _SidePlace(place.is_left, at)


def _owners(place: _SidePlace) -> Iterator[_SidePlace]:
    """Where a reason is that names a member of a JSON object: at the object, or at its `required`."""
    if isinstance(place.at, str):
        owner, _, keyword = place.at.rpartition("/")[0].rpartition("/")
        if keyword == "properties":
            yield from (_SidePlace(place.is_left, owner), _SidePlace(place.is_left, f"{owner}/required"))


def _paths_by_place(elements: DocumentElements, *, is_left: bool) -> dict[_SidePlace, str]:
    paths: dict[_SidePlace, str] = {}
    for element in elements.by_key.values():
        place = _place(element.location, is_left=is_left)
        if place is not None:
            paths.setdefault(place, element.path)
    return paths
