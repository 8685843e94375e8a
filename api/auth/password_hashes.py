"""Hashes of passwords: argon2id with bounded cost, in the text form of the PHC (ACC-31).

Spec: RFC 9106.
"""

from __future__ import annotations

import re
from typing import Final

from annals.domain.errors.problems import ServerBusy

#: Bounds of a hash: memory in KiB, passes, lanes.
MEMORY_KIB: Final = (19 * 1024, 256 * 1024)
PASSES: Final = (2, 10)
LANES: Final = (1, 4)
#: Maximum bytes of a password.
MAX_PASSWORD_BYTES: Final = 1024
_HASH: Final = re.compile(
    r"\$argon2id\$v=19\$m=([1-9][0-9]{0,9}),t=([1-9][0-9]{0,9}),p=([1-9][0-9]{0,9})"
    r"\$[A-Za-z0-9+/]{11,86}\$[A-Za-z0-9+/]{22,86}\Z"
)


def check_hash(text: object) -> str:
    """The hash, if it is one of argon2id within the bounds. Raises: ValueError with the rule."""
    match = _HASH.match(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError('a "password" has to be a hash of argon2id, $argon2id$v=19$...; `annals passwd` makes one')
    for value, (least, most), unit in zip(map(int, match.groups()), (MEMORY_KIB, PASSES, LANES), _UNITS, strict=True):
        if not least <= value <= most:
            raise ValueError(f"a hash of argon2id has {least} to {most} {unit}, not {value}; `annals passwd` makes one")
    return match[0]


_UNITS: Final = ("KiB of memory", "passes", "lanes")


def make_hash(password: str) -> str:
    """A new hash of a password. Takes about 50 ms. Raises: ValueError for one that is empty or too long."""
    from argon2 import PasswordHasher, Type  # late, because most servers know no passwords

    encoded = password.encode()
    if not 0 < len(encoded) <= MAX_PASSWORD_BYTES:
        raise ValueError(f"a password has 1 to {MAX_PASSWORD_BYTES} bytes")
    return PasswordHasher(time_cost=3, memory_cost=64 * 1024, parallelism=4, type=Type.ID).hash(encoded)


def verify_hash(hash: str, password: str) -> bool:
    """Whether a hash is that of a password. Takes as long as the hash says; other threads run on."""
    from argon2 import PasswordHasher
    from argon2.exceptions import InvalidHashError, VerificationError, VerifyMismatchError

    try:
        return PasswordHasher().verify(hash, password.encode())
    except (VerifyMismatchError, InvalidHashError):
        return False
    except VerificationError as error:  # such as too little memory, which says nothing about the password
        raise ServerBusy(detail=f"passwords cannot be checked at the moment: {error}") from error
