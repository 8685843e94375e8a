"""Hashes by which two copies of a registry can be compared, and a log be shown to be what was once written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    state: the sum modulo 2^256 of the hashes of all entities that live after it.
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


def entity_hash(image: bytes) -> bytes:
    """SHA-256 of an entity's image (`commands.mapper.image`)."""
    return sha256(image).digest()


def moved(state: bytes, gone: Iterable[bytes], come: Iterable[bytes]) -> bytes:
    """The state hash once some entities have gone and others have come; an empty hash counts nothing."""
    return ((_number(state) - sum(map(_number, gone)) + sum(map(_number, come))) % _MODULUS).to_bytes(32)


def chained(previous: bytes, interaction: Interaction, rows: Sequence[LogRow]) -> bytes:
    """The chain hash of an interaction; its own `chain` is not looked at."""
    digest = sha256(previous)
    for part in _parts(interaction, rows):
        # The length before each part keeps two different lists of parts from reading the same.
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return digest.digest()


def _parts(interaction: Interaction, rows: Sequence[LogRow]) -> Iterable[bytes]:
    yield dumps(interaction[:-2])
    yield interaction.state
    for row in rows:
        yield dumps(row[:-1])
        yield row.state


def _number(digest: bytes) -> int:
    return int.from_bytes(digest)
