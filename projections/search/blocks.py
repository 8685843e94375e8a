"""The stored form of blocks: words with the numbers of entities, and rows of entities, each one zstd frame.

A block of words has, little-endian: how many words there are and how long their text is, the words separated by line
breaks, how many numbers each has, and the numbers, each as the difference to the one before. All parts are read by
functions that are written in C. A block of rows has a line for each entity. Numbers are relative to the first one of
the segment, or of the block of rows, so that a block is made before the numbers are known.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from threading import local
from typing import Any, Final

import zstandard

from annals.domain.search.texts import SearchedEntity, Text
from annals.domain.values.json_text import dumps, loads_trusted
from annals.projections.search.tables import UnreadableIndex

_HEADER: Final = struct.Struct("<II")
#: Levels of zstd: a block that will be merged soon is compressed in a twentieth of the time, and is a tenth larger.
_SOON_MERGED_LEVEL: Final = 1
_LEVEL: Final = 9
#: Numbers are unsigned integers of four bytes.
_NUMBERS: Final = "I"
_NUMBER_BYTES: Final = 4
_LINE: Final = b"\n"


#: A word, and the numbers of the entities that have it, in order. A search makes many of them, so it is a plain tuple.
WordNumbers = tuple[str, Sequence[int]]


def encode_words(entries: Sequence[WordNumbers], *, soon_merged: bool = False) -> bytes:
    """A block of words in order. soon_merged: whether it will be written again soon."""
    words = "\n".join(word for word, _ in entries).encode()
    counts = array(_NUMBERS, (len(numbers) for _, numbers in entries))
    steps = array(_NUMBERS)
    for _, numbers in entries:
        steps.append(numbers[0])
        steps.extend(later - earlier for earlier, later in pairwise(numbers))
    content = _HEADER.pack(len(entries), len(words)) + words + _planes(counts) + _planes(steps)
    return _compress(content, soon_merged)


class WordBlock:
    """The words of a block, in order. base: added to each number. Raises: UnreadableIndex."""

    def __init__(self, data: Any, base: int) -> None:
        self.words, self._counts, self._steps = _decode_words(data)
        self._base = base

    def all(self) -> Iterator[WordNumbers]:
        """All words."""
        return self._between(0, len(self.words))

    def between(self, low: str, high: str) -> Iterator[WordNumbers]:
        """The words from one (inclusive) to another (exclusive)."""
        return self._between(bisect_left(self.words, low), bisect_left(self.words, high))

    def numbers_of(self, words: Iterable[str]) -> Iterator[int]:
        """The numbers that have one of some words."""
        for word in words:
            place = bisect_left(self.words, word)
            if self.words[place : place + 1] == [word]:  # new entities are looked for as well, and not found
                for _, numbers in self._between(place, place + 1):
                    yield from numbers

    def collect_numbers(self, low: str, high: str, collected: dict[str, list[int]]) -> None:
        """Adds the numbers of the words from one (inclusive) to another (exclusive) to those of their last letters."""
        start, end = bisect_left(self.words, low), bisect_left(self.words, high)
        base, steps, offset = self._base, self._steps, sum(self._counts[:start])
        for word, count in zip(self.words[start:end], self._counts[start:end], strict=True):
            numbers = collected.setdefault(word[-1], [])
            if count == 1:  # so have most words, and a prefix may have many
                numbers.append(base + steps[offset])
            else:
                numbers.extend(accumulate(steps[offset + 1 : offset + count], initial=base + steps[offset]))
            offset += count

    def _between(self, start: int, end: int) -> Iterator[WordNumbers]:
        base, steps, offset = self._base, self._steps, sum(self._counts[:start])
        for word, count in zip(self.words[start:end], self._counts[start:end], strict=True):
            first = base + steps[offset]
            numbers = [first] if count == 1 else [*accumulate(steps[offset + 1 : offset + count], initial=first)]
            yield word, numbers
            offset += count


def _decode_words(data: Any) -> tuple[list[str], Sequence[int], Sequence[int]]:
    content = _decompress(data)
    try:
        count, length = _HEADER.unpack_from(content)
        words = content[_HEADER.size : _HEADER.size + length].decode().split("\n")
        numbers_start = _HEADER.size + length
        counts = _numbers(content[numbers_start : numbers_start + count * _NUMBER_BYTES])
        steps = _numbers(content[numbers_start + count * _NUMBER_BYTES :])
    except (ValueError, struct.error) as error:
        raise UnreadableIndex(f"a block of the search index cannot be read: {error}") from error
    if not len(words) == len(counts) == count or sum(counts) != len(steps) or 0 in counts:
        raise UnreadableIndex("a block of the search index has another length than it says")
    return words, counts, steps


def encode_rows(rows: Sequence[tuple[int, bytes]], *, soon_merged: bool = False) -> bytes:
    """A block of rows, each one line, in the order of their numbers. soon_merged: as above."""
    return _compress(_LINE.join((dumps([number for number, _ in rows]), *(row for _, row in rows))), soon_merged)


def decode_rows(data: Any, base: int, wanted: Iterable[int] | None = None) -> Iterator[tuple[int, bytes]]:
    """The rows of a block with their numbers. base: added to each number. wanted: the numbers of only some.

    Raises: UnreadableIndex.
    """
    encoded, *rows = _decompress(data).split(_LINE)
    try:
        numbers: list[int] = loads_trusted(encoded)
    except ValueError as error:
        raise UnreadableIndex(f"a block of the search index cannot be read: {error}") from error
    if len(numbers) != len(rows):
        raise UnreadableIndex("a block of the search index has another length than it says")
    if wanted is None:
        yield from ((base + number, row) for number, row in zip(numbers, rows, strict=True))
    else:
        places = ((number, bisect_left(numbers, number - base)) for number in wanted)
        yield from ((one, rows[place]) for one, place in places if numbers[place : place + 1] == [one - base])


def encode_entity(entity: SearchedEntity) -> bytes:
    """An entity as one row."""
    return dumps([entity.xid, entity.type, entity.format, entity.is_version, [list(text) for text in entity.texts]])


def decode_entity(row: bytes) -> SearchedEntity:
    """The entity of a row. Raises: UnreadableIndex."""
    try:
        xid, type, format, is_version, texts = loads_trusted(row)
        return SearchedEntity(xid, type, format, tuple(Text(*text) for text in texts), is_version)
    except (ValueError, TypeError) as error:
        raise UnreadableIndex(f"an entity of the search index cannot be read: {error}") from error


def _planes(numbers: array[int]) -> bytes:
    """Numbers as their lowest bytes, then their second ones and so on: most high bytes are 0 and take no space."""
    if sys.byteorder == "big":
        numbers.byteswap()
    content = numbers.tobytes()
    return b"".join(content[plane::_NUMBER_BYTES] for plane in range(_NUMBER_BYTES))


def _numbers(planes: bytes) -> array[int]:
    """The numbers of `_planes`. Raises: ValueError for another length."""
    count = len(planes) // _NUMBER_BYTES
    content = bytearray(len(planes))
    for plane in range(_NUMBER_BYTES):
        content[plane::_NUMBER_BYTES] = planes[plane * count : (plane + 1) * count]
    numbers = array(_NUMBERS)
    numbers.frombytes(content)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _decompress(data: Any) -> bytes:
    try:
        return _CODECS.decompress(data)
    except (zstandard.ZstdError, TypeError, MemoryError) as error:
        raise UnreadableIndex(f"a block of the search index cannot be read: {error}") from error


def _compress(content: bytes, soon_merged: bool) -> bytes:
    return _CODECS.compressors[soon_merged].compress(content)


class _BlockCodecs(local):
    """The codecs of a thread, which must not share them. compressors: by whether a block is merged soon."""

    def __init__(self) -> None:
        self.compressors = tuple(
            zstandard.ZstdCompressor(level=level, write_checksum=True) for level in (_LEVEL, _SOON_MERGED_LEVEL)
        )
        self._decompressor = zstandard.ZstdDecompressor()

    def decompress(self, data: bytes) -> bytes:
        return self._decompressor.decompress(data)


_CODECS: Final = _BlockCodecs()
