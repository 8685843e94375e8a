"""Identifiers: their character set, and that the ids in a body match the path (ENT-30 to 36)."""

from __future__ import annotations

from collections.abc import MutableMapping

from annals.domain.errors.problems import MalformedId, MismatchedId
from annals.domain.values.json_text import Json
from annals.domain.values.xid import ID

_RESERVED_VERSION_IDS = frozenset({"null", "request"})


def check_id(value: object) -> str:
    """The id, if its characters and length are allowed. Raises: MalformedId."""
    if not isinstance(value, str) or not ID.match(value):
        raise MalformedId(
            id=value if isinstance(value, str) else str(value),
            error_detail="an id has 1 to 128 characters of A-Z a-z 0-9 . _ ~ : @ - and starts with a letter, "
            "a digit or _",
        )
    return value


def check_version_id(value: object) -> str:
    """The same for a `versionid`, which cannot be `null` or `request`: flags use these words (ENT-33)."""
    versionid = check_id(value)
    if versionid.lower() in _RESERVED_VERSION_IDS:
        raise MalformedId(id=versionid, error_detail=f'"{versionid}" is reserved')
    return versionid


def take_id(body: MutableMapping[str, Json], singular: str, expected: str, xid: str) -> None:
    """Removes an entity's id from a body. Raises: MismatchedId unless it is absent, null or the expected one."""
    requested = body.pop(singular + "id", None)
    if requested is not None and requested != expected:
        raise MismatchedId(xid, singular=singular, invalid_id=_value_text(requested), expected_id=expected)


def _value_text(value: Json) -> str:
    return value if isinstance(value, str) else str(value)
