"""Decodes the bodies of answers in steps of bounded size, so that a small answer cannot fill the memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Protocol

import zstandard

if TYPE_CHECKING:
    import httpx  # takes long, and only links need it


#: The value of the header Accept-Encoding: the codings that are decoded here. Other registries send zstd in a fifth of
#: the time of gzip.
ACCEPT_ENCODING: Final = "zstd, gzip"
#: Largest size in bytes of a decoded part of gzip.
STEP_BYTES: Final = 1 << 18
#: Bytes of zstd that are decoded at once: a block takes four of them at least, and has at most 128 KiB.
_ZSTD_INPUT_BYTES: Final = 64
#: The largest window that RFC 9659 allows, in bytes.
_ZSTD_WINDOW_BYTES: Final = 1 << 23
_GZIP_NAMES: Final = ("gzip", "x-gzip")
_GZIP_FORMAT: Final = 31  # for zlib: a header and a checksum of gzip, and the largest window


class UndecodableResponse(Exception):
    """An answer has a content coding that is not supported, or is not what its coding says."""


def decoded_parts(response: httpx.Response) -> Iterator[bytes | None]:
    """The decoded body as it arrives, in parts, and None after each received chunk.

    Decoded parts have at most a few MiB; others are as they were received.
    Raises: UndecodableResponse, httpx.HTTPError.
    """
    decoder = _decoder(response)
    for chunk in response.iter_raw():
        if decoder is None:
            yield chunk
        else:
            yield from decoder.parts(chunk)
        yield None
    if decoder is not None:
        decoder.end()


class _Decoder(Protocol):
    """Decodes one body."""

    def parts(self, chunk: bytes) -> Iterator[bytes]:
        """What can be decoded with another chunk, all of it. Raises: UndecodableResponse."""

    def end(self) -> None:
        """Checks that nothing is missing at the end. Raises: UndecodableResponse."""


def _decoder(response: httpx.Response) -> _Decoder | None:
    """The decoder for an answer; None if its body is not encoded. Raises: UndecodableResponse."""
    names = response.headers.get_list("content-encoding", split_commas=True)
    codings = [name for name in map(str.lower, names) if name not in ("", "identity")]
    if not codings:
        return None
    if len(codings) > 1:
        raise UndecodableResponse(f"its answer has {len(codings)} content codings, but only one is supported")
    if codings[0] == "zstd":
        return _ZstdDecoder()
    if codings[0] not in _GZIP_NAMES:
        raise UndecodableResponse(f"its answer has a content coding that was not asked for, which is {ACCEPT_ENCODING}")
    return _GzipDecoder()


class _GzipDecoder:
    """Decodes gzip, of one member or several in sequence."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_FORMAT)
        self._has_data = False

    def parts(self, chunk: bytes) -> Iterator[bytes]:
        """See `_Decoder`."""
        self._has_data = self._has_data or bool(chunk)
        part = b""
        # A part of the largest size may leave output inside the decoder, also after the last byte of input.
        while chunk or (len(part) == STEP_BYTES and not self._member.eof):
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP_FORMAT)
            try:
                part = self._member.decompress(chunk, STEP_BYTES)
            except zlib.error as error:
                raise UndecodableResponse(f"its answer is not valid gzip: {error}") from None
            chunk = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if part:
                yield part

    def end(self) -> None:
        """See `_Decoder`."""
        if self._has_data and not self._member.eof:
            raise UndecodableResponse("its answer ends before the end of its gzip data")


class _ZstdDecoder:
    """Decodes zstd, of one frame or several in sequence."""

    def __init__(self) -> None:
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
        self._frame = self._decompressor.decompressobj()
        self._has_data = False

    def parts(self, chunk: bytes) -> Iterator[bytes]:
        """See `_Decoder`."""
        self._has_data = self._has_data or bool(chunk)
        for start in range(0, len(chunk), _ZSTD_INPUT_BYTES):
            pending = chunk[start : start + _ZSTD_INPUT_BYTES]
            while pending:
                if self._frame.eof:
                    self._frame = self._decompressor.decompressobj()
                try:
                    part = self._frame.decompress(pending)
                except zstandard.ZstdError as error:
                    raise UndecodableResponse(f"its answer is not valid zstd: {error}") from None
                pending = self._frame.unused_data if self._frame.eof else b""
                if part:
                    yield part

    def end(self) -> None:
        """See `_Decoder`."""
        if self._has_data and not self._frame.eof:
            raise UndecodableResponse("its answer ends before the end of its zstd data")
