"""Hashes of parts of the registry's tree: request parameters and result, for HTTP and the command line."""

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

#: The accepted query parameters.
HASH_PARAMS: Final = ("asof", "from", "to", "parts", "at", "format")
#: Maximum number of parts in a response.
MAX_PARTS: Final = 256

_NUMBER: Final = re.compile(r"[0-9]{1,3}\Z")


@dataclass(frozen=True, slots=True)
class HashParams:
    """The parameters of one request. parts: number of parts to split into. at: tree keys at which parts begin."""

    asof: str | None
    keys: KeyRange
    parts: int | None
    at: tuple[str, ...]


class HashResult(NamedTuple):
    """position: the log position of the hashes. members: the response members about all parts together."""

    position: int
    members: JsonMembers
    parts: list[TreePart]


def parse_hash_params(given: QueryParams, xid: str) -> HashParams:
    """The hash parameters for an entity or collection. Raises: BadRequest, which names the parameter and its rule."""
    keys = _requested_range(given, key_range_of(xid))
    at = tuple(_key(place, "at", keys) for place in given.get("at", ()))
    if len(at) >= MAX_PARTS:
        raise invalid_param("at", f"it may appear at most {MAX_PARTS - 1} times")
    if any(one >= other for one, other in pairwise(at)):
        raise invalid_param("at", "the xids have to be in the order of the tree, each once")
    if at and "parts" in given:
        raise invalid_param("parts", 'it cannot be combined with "at"')
    return HashParams(single_value(given, "asof"), keys, _parts(single_value(given, "parts")), at)


def hash_tree_parts(view: View, xid: str, wanted: HashParams, now: datetime) -> HashResult:
    """Hashes of the entities at and below an xid. An xid that never existed gives an empty result.

    Raises: BadRequest for an invalid moment.
    """
    log = view.log
    ended = log.head() if wanted.asof is None else log.as_of(wanted.asof, now)
    hashes = view.tree_hashes(ended.last)
    parts = hashes.split_evenly(wanted.keys, wanted.parts) if wanted.parts else hashes.split_at(wanted.keys, wanted.at)
    whole = {"xid": xid, "asof": moment_members(ended)} | part_members(merge_parts(parts))
    return HashResult(ended.last, whole, parts)


HASH_TABLE: Final[TableLayout[TreePart]] = TableLayout(
    ("from", "to", "count", "hash"), part_members, lambda part: (part_members(part),)
)


def _requested_range(given: Mapping[str, list[str]], keys: KeyRange) -> KeyRange:
    """The part of a key range that `from` and `to` select."""
    first, last = single_value(given, "from"), single_value(given, "to")
    low = keys.low if first is None else _key(first, "from", keys)
    high = keys.high if last is None else _behind(_key(last, "to", keys))
    if low >= high:
        raise invalid_param("to", '"from" comes after it in the order of the tree')
    return KeyRange(low, high)


def _behind(key: str) -> str:
    """The exclusive end of a key range whose last entity has this key.

    It is above the key, and not above any other existing key.
    """
    return f"{key}!"


def _key(place: str, name: str, keys: KeyRange) -> str:
    """The tree key of an xid; with a slash at its end, the key of what follows that entity."""
    key = xids.tree_key(place)
    if not place.startswith("/") or "\0" in place or not keys.low <= key <= keys.high:
        raise invalid_param(name, f'{place!r} is not an xid at or below the path and between "from" and "to"')
    return key


def _parts(value: str | None) -> int | None:
    if value is None:
        return None
    if not _NUMBER.match(value) or not 2 <= int(value) <= MAX_PARTS:
        raise invalid_param("parts", f"it takes a number from 2 to {MAX_PARTS}")
    return int(value)
