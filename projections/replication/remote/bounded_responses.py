"""Reads answers of other registries up to the sizes that may be held in memory; refuses larger ones while reading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Final

from annals.domain.values.line_buffer import LineBuffer
from annals.projections.replication.remote.content_decoding import UndecodableResponse, decoded_parts

if TYPE_CHECKING:
    import httpx  # takes long, and only links need it


#: Limits in bytes of a whole answer, of one line of a feed, and of an error answer. The first two fit the largest
#: document that a registry accepts, in base64.
MAX_RESPONSE_BYTES: Final = 1 << 29
MAX_LINE_BYTES: Final = 1 << 29
MAX_ERROR_BYTES: Final = 1 << 16
#: Headers that do not apply to a body after decoding.
_ENCODING_HEADERS: Final = ("content-encoding", "content-length", "transfer-encoding")


class ResponseTooLarge(Exception):
    """An answer, or a line of it, exceeds its limit."""


def read_response(response: httpx.Response, max_bytes: int | None = None) -> httpx.Response:
    """An answer with its body. The body of an error answer is cut off where it is too long or cannot be decoded.

    max_bytes: instead of MAX_RESPONSE_BYTES.
    Raises: ResponseTooLarge, UndecodableResponse, httpx.HTTPError.
    """
    import httpx  # takes long, and only links need it

    is_error = response.status_code >= 400
    limit = MAX_ERROR_BYTES if is_error else max_bytes or MAX_RESPONSE_BYTES
    body = bytearray()
    with suppress(UndecodableResponse) if is_error else nullcontext():
        for part in decoded_parts(response):
            body += part or b""
            if len(body) > limit and is_error:
                break  # its status suffices
            if len(body) > limit:
                raise ResponseTooLarge(f"its answer has more than {limit} bytes")
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _ENCODING_HEADERS]
    return httpx.Response(response.status_code, headers=headers, content=bytes(body), request=response.request)


def read_lines(response: httpx.Response) -> Iterator[bytes | None]:
    """The lines of an answer as they arrive, and None after each received chunk.

    Raises: ResponseTooLarge, UndecodableResponse, httpx.HTTPError.
    """
    unfinished_line = LineBuffer()
    for part in decoded_parts(response):
        if part is None:
            yield None
            continue
        yield from unfinished_line.add(part)
        if len(unfinished_line) > MAX_LINE_BYTES:
            raise ResponseTooLarge(f"a line of its answer has more than {MAX_LINE_BYTES} bytes")
    if unfinished_line:
        yield unfinished_line.end()
