"""Hashes that compare two copies of a registry, and that prove a log unchanged since it was written.

`docs/explanation/proof.md` specifies them for programs that check them without this one.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Final, NamedTuple

from annals.domain.values.json_text import dumps

#: Chain hash and state hash of an empty log.
EMPTY_HASH: Final = bytes(32)

_MODULUS: Final = 1 << 256
# The first member of a stored state after the image. Later members cannot contain this text: they are names, a
# position, an id and a time.
_CHANGED_MEMBER: Final = b',"changed":'


class LogRow(NamedTuple):
    """One row of `log`."""

    position: int
    stream: str
    revision: int
    topic: str
    state: bytes


class Interaction(NamedTuple):
    """One row of `interaction`.

    chain: hash over the previous chain hash and everything that this interaction recorded, including these columns.
    state: the sum modulo 2^256 of the hashes of all entities that are live after it, without those outside the tree.
    salt: random text that hides the caller's name in the chain hash; empty where the chain hash is of version 1.
    authenticator, keyid: what proved who the caller is, and the id of the API key if it was one; empty where it had no
    credential, or where the program that wrote the interaction did not keep them.
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
    salt: str = ""
    authenticator: str = ""
    keyid: str = ""

    @property
    def credential(self) -> dict[str, str]:
        """`authenticator` and `keyid`, each if there is one."""
        members = {"authenticator": self.authenticator, "keyid": self.keyid}
        return {name: value for name, value in members.items() if value}


#: The last interaction of an empty log.
NO_INTERACTION: Final = Interaction(0, 0, "", "", "", "", "", "", EMPTY_HASH, EMPTY_HASH)


def extract_image(state: bytes) -> bytes:
    """The image inside a stored state, byte for byte. Raises: ValueError when there is none."""
    return state[: state.rindex(_CHANGED_MEMBER)] + b"}"


def entity_hash(image: bytes) -> bytes:
    """SHA-256 of an entity's image (`annals.commands.store.mapper.after_image`)."""
    return sha256(image).digest()


def update_state_hash(state: bytes, removed: Iterable[bytes], added: Iterable[bytes]) -> bytes:
    """The state hash after some entities were removed and others added; an empty hash counts as zero."""
    return (
        (_int_of_digest(state) - sum(map(_int_of_digest, removed)) + sum(map(_int_of_digest, added))) % _MODULUS
    ).to_bytes(32)


class ChainHasher:
    """Computes an interaction's chain hash from the previous one, its columns, its events and its state hash.

    Version 1 covers the bytes of events and the caller's name. Version 2 covers the hash of each image and a salted
    hash of the name and the credential. An image or a name can therefore be destroyed and its hash kept, without
    breaking the proof of the rest. The hasher ignores the `chain` and `state` of the interaction itself.
    """

    def __init__(self, previous: bytes, interaction: Interaction) -> None:
        self._digest = sha256(previous)
        self._is_salted = bool(interaction.salt)
        last, first, id, folded, time, caller, command, registry_url, *_ = interaction
        if self._is_salted:
            self._hash_part(dumps((2, last, first, id, folded, time, command, registry_url)))
            self._hash_part(caller_hash(interaction))
        else:
            facts = (last, first, id, folded, time, caller, command, registry_url)
            self._hash_part(dumps((*facts, *_known_credential(interaction))))

    def add(self, row: LogRow, hash: bytes = b"") -> None:
        """Adds the interaction's next event. hash: of its image, if already known."""
        self._hash_part(dumps(row[:-1]))
        tail_start = row.state.rfind(_CHANGED_MEMBER) if self._is_salted else -1
        if tail_start < 0:  # of version 1, or damaged
            self._hash_part(row.state)
            return
        self._hash_part(hash or sha256(row.state[:tail_start] + b"}").digest())
        self._hash_part(row.state[tail_start + 1 :])

    def digest(self, state: bytes) -> bytes:
        """The chain hash, after every event was added. state: the state hash after them."""
        self._hash_part(state)
        return self._digest.digest()

    def _hash_part(self, part: bytes) -> None:
        # The length before each part makes two different lists of parts differ as bytes.
        self._digest.update(len(part).to_bytes(8))
        self._digest.update(part)


def caller_hash(interaction: Interaction) -> bytes:
    """The hash that replaces a caller's name and credential in a chain hash of version 2."""
    return sha256(dumps((interaction.salt, interaction.caller, *_known_credential(interaction)))).digest()


def _known_credential(interaction: Interaction) -> tuple[str, ...]:
    return (interaction.authenticator, interaction.keyid) if interaction.credential else ()


def _int_of_digest(digest: bytes) -> int:
    return int.from_bytes(digest)
