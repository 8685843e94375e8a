"""API keys: their text, and what the log keeps of them (ACC-41 to ACC-46).

A key is `annals_<id>_<secret><checksum>`. The log has only its SHA-256, so nobody can read a key from a store, a backup
or a replica. Its stream is `/-/keys/<id>`, outside the registry's tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from hmac import compare_digest
from re import compile as compile_pattern
from typing import Any, Final
from zlib import crc32

from annals.domain.access.roles import KEY_PREFIX, Caller, Role
from annals.domain.registry.entities import Entity

#: Chooses one of some characters.
Choose = Callable[[str], str]
#: A name that no type of the model can have.
TYPE: Final = "-.keys"
COLLECTION: Final = "/-/keys"
PREFIX: Final = "annals_"

_ID_ALPHABET: Final = "abcdefghjkmnpqrstuvwxyz23456789"
_ID_LENGTH: Final = 12
_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#: 43 of 62 characters have 256 bits.
_SECRET_LENGTH: Final = 43
_CHECKSUM_LENGTH: Final = 6
_KEY: Final = compile_pattern(
    rf"({PREFIX}([{_ID_ALPHABET}]{{{_ID_LENGTH}}})_[0-9A-Za-z]{{{_SECRET_LENGTH}}})([0-9A-Za-z]{{{_CHECKSUM_LENGTH}}})\Z"
)


@dataclass(frozen=True, slots=True)
class KeyText:
    """A key as its holder has it. hash: its SHA-256 in hex."""

    id: str
    text: str = field(repr=False)

    @property
    def hash(self) -> str:
        return sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A live key in the log.

    hash: SHA-256 of its text. previous_hash: of the text before the last rotation, good until `previous_until`.
    attributes: the public form.
    """

    id: str
    name: str
    role: Role | None
    groups: Mapping[str, Role]
    expires: datetime
    hash: str = field(repr=False)
    previous_hash: str | None = field(repr=False)
    previous_until: datetime | None
    attributes: Mapping[str, Any]

    @property
    def caller(self) -> Caller:
        """The caller that the key stands for."""
        return Caller(f"{KEY_PREFIX}{self.name}", self.role, self.groups)

    @property
    def texts(self) -> Sequence[tuple[str, datetime]]:
        """The hash of each text of the key, with its end: of the current one, and of the one before a rotation."""
        current = (self.hash, self.expires)
        if self.previous_hash is None or self.previous_until is None:
            return (current,)
        return current, (self.previous_hash, min(self.expires, self.previous_until))

    def expiry_of(self, key: KeyText, now: datetime) -> datetime | None:
        """Until when a text of this key is good; None if it is not. In constant time for texts of one length."""
        is_current = compare_digest(self.hash, key.hash)
        is_previous = compare_digest(self.previous_hash or "", key.hash)
        until = self.expires
        if is_previous and not is_current and self.previous_until is not None:
            until = min(until, self.previous_until)
        return until if (is_current or is_previous) and now < until else None

    @classmethod
    def from_entity(cls, entity: Entity) -> ApiKey:
        """The key of a live entity in the log."""
        attributes, private = entity.attributes, entity.private
        role, until = attributes.get("role"), private.get("previousuntil")
        return cls(
            id=entity.id,
            name=attributes["name"],
            role=Role(role) if role is not None else None,
            groups={place: Role(word) for place, word in attributes.get("groups", {}).items()},
            expires=datetime.fromisoformat(attributes["expires"]),
            hash=private["hash"],
            previous_hash=private.get("previoushash"),
            previous_until=datetime.fromisoformat(until) if until is not None else None,
            attributes=attributes,
        )


def time_text(moment: datetime) -> str:
    """A time as the attributes of keys have it."""
    return moment.isoformat().replace("+00:00", "Z")


def new_id(choose: Choose) -> str:
    """An id of characters that nobody confuses. choose: at random."""
    return "".join(choose(_ID_ALPHABET) for _ in range(_ID_LENGTH))


def new_key(id: str, choose: Choose) -> KeyText:
    """A key with an id. choose: at random, from a source for secrets."""
    text = f"{PREFIX}{id}_{''.join(choose(_ALPHABET) for _ in range(_SECRET_LENGTH))}"
    return KeyText(id, text + _checksum(text))


def parse_key(text: str) -> KeyText | None:
    """The key of a text; None for any other text, and for one with a typing error, without a look-up (ACC-43)."""
    match = _KEY.match(text)
    if match is None or _checksum(match[1]) != match[3]:
        return None
    return KeyText(match[2], text)


def _checksum(text: str) -> str:
    number, characters = crc32(text.encode()), ""
    for _ in range(_CHECKSUM_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        characters = _ALPHABET[digit] + characters
    return characters
