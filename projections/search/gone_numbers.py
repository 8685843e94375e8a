"""The numbers of entities that have been changed or deleted since their segment was written, as compressed bitmaps."""

from __future__ import annotations

from typing import Final

from pyroaring import BitMap64

from annals.commands.store.damage import UnreadableRow
from annals.projections.database.drivers import Database
from annals.projections.search import tables

#: Compressed bitmaps: the union and the intersection of many numbers take microseconds.
Numbers = BitMap64
#: Numbers of a row, as a power of 2. They take 8 kB at most, and two bytes each where they are few.
_PART_BITS: Final = 16


def read_gone(db: Database) -> Numbers:
    """All of them. Raises: UnreadableRow."""
    gone = Numbers()
    for (data,) in db.all("SELECT data FROM search_gone"):
        try:
            gone |= Numbers.deserialize(data)
        except (ValueError, TypeError) as error:
            raise UnreadableRow(f"the changed entities of the search index cannot be read: {error}") from error
    return gone


def write_gone(db: Database, before: Numbers, after: Numbers) -> None:
    """Replaces all of them, in a transaction that excludes other writers. Cost: the rows where they differ."""
    parts = {number >> _PART_BITS for number in before ^ after}
    rows = [(part, after & Numbers(range(part << _PART_BITS, (part + 1) << _PART_BITS))) for part in sorted(parts)]
    db.upsert(tables.gone, [(part, numbers.serialize()) for part, numbers in rows if numbers])
    db.delete(tables.gone, [(part,) for part, numbers in rows if not numbers])
