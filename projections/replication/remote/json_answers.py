"""Reads JSON of another registry, and checks the types of what is in it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from annals.domain.values.json_text import InvalidJson, Json, loads
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError

#: Limit in bytes of an answer whose size does not depend on what clients store. Parsed JSON may take fifty times the
#: size of its text.
MAX_JSON_BYTES: Final = 1 << 22
#: The end of the positions that a database can store.
_MAX_POSITION: Final = 1 << 63


def request_json(
    remote: RemoteClient, method: str, path: str, *, max_bytes: int = MAX_JSON_BYTES, **options: Any
) -> Json:
    """The JSON of the answer to a request. max_bytes: its limit. options: as of `RemoteClient.request`.

    Raises: RemoteError.
    """
    response = remote.request(method, path, max_bytes=max_bytes, **options)
    try:
        return loads(response.content)
    except InvalidJson:
        raise RemoteError(
            f"{method} {path} answers {response.status_code} with something that is not JSON, or not acceptable JSON",
            response.status_code,
        ) from None


def request_object(remote: RemoteClient, method: str, path: str, **options: Any) -> dict[str, Json]:
    """The same as `request_json`, of an answer that is a JSON object. Raises: RemoteError."""
    members = request_json(remote, method, path, **options)
    if not isinstance(members, dict):
        raise RemoteError(f"{method} {path} answers with something that is not a JSON object")
    return members


def position_of(members: Json, request_line: str) -> int:
    """The member `position` of an object in an answer. request_line: names the answer in the error.

    Raises: RemoteError if it is not a position of a log.
    """
    position: Json = members.get("position") if isinstance(members, Mapping) else None
    if not _is_integer(position) or not 0 <= position < _MAX_POSITION:
        raise RemoteError(f"{request_line} answers without a position, or with one that is not a position of a log")
    return int(position)


def _is_integer(value: Json) -> bool:
    """Whether JSON is a whole number; long ones are read as Decimal."""
    return type(value) is int or (isinstance(value, Decimal) and value.as_tuple().exponent == 0)
