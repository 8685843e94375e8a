"""Checks of another registry's answers, and of what its errors are about."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from annals.domain.values import xid as xids
from annals.domain.values.json_text import dumps
from annals.projections.replication.remote.remote_client import RemoteError
from annals.projections.replication.standard.comparable import BrokenEntity

#: Client errors about the server or the caller. All others are about one entity.
_SERVER_STATUSES: Final = (401, 403, 408, 429)


def is_about_entity(error: RemoteError) -> bool:
    """Whether an error is about the requested entity and not about the server."""
    return error.status is not None and 400 <= error.status < 500 and error.status not in _SERVER_STATUSES


def items_of(value: Any) -> tuple[Any, ...]:
    """The items of a list, or the names of an object; empty for anything else."""
    return tuple(value) if isinstance(value, list | dict) else ()


def nested_members(container: Any, name: str) -> list[tuple[str, Any]]:
    """The members of a nested collection by id. Raises: BrokenEntity for an invalid collection."""
    collection = container.get(name) if isinstance(container, Mapping) else None
    if collection is None:
        return []
    if not isinstance(collection, Mapping):
        raise BrokenEntity(f"{name} is not a JSON object")
    return list(collection.items())


def check_id(id: str) -> None:
    """Raises: BrokenEntity for an id that cannot be part of a path."""
    if not xids.ID.match(id):
        raise BrokenEntity(f"{id[:200]!r} is not an id")


def decode_base64(encoded: Any) -> bytes:
    """The decoded bytes. Raises: BrokenEntity."""
    try:
        return b64decode(encoded, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise BrokenEntity(f"a document is not Base64: {error}") from None


def content_hash(value: Any) -> bytes:
    """A hash that differs whenever the JSON differs."""
    return sha256(dumps(value)).digest()
