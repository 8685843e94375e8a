"""Hashes of parts of the registry's tree: what a request asks for, and the answer, to a client as to the console."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final, NamedTuple

from api.audit.forms import Members, Table
from api.audit.shapes import moment_members
from api.feeds.asked import Given, refused, single
from domain import xid as xids
from projections.entities.query import View
from projections.hashes import Keys, Part, keys_of, members, together

#: The parameters that are understood.
PARAMETERS: Final = ("asof", "from", "to", "parts", "at", "format")
#: Parts of an answer at most.
MOST: Final = 256

_NUMBER: Final = re.compile(r"[0-9]{1,3}\Z")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The parameters of one request. parts: how many to cut into. at: tree keys that parts are to begin with."""

    asof: str | None
    keys: Keys
    parts: int | None
    at: tuple[str, ...]


class Hashed(NamedTuple):
    """position: of the log, for which the parts hold. members: what an answer says of all of them together."""

    position: int
    members: Members
    parts: list[Part]


def wanted(given: Given, xid: str) -> Wanted:
    """What is asked about an entity or collection. Raises: BadRequest, which names the parameter and its rule."""
    keys = _narrowed(given, keys_of(xid))
    at = tuple(_key(place, "at", keys) for place in given.get("at", ()))
    if len(at) >= MOST:
        raise refused("at", f"it may appear {MOST - 1} times")
    if any(one >= other for one, other in pairwise(at)):
        raise refused("at", "places go in the order of the tree, each once")
    if at and "parts" in given:
        raise refused("parts", 'it does not go with "at"')
    return Wanted(single(given, "asof"), keys, _parts(single(given, "parts")), at)


def hashed(view: View, xid: str, wanted: Wanted, now: datetime) -> Hashed:
    """Hashes of what lives at and below an entity or collection; nothing is there where nothing has ever been.

    Raises: BadRequest for a moment that is none.
    """
    log = view.log
    ended = log.head() if wanted.asof is None else log.as_of(wanted.asof, now)
    hashes = view.hashes(ended.last)
    parts = hashes.cut(wanted.keys, wanted.parts) if wanted.parts else hashes.split(wanted.keys, wanted.at)
    whole = {"xid": xid, "asof": moment_members(ended)} | members(together(parts))
    return Hashed(ended.last, whole, parts)


TABLE: Final[Table[Part]] = Table(("from", "to", "count", "hash"), members, lambda part: (members(part),))


def _narrowed(given: Mapping[str, list[str]], keys: Keys) -> Keys:
    """The range that `from` and `to` leave of one."""
    first, last = single(given, "from"), single(given, "to")
    low = keys.low if first is None else _key(first, "from", keys)
    high = keys.high if last is None else _behind(_key(last, "to", keys))
    if low >= high:
        raise refused("to", '"from" is behind it')
    return Keys(low, high)


def _behind(key: str) -> str:
    """The end of a range that has an entity last: above its key, and not above any other that is."""
    return f"{key}!"


def _key(place: str, name: str, keys: Keys) -> str:
    """The tree key of an xid; with a slash at its end, of what comes after that entity."""
    key = xids.tree_key(place)
    if not place.startswith("/") or "\0" in place or not keys.low <= key <= keys.high:
        raise refused(name, f"{place!r} is no xid at or below the path, or not between from and to")
    return key


def _parts(value: str | None) -> int | None:
    if value is None:
        return None
    if not _NUMBER.match(value) or not 2 <= int(value) <= MOST:
        raise refused("parts", f"it takes a number from 2 to {MOST}")
    return int(value)
