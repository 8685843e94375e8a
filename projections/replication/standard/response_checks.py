"""Checks of another registry's answers, and of what its errors are about."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from annals.domain.values import xid as xids
from annals.domain.values.json_text import InvalidJson, dumps, loads
from annals.projections.replication.remote.remote_client import RemoteError
from annals.projections.replication.standard.comparable import BrokenEntity

if TYPE_CHECKING:
    import httpx  # takes long, and only links need it

#: Client errors about the server or the caller.
_SERVER_STATUSES: Final = (401, 403, 408, 429)
#: What is too large for a proxy stays too large: the body, the path, the headers.
TOO_LARGE: Final = (413, 414, 431)
#: Statuses of answers with a JSON object.
_OBJECT_STATUSES: Final = (200, 201)


def is_about_entity(error: RemoteError) -> bool:
    """Whether an error is about the requested entity and not about the server.

    Without a problem document it may come from a proxy. Then it says nothing about an entity, except that one is too
    large for the proxy, too.
    """
    if error.status is None or not error.problem:
        return error.status in TOO_LARGE
    return 400 <= error.status < 500 and error.status not in _SERVER_STATUSES


def parse_object(response: httpx.Response) -> dict[str, Any]:
    """The JSON object of an answer.

    Raises: BrokenEntity for other or invalid JSON; RemoteError for an answer that is not from a registry, such as a
    proxy's page or redirect.
    """
    has_object_status = response.status_code in _OBJECT_STATUSES
    try:
        document = loads(response.content)
    except InvalidJson:
        document = None
    if has_object_status and isinstance(document, dict):
        return document
    request_line = f"{response.request.method} {response.request.url.path} answers {response.status_code}"
    if has_object_status and is_json(response):
        raise BrokenEntity(f"{request_line} with no JSON object")
    raise RemoteError(f"{request_line}, but not as a registry does", response.status_code)


def is_json(response: httpx.Response) -> bool:
    """Whether an answer says that it is JSON."""
    media_type: str = response.headers.get("content-type", "").partition(";")[0]
    return media_type.strip().lower().endswith("json")


def check_written(response: httpx.Response) -> None:
    """Raises: RemoteError for an answer that does not say that a write is done."""
    if response.status_code == 204 and response.request.method == "DELETE":
        return
    try:
        parse_object(response)
    except BrokenEntity as error:
        raise RemoteError(str(error), response.status_code) from None


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
