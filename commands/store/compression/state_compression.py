"""Compresses the states of events for the log: one zstd frame a state, with a dictionary of typical events.

A state that a frame would not shorten is stored as it is, as the states of older programs are. JSON begins with a
brace and a frame with zstd's magic number, so the bytes say which of the two they are. Hashes cover the state, never
its stored form.

A frame names its dictionary by number. `python -m bench.dictionary` has made the dictionary, and it never changes,
because stores depend on it. One for new states would get another number and another schema of the store.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from threading import local
from typing import Any, Final

import zstandard

from annals.commands.store.mapper import UnreadableEvent, require_bytes

#: The dictionary of new states. Not 32768, the first number for private use: a flipped bit would make it "none".
DICTIONARY: Final = Path(__file__).with_name("dictionary-32769.zdict")

# Level 1 is as fast and its frames take 3 % more space; level 6 takes four times as long for 6 % less.
_LEVEL: Final = 3
_FRAME_START: Final = zstandard.FRAME_HEADER


def compress_state(state: bytes) -> bytes:
    """The shorter form of a state, for the log. Cost: 3 microseconds for a typical state."""
    frame = _CODECS.compress(state)
    return frame if len(frame) < len(state) else state


def decompress_state(stored: Any) -> bytes:
    """The state of a value of the log's column. Cost: 1 microsecond.

    Raises: UnreadableEvent for a value that is not bytes, and for a damaged frame.
    """
    # Lists decompress thousands of values, so that calls and look-ups count.
    value = stored if type(stored) is bytes else require_bytes(stored)
    if not value.startswith(_FRAME_START):
        return value
    try:
        # max_output_size: as the frame says. read_across_frames: no. allow_extra_data: no. By keyword, it takes longer.
        return _CODECS.decompress(value, 0, False, False)
    except (zstandard.ZstdError, MemoryError) as error:  # a damaged frame may claim any size
        raise UnreadableEvent(f"a compressed state cannot be read: {error}") from error


def decompress_states(values: list[Any]) -> list[bytes]:
    """The states of many values of the log's column. Cost: three quarters of `decompress_state` for each.

    Raises: see decompress_state.
    """
    if not all(type(value) is bytes and value.startswith(_FRAME_START) for value in values):
        return [decompress_state(value) for value in values]
    try:
        segments = _CODECS.decompress_many(values)
        return [segments[number].tobytes() for number in range(len(segments))]
    except (zstandard.ZstdError, MemoryError):
        return [decompress_state(value) for value in values]  # its error names what is wrong


class _Codecs(local):
    """Functions of a compressor and a decompressor of one thread; threads can share only the dictionary."""

    def __init__(self) -> None:
        self.compress = zstandard.ZstdCompressor(level=_LEVEL, dict_data=_dictionary()).compress
        decompressor = zstandard.ZstdDecompressor(dict_data=_dictionary())
        self.decompress, self.decompress_many = decompressor.decompress, decompressor.multi_decompress_to_buffer


@cache
def _dictionary() -> zstandard.ZstdCompressionDict:
    dictionary = zstandard.ZstdCompressionDict(DICTIONARY.read_bytes())
    dictionary.precompute_compress(level=_LEVEL)  # otherwise each compressor digests it for itself
    return dictionary


_CODECS: Final = _Codecs()
