"""Reads answers of other registries up to the sizes that may be held in memory; refuses larger ones while reading."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import httpx

#: Limits in bytes of a whole answer, of one line of a feed, and of an error answer. The first two fit the largest
#: document that a registry accepts, in base64.
MAX_RESPONSE_BYTES: Final = 1 << 29
MAX_LINE_BYTES: Final = 1 << 29
MAX_ERROR_BYTES: Final = 1 << 16
#: Headers that do not apply to a body after decoding.
_CODINGS: Final = ("content-encoding", "content-length", "transfer-encoding")


class ResponseTooLarge(Exception):
    """An answer, or a line of it, exceeds its limit."""


def read_response(response: httpx.Response) -> httpx.Response:
    """An answer with its body. The body of a long error answer is cut off.

    Raises: ResponseTooLarge, httpx.HTTPError.
    """
    is_error = response.status_code >= 400
    most = MAX_ERROR_BYTES if is_error else MAX_RESPONSE_BYTES
    found = bytearray()
    for part in response.iter_bytes():
        found += part
        if len(found) > most and is_error:
            break  # its status suffices
        if len(found) > most:
            raise ResponseTooLarge(f"its answer has more than {most} bytes")
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _CODINGS]
    return httpx.Response(response.status_code, headers=headers, content=bytes(found), request=response.request)


def read_lines(response: httpx.Response) -> Iterator[bytes | None]:
    """The lines of an answer as they arrive, and None after each received part.

    Raises: ResponseTooLarge, httpx.HTTPError.
    """
    rest = bytearray()
    for part in response.iter_bytes():
        *ended, last = part.split(b"\n")
        if ended:
            yield bytes(rest + ended[0])
            yield from ended[1:]
            rest = bytearray()
        rest += last
        if len(rest) > MAX_LINE_BYTES:
            raise ResponseTooLarge(f"a line of its answer has more than {MAX_LINE_BYTES} bytes")
        yield None
    if rest:
        yield bytes(rest)
