"""The numbers of entities that have been changed or deleted since their segment was written, as compressed bitmaps."""

from __future__ import annotations

from typing import Final

from pyroaring import BitMap64

from annals.projections.database.drivers import Database
from annals.projections.search import tables
from annals.projections.search.tables import UnreadableIndex

#: Compressed bitmaps: the union and the intersection of many numbers take microseconds.
Numbers = BitMap64
#: The bits of a number that tell those of one row apart. They take 8 kB at most, and two bytes each where they are few.
PART_BITS: Final = 16


def read_gone(db: Database) -> Numbers:
    """All of them. Raises: UnreadableIndex."""
    gone = Numbers()
    for (data,) in db.all("SELECT data FROM search_gone"):
        try:
            gone |= Numbers.deserialize(data)
        except (ValueError, TypeError) as error:
            raise UnreadableIndex(f"the changed entities of the search index cannot be read: {error}") from error
    return gone


def write_gone(db: Database, before: Numbers, after: Numbers) -> None:
    """Replaces all of them, in a transaction that excludes other writers. Cost: the rows where they differ."""
    parts = {number >> PART_BITS for number in before ^ after}
    rows = [(part, after & Numbers(range(part << PART_BITS, (part + 1) << PART_BITS))) for part in sorted(parts)]
    db.upsert(tables.gone, [(part, numbers.serialize()) for part, numbers in rows if numbers])
    db.delete(tables.gone, [(part,) for part, numbers in rows if not numbers])
