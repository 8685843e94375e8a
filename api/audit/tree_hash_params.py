"""Hashes of parts of the registry's tree: request parameters and result, for HTTP and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final, NamedTuple

from annals.api.audit.formats import JsonMembers, TableLayout
from annals.api.audit.representations import moment_members
from annals.api.http.query_params import QueryParams, invalid_param, parse_number, single_value
from annals.domain.access.roles import Caller
from annals.domain.values import xid as xids
from annals.projections.audit.tree_hashes import KeyRange, TreePart, key_range_of, merge_parts, part_members
from annals.projections.entities.view import View

#: The accepted query parameters.
HASH_PARAMS: Final = ("asof", "from", "to", "parts", "at", "format")
#: Maximum number of parts in a response.
MAX_PARTS: Final = 256


@dataclass(frozen=True, slots=True)
class HashParams:
    """The parameters of one request.

    parts: number of parts to split into. split_keys: tree keys at which parts begin.
    """

    asof: str | None
    keys: KeyRange
    parts: int | None
    split_keys: tuple[str, ...]


class HashResult(NamedTuple):
    """position: the log position of the hashes. members: the response members about all parts together."""

    position: int
    members: JsonMembers
    parts: list[TreePart]


def parse_hash_params(parameters: QueryParams, xid: str) -> HashParams:
    """The hash parameters for an entity or collection. Raises: BadRequest, which names the parameter and its rule."""
    keys = _requested_range(parameters, key_range_of(xid))
    split_keys = tuple(_parse_key(xid_text, "at", keys) for xid_text in parameters.get("at", ()))
    if len(split_keys) >= MAX_PARTS:
        raise invalid_param("at", f"it may appear at most {MAX_PARTS - 1} times")
    if any(previous_key >= next_key for previous_key, next_key in pairwise(split_keys)):
        raise invalid_param("at", "the xids have to be in the order of the tree, each once")
    if split_keys and "parts" in parameters:
        raise invalid_param("parts", 'it cannot be combined with "at"')
    return HashParams(
        single_value(parameters, "asof"),
        keys,
        parse_number("parts", single_value(parameters, "parts"), 2, MAX_PARTS),
        split_keys,
    )


def hash_tree_parts(view: View, xid: str, hash_params: HashParams, now: datetime, caller: Caller) -> HashResult:
    """Hashes of the entities at and below an xid. An xid that never existed gives an empty result.

    Raises: BadRequest for an invalid moment.
    """
    log = view.log
    interaction = log.head() if hash_params.asof is None else log.as_of(hash_params.asof, now)
    hashes = view.tree_hashes(interaction.last)
    parts = (
        hashes.split_evenly(hash_params.keys, hash_params.parts)
        if hash_params.parts
        else hashes.split_at(hash_params.keys, hash_params.split_keys)
    )
    members = {"xid": xid, "asof": moment_members(interaction, caller)} | part_members(merge_parts(parts))
    return HashResult(interaction.last, members, parts)


HASH_TABLE: Final[TableLayout[TreePart]] = TableLayout(
    ("from", "to", "count", "hash"), part_members, lambda part: (part_members(part),)
)


def _requested_range(parameters: Mapping[str, list[str]], keys: KeyRange) -> KeyRange:
    """The part of a key range that `from` and `to` select."""
    first_xid, last_xid = single_value(parameters, "from"), single_value(parameters, "to")
    low_key = keys.low if first_xid is None else _parse_key(first_xid, "from", keys)
    high_key = keys.high if last_xid is None else _range_end(_parse_key(last_xid, "to", keys))
    if low_key >= high_key:
        raise invalid_param("to", '"from" comes after it in the order of the tree')
    return KeyRange(low_key, high_key)


def _range_end(key: str) -> str:
    """The exclusive end of a key range whose last entity has this key.

    It is above the key, and not above any other existing key.
    """
    return f"{key}!"


def _parse_key(xid_text: str, name: str, keys: KeyRange) -> str:
    """The tree key of an xid; with a slash at its end, the key of what follows that entity."""
    key = xids.tree_key(xid_text)
    if not xid_text.startswith("/") or "\0" in xid_text or not keys.low <= key <= keys.high:
        raise invalid_param(name, f'{xid_text!r} is not an xid at or below the path and between "from" and "to"')
    return key
