"""Hashes by which two copies of a registry can be compared, and a log be shown to be what was once written."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Final, NamedTuple

from domain.jsontext import dumps

#: Chain hash and state hash of an empty log.
NOTHING: Final = bytes(32)

_MODULUS: Final = 1 << 256


class LogRow(NamedTuple):
    """One row of `log`."""

    position: int
    stream: str
    revision: int
    topic: str
    state: bytes


class Interaction(NamedTuple):
    """One row of `interaction`.

    chain: over the chain hash before and everything that this interaction recorded, these facts included.
    state: the sum modulo 2^256 of the hashes of all entities that live after it, but for what is apart from the tree.
    """

    last: int
    first: int
    xregcorrelationid: str
    folded: str
    time: str
    caller: str
    command: str
    registry_url: str
    chain: bytes
    state: bytes


#: What an empty log ends with.
START: Final = Interaction(0, 0, "", "", "", "", "", "", NOTHING, NOTHING)


def entity_hash(image: bytes) -> bytes:
    """SHA-256 of an entity's image (`commands.mapper.image`)."""
    return sha256(image).digest()


def moved(state: bytes, gone: Iterable[bytes], come: Iterable[bytes]) -> bytes:
    """The state hash once some entities have gone and others have come; an empty hash counts nothing."""
    return ((_number(state) - sum(map(_number, gone)) + sum(map(_number, come))) % _MODULUS).to_bytes(32)


class Chain:
    """Works out the chain hash of an interaction from the one before it: its facts, its events, its state hash.

    The interaction's own hashes are not looked at.
    """

    def __init__(self, previous: bytes, interaction: Interaction) -> None:
        self._digest = sha256(previous)
        self._part(dumps(interaction[:-2]))

    def add(self, row: LogRow) -> None:
        """Takes in the interaction's next event."""
        self._part(dumps(row[:-1]))
        self._part(row.state)

    def digest(self, state: bytes) -> bytes:
        """The chain hash, once every event is in. state: the state hash after them."""
        self._part(state)
        return self._digest.digest()

    def _part(self, part: bytes) -> None:
        # The length before each part keeps two different lists of parts from reading the same.
        self._digest.update(len(part).to_bytes(8))
        self._digest.update(part)


def _number(digest: bytes) -> int:
    return int.from_bytes(digest)
