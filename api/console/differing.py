"""The first entity in which two registries differ, found by hashes of parts of their trees.

One side cuts what differs into parts, the other gives the hashes of the same parts, and the first that differs is cut
again. Of n entities (on the side that cuts) each side is asked at most ⌈log16 n⌉ + 2 times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from domain import xid as xids

#: Values by parameter of `/-/hash`.
Query = dict[str, list[str]]
#: A registry, or a part of its tree: gives the answer of `/-/hash` as JSON, always as of one position.
Side = Callable[[Query], dict[str, Any]]

PARTS: Final = 16


class Difference(NamedTuple):
    """The hashes of one entity, None where it is missing."""

    xid: str
    here: str | None
    there: str | None


@dataclass(frozen=True, slots=True)
class _Stretch:
    """What has to be from a place up to the next one. last: an xid, empty where nothing has to be."""

    place: str
    last: str
    count: int
    hash: str


def first_difference(here: Side, there: Side) -> Difference | None:
    """The first entity, in the order of the tree, that is not the same on both sides; None where all are."""
    between: Query = {}
    while True:
        stretches = list(_stretches(here({**between, "parts": [str(PARTS)]})["parts"]))
        answer = there({**between, "at": [each.place for each in stretches[1:]]})
        pairs = zip(stretches, answer["parts"], strict=True)
        found = next((pair for pair in pairs if not _same(*pair)), None)
        if found is None:
            return None
        if found[0].count < 2:
            return _difference(*found, there)
        between = _narrowed(*found)


def _stretches(parts: list[dict[str, Any]]) -> Iterator[_Stretch]:
    """Parts as stretches without a gap. An entity alone is one, so that others beside it show."""
    yield _Stretch("", "", 0, "")
    for part in parts:
        yield _Stretch(part["from"], part["to"], part["count"], part["hash"])
        if part["count"] == 1:
            yield _Stretch(f"{part['from']}/", "", 0, "")


def _same(stretch: _Stretch, part: dict[str, Any]) -> bool:
    return stretch.count == part["count"] and (not stretch.count or stretch.hash == part["hash"])


def _narrowed(stretch: _Stretch, part: dict[str, Any]) -> Query:
    """What there is of a stretch on either side."""
    last = max(stretch.last, part.get("to", stretch.last), key=xids.tree_key)
    return {"from": [stretch.place], "to": [last]}


def _difference(stretch: _Stretch, part: dict[str, Any], there: Side) -> Difference:
    """What differs where one entity has to be at most."""
    if stretch.count:
        return Difference(stretch.place, stretch.hash, part["hash"] if part["count"] else None)
    xid = part["from"]
    alone = part if part["count"] == 1 else there({"from": [xid], "to": [xid]})
    return Difference(xid, None, alone["hash"])
