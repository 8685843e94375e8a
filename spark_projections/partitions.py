"""How many partitions a part of the log has in a shuffle of Spark."""

from __future__ import annotations

from math import ceil
from typing import Final

#: Events of a partition: some 50 MB.
_PARTITION_EVENTS: Final = 50_000
#: Events for which one core is enough.
_FEW_EVENTS: Final = 2_000


def partition_count(events: int, cores: int) -> int:
    """The number of partitions for a number of events on some cores, all of which have work unless it is little."""
    return max(cores if events > _FEW_EVENTS else 1, ceil(events / _PARTITION_EVENTS))
