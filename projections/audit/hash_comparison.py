"""Finds the entities in which two registries differ, by hashes of parts of their trees.

One side splits the tree into parts, and the other returns the hashes of the same parts. The first part that differs is
split again. To find the first of n entities (on the side that splits), each side gets at most ⌈log16 n⌉ + 2 requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from domain.values import xid as xids

#: Query parameters of `/-/hash`: values by name.
HashQuery = dict[str, list[str]]
#: A registry, or a part of its tree: returns the response of `/-/hash` as JSON, always as of one position.
HashSource = Callable[[HashQuery], dict[str, Any]]

PARTS: Final = 16
#: The number of parts requested from one side where the other has no entities.
_MOST: Final = 256


class HashDifference(NamedTuple):
    """The hashes of one entity; None where it is missing."""

    xid: str
    here: str | None
    there: str | None


@dataclass(frozen=True, slots=True)
class _TreeRange:
    """The expected entities from one place up to the next. last: an xid, empty if no entity is expected."""

    place: str
    last: str
    count: int
    hash: str


def first_difference(here: HashSource, there: HashSource) -> HashDifference | None:
    """The first entity, in tree order, that differs between the sides; None if there is none."""
    return next(differences(here, there), None)


def differences(here: HashSource, there: HashSource) -> Iterator[HashDifference]:
    """All entities that differ between the sides, in tree order, found lazily."""
    return _within({}, here, there)


def _within(between: HashQuery, here: HashSource, there: HashSource) -> Iterator[HashDifference]:
    stretches = list(_tree_ranges(here({**between, "parts": [str(PARTS)]})["parts"]))
    answer = there({**between, "at": [each.place for each in stretches[1:]]})
    for stretch, part in zip(stretches, answer["parts"], strict=True):
        if _same(stretch, part):
            continue
        if stretch.count > 1:
            yield from _within(_narrow_query(stretch, part), here, there)
        elif stretch.count:
            yield HashDifference(stretch.place, stretch.hash, part["hash"] if part["count"] else None)
        else:
            yield from _missing(part, there)


def _tree_ranges(parts: list[dict[str, Any]]) -> Iterator[_TreeRange]:
    """Parts as ranges without gaps. A single entity is its own range, so that extra entities after it are found."""
    yield _TreeRange("", "", 0, "")
    for part in parts:
        yield _TreeRange(part["from"], part["to"], part["count"], part["hash"])
        if part["count"] == 1:
            yield _TreeRange(f"{part['from']}/", "", 0, "")


def _same(stretch: _TreeRange, part: dict[str, Any]) -> bool:
    return stretch.count == part["count"] and (not stretch.count or stretch.hash == part["hash"])


def _narrow_query(stretch: _TreeRange, part: dict[str, Any]) -> HashQuery:
    """The query for a range, extended to the last entity on either side."""
    last = max(stretch.last, part.get("to", stretch.last), key=xids.tree_key)
    return {"from": [stretch.place], "to": [last]}


def _missing(part: dict[str, Any], there: HashSource) -> Iterator[HashDifference]:
    """The entities of a part that has no local entities."""
    first, last = part["from"], part["to"]
    alone = part if part["count"] == 1 else there({"from": [first], "to": [first]})
    yield HashDifference(first, None, alone["hash"])
    if part["count"] > 1:
        yield from _list_missing({"from": [f"{first}/"], "to": [last]}, there)


def _list_missing(between: HashQuery, there: HashSource) -> Iterator[HashDifference]:
    for part in there({**between, "parts": [str(_MOST)]})["parts"]:
        if part["count"] == 1:
            yield HashDifference(part["from"], None, part["hash"])
        else:
            yield from _list_missing({"from": [part["from"]], "to": [part["to"]]}, there)
