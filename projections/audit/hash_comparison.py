"""Finds the entities in which two registries differ, by hashes of parts of their trees.

One side splits the tree into parts, and the other returns the hashes of the same parts. The first part that differs is
split again. To find the first of n entities (on the side that splits), each side gets at most ⌈log16 n⌉ + 2 requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from annals.domain.values import xid as xids
from annals.domain.values.json_text import Json

#: Query parameters of `/-/hash`: values by name.
HashQuery = dict[str, list[str]]
#: A registry, or a part of its tree: returns the response of `/-/hash` as JSON, always as of one position. What comes
#: from another registry has to pass `is_hash_response`.
HashSource = Callable[[HashQuery], dict[str, Any]]

PARTS: Final = 16
#: The number of parts requested from one side where the other has no entities.
_MAX_PARTS: Final = 256


class HashDifference(NamedTuple):
    """The hashes of one entity; None where it is missing."""

    xid: str
    here: str | None
    there: str | None


@dataclass(frozen=True, slots=True)
class _TreeRange:
    """The expected entities from one place up to the next. last: an xid, empty if no entity is expected."""

    start: str
    last: str
    count: int
    hash: str


def first_difference(local: HashSource, remote: HashSource) -> HashDifference | None:
    """The first entity, in tree order, that differs between the sides; None if there is none."""
    return next(differences(local, remote), None)


def differences(local: HashSource, remote: HashSource) -> Iterator[HashDifference]:
    """All entities that differ between the sides, in tree order, found lazily."""
    return _differences_in({}, local, remote)


def is_hash_response(response: Json, query: HashQuery) -> bool:
    """Whether a response has the members of `part_members`, and under `parts` those of the requested parts."""
    if not isinstance(response, Mapping):
        return False
    parts = response.get("parts")
    if not isinstance(parts, list) or not all(map(_is_part, (response, *parts))):
        return False
    return "at" not in query or len(parts) == len(query["at"]) + 1


def _is_part(part: Json) -> bool:
    if not isinstance(part, Mapping) or not isinstance(part.get("hash"), str):
        return False
    count = part.get("count")
    if type(count) is not int or count < 0:
        return False
    return not count or all(isinstance(part.get(name), str) and part[name].startswith("/") for name in ("from", "to"))


def _differences_in(bounds: HashQuery, local: HashSource, remote: HashSource) -> Iterator[HashDifference]:
    tree_ranges = list(_tree_ranges(local({**bounds, "parts": [str(PARTS)]})["parts"]))
    response = remote({**bounds, "at": [following.start for following in tree_ranges[1:]]})
    for tree_range, part in zip(tree_ranges, response["parts"], strict=True):
        if _is_same(tree_range, part):
            continue
        if tree_range.count > 1:
            yield from _differences_in(_narrow_query(tree_range, part), local, remote)
        elif tree_range.count:
            yield HashDifference(tree_range.start, tree_range.hash, part["hash"] if part["count"] else None)
        else:
            yield from _missing_entities(part, remote)


def _tree_ranges(parts: list[dict[str, Any]]) -> Iterator[_TreeRange]:
    """Parts as ranges without gaps. A single entity is its own range, so that extra entities after it are found."""
    yield _TreeRange("", "", 0, "")
    for part in parts:
        yield _TreeRange(part["from"], part["to"], part["count"], part["hash"])
        if part["count"] == 1:
            yield _TreeRange(f"{part['from']}/", "", 0, "")


def _is_same(tree_range: _TreeRange, part: dict[str, Any]) -> bool:
    return tree_range.count == part["count"] and (not tree_range.count or tree_range.hash == part["hash"])


def _narrow_query(tree_range: _TreeRange, part: dict[str, Any]) -> HashQuery:
    """The query for a range, extended to the last entity on either side."""
    last = max(tree_range.last, part.get("to", tree_range.last), key=xids.tree_key)
    return {"from": [tree_range.start], "to": [last]}


def _missing_entities(part: dict[str, Any], remote: HashSource) -> Iterator[HashDifference]:
    """The entities of a part that has no local entities."""
    first, last = part["from"], part["to"]
    first_part = part if part["count"] == 1 else remote({"from": [first], "to": [first]})
    yield HashDifference(first, None, first_part["hash"])
    if part["count"] > 1:
        yield from _list_missing({"from": [f"{first}/"], "to": [last]}, remote)


def _list_missing(bounds: HashQuery, remote: HashSource) -> Iterator[HashDifference]:
    for part in remote({**bounds, "parts": [str(_MAX_PARTS)]})["parts"]:
        if part["count"] == 1:
            yield HashDifference(part["from"], None, part["hash"])
        else:
            yield from _list_missing({"from": [part["from"]], "to": [part["to"]]}, remote)
