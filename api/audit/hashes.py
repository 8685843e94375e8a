"""Hashes of parts of the registry's tree: what a request asks for, and the answer, to a client as to the console."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final, NamedTuple

from api.audit.formats import JsonMembers, TableLayout
from api.audit.representations import moment_members
from api.http.query_params import QueryParams, invalid_param, single_value
from domain.values import xid as xids
from projections.audit.tree_hashes import KeyRange, TreePart, key_range_of, merge_parts, part_members
from projections.entities.query import View

#: The parameters that are understood.
HASH_PARAMS: Final = ("asof", "from", "to", "parts", "at", "format")
#: Parts of an answer at most.
MAX_PARTS: Final = 256

_NUMBER: Final = re.compile(r"[0-9]{1,3}\Z")


@dataclass(frozen=True, slots=True)
class HashParams:
    """The parameters of one request. parts: how many to cut into. at: tree keys that parts are to begin with."""

    asof: str | None
    keys: KeyRange
    parts: int | None
    at: tuple[str, ...]


class HashResult(NamedTuple):
    """position: of the log, for which the parts hold. members: what an answer says of all of them together."""

    position: int
    members: JsonMembers
    parts: list[TreePart]


def parse_hash_params(given: QueryParams, xid: str) -> HashParams:
    """What is asked about an entity or collection. Raises: BadRequest, which names the parameter and its rule."""
    keys = _requested_range(given, key_range_of(xid))
    at = tuple(_key(place, "at", keys) for place in given.get("at", ()))
    if len(at) >= MAX_PARTS:
        raise invalid_param("at", f"it may appear {MAX_PARTS - 1} times")
    if any(one >= other for one, other in pairwise(at)):
        raise invalid_param("at", "places go in the order of the tree, each once")
    if at and "parts" in given:
        raise invalid_param("parts", 'it does not go with "at"')
    return HashParams(single_value(given, "asof"), keys, _parts(single_value(given, "parts")), at)


def hash_tree_parts(view: View, xid: str, wanted: HashParams, now: datetime) -> HashResult:
    """Hashes of what lives at and below an entity or collection; nothing is there where nothing has ever been.

    Raises: BadRequest for a moment that is none.
    """
    log = view.log
    ended = log.head() if wanted.asof is None else log.as_of(wanted.asof, now)
    hashes = view.hashes(ended.last)
    parts = hashes.cut(wanted.keys, wanted.parts) if wanted.parts else hashes.split(wanted.keys, wanted.at)
    whole = {"xid": xid, "asof": moment_members(ended)} | part_members(merge_parts(parts))
    return HashResult(ended.last, whole, parts)


HASH_TABLE: Final[TableLayout[TreePart]] = TableLayout(
    ("from", "to", "count", "hash"), part_members, lambda part: (part_members(part),)
)


def _requested_range(given: Mapping[str, list[str]], keys: KeyRange) -> KeyRange:
    """The range that `from` and `to` leave of one."""
    first, last = single_value(given, "from"), single_value(given, "to")
    low = keys.low if first is None else _key(first, "from", keys)
    high = keys.high if last is None else _behind(_key(last, "to", keys))
    if low >= high:
        raise invalid_param("to", '"from" is behind it')
    return KeyRange(low, high)


def _behind(key: str) -> str:
    """The end of a range that has an entity last: above its key, and not above any other that is."""
    return f"{key}!"


def _key(place: str, name: str, keys: KeyRange) -> str:
    """The tree key of an xid; with a slash at its end, of what comes after that entity."""
    key = xids.tree_key(place)
    if not place.startswith("/") or "\0" in place or not keys.low <= key <= keys.high:
        raise invalid_param(name, f"{place!r} is no xid at or below the path, or not between from and to")
    return key


def _parts(value: str | None) -> int | None:
    if value is None:
        return None
    if not _NUMBER.match(value) or not 2 <= int(value) <= MAX_PARTS:
        raise invalid_param("parts", f"it takes a number from 2 to {MAX_PARTS}")
    return int(value)
