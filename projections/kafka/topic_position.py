"""How far each topic is published: a record that the transaction with the topic's own records contains."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import orjson
from kafka.partitioner.default import murmur2

#: The topic of this record, by the part of its name after the prefix.
POSITIONS: Final = "positions"
POSITIONS_KEY: Final = b"positions"
#: The last offset of a partition without records.
NO_OFFSET: Final = -1
_CACHED_KEYS: Final = 1 << 14


class TopicPosition(NamedTuple):
    """How far one topic is published.

    number: of its last record, 0 for none. position: in the log, up to which everything is published.
    xregcorrelationid: of the interaction at that position. last_offsets: of the last record in each partition that is
    in use, or NO_OFFSET. key_format: see TopicContent.
    """

    number: int
    position: int
    xregcorrelationid: str
    last_offsets: tuple[int, ...]
    key_format: str

    def partition_of(self, key: bytes) -> int:
        """The partition of a key: that of Kafka's own producers, for as many partitions as the topic began with."""
        return (_positive_hash(key)) % len(self.last_offsets)


TopicPositions = Mapping[str, TopicPosition]


@lru_cache(maxsize=_CACHED_KEYS)
def _positive_hash(key: bytes) -> int:
    return int(murmur2(key)) & 0x7FFFFFFF


def encode_positions(positions: TopicPositions) -> bytes:
    """The value of the record."""
    return orjson.dumps({topic: position._asdict() for topic, position in positions.items()})


def decode_positions(value: bytes) -> dict[str, TopicPosition]:
    """The inverse of `encode_positions`. Raises: ValueError for anything else."""
    try:
        positions = {topic: TopicPosition(**members) for topic, members in orjson.loads(value).items()}
        return {
            topic: position._replace(last_offsets=tuple(position.last_offsets)) for topic, position in positions.items()
        }
    except (AttributeError, TypeError) as error:
        raise ValueError(str(error)) from None
