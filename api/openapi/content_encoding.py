"""Adds the Content-Encoding header to response descriptions."""

from __future__ import annotations

from typing import Any, Final

from annals.api.http.compression import COMPRESSIBLE_TYPES
from annals.api.openapi.builders import CONTENT_ENCODING_NAME, Schema

#: The media types of data that may be compressed, as descriptions name them.
_COMPRESSED_TYPES: Final = tuple(type.decode().partition(";")[0] for type in COMPRESSIBLE_TYPES)


def add_coding_to_paths(paths: dict[str, Schema]) -> dict[str, Schema]:
    """The same paths, with the Content-Encoding header in all responses with data."""
    return {path: {key: _add_to_operation(row) for key, row in item.items()} for path, item in paths.items()}


def add_coding_headers(responses: dict[str, Schema]) -> dict[str, Schema]:
    """The same responses, by status or name, with the Content-Encoding header if they have data."""
    return {name: _add_to_response(row) for name, row in responses.items()}


def _add_to_operation(row: Any) -> Any:
    """The operation with the header added. Other members of a path item have no responses and stay as they are."""
    return {**row, "responses": add_coding_headers(row["responses"])} if "responses" in row else row


def _add_to_response(row: Schema) -> Schema:
    if not row.get("content", {}).keys() & set(_COMPRESSED_TYPES):
        return row
    return {
        **row,
        "headers": {
            **row.get("headers", {}),
            CONTENT_ENCODING_NAME: {"$ref": f"#/components/headers/{CONTENT_ENCODING_NAME}"},
        },
    }
