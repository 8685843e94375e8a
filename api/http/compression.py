"""Compresses responses with gzip or zstd: data of the registry, whole or streamed, but never stored documents.

Spec: RFC 9110, "Content Codings", "Vary".
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from threading import local
from typing import Final

import zstandard

from annals.api.http.response import JSON, Compressor, Response

#: Smaller bodies (in bytes) are not compressed: the saving would be less than a packet.
MIN_SIZE: Final = 1024
#: Larger bodies (in bytes) are compressed outside the event loop.
THREAD_SIZE: Final = 1 << 16

VARY: Final = (b"vary", b"accept-encoding")


# gzip at level 6 takes twice the time of level 4 for 3 % less output. zstd at level 3 takes a fifth of gzip's time, and
# its output is smaller than at both gzip levels.
_GZIP_LEVEL: Final = 4
_ZSTD_LEVEL: Final = 3
#: Media types of data. An event stream is not among them: events have to arrive at once, and a coding would delay them.
COMPRESSIBLE_TYPES: Final = (JSON[1], b"application/x-ndjson", b"application/cloudevents-batch+json", b"text/csv")
_CODINGS: Final[dict[str, Callable[[], Compressor]]] = {
    "zstd": lambda: zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compressobj(),
    "gzip": lambda: zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, 31),
}


async def compress_response(response: Response, accept_encoding: str | None) -> Response:
    """The response in the coding that the client prefers. accept_encoding: its Accept-Encoding header."""
    if not _is_compressible(response):
        return response
    headers = [*response.headers, VARY]
    coding = choose_coding(accept_encoding) if accept_encoding and response.status != 304 else None
    if coding is None or (
        isinstance(response.body, bytes) and not response.first_chunks and len(response.body) < MIN_SIZE
    ):
        first_chunks, check_rights = response.first_chunks, response.check_rights
        return Response(response.status, headers, response.body, None, first_chunks, check_rights=check_rights)
    headers = [*(_tag_with_coding(header, coding) for header in headers), (b"content-encoding", coding.encode())]
    if not isinstance(response.body, bytes):
        return replace(response, headers=headers, compressor=_CODINGS[coding]())
    body = b"".join((*response.first_chunks, response.body))
    if len(body) > THREAD_SIZE:
        return Response(response.status, headers, await asyncio.to_thread(_compress_whole, body, coding))
    return Response(response.status, headers, _compress_whole(body, coding))


@lru_cache(maxsize=256)
def choose_coding(accept_encoding: str) -> str | None:
    """The coding for an Accept-Encoding header; None for none."""
    weights = dict(map(_parse_weight, accept_encoding.lower().split(",")))
    weights_by_coding = {name: weights.get(name, weights.get("*", 0.0)) for name in _CODINGS}
    preferred = max(weights_by_coding, key=weights_by_coding.__getitem__)
    return preferred if weights_by_coding[preferred] > 0 else None


def _parse_weight(item: str) -> tuple[str, float]:
    name, _, parameter = item.partition(";")
    key, _, value = parameter.strip().partition("=")
    try:
        return name.strip(), float(value) if key.strip() == "q" else 1.0
    except ValueError:
        return name.strip(), 0.0


def _is_compressible(response: Response) -> bool:
    """Whether the body is data of the registry. Documents are sent as stored."""
    if response.is_document:
        return False
    return any(name == b"content-type" and value.startswith(COMPRESSIBLE_TYPES) for name, value in response.headers)


def _tag_with_coding(header: tuple[bytes, bytes], coding: str) -> tuple[bytes, bytes]:
    """The header; a strong entity tag gets the coding as suffix, because it identifies one sequence of bytes."""
    name, value = header
    return (name, value[:-1] + b"-" + coding.encode() + b'"') if name == b"etag" else header


class _ZstdCompressors(local):
    """One compressor per thread: creating one costs ten times as much as compressing a small response."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL)


_ZSTD_COMPRESSORS: Final = _ZstdCompressors()


def _compress_whole(body: bytes, coding: str) -> bytes:
    if coding == "zstd":
        return _ZSTD_COMPRESSORS.compressor.compress(body)
    compressor = _CODINGS[coding]()
    return compressor.compress(body) + compressor.flush()
