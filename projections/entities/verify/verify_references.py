"""Verifies that the table `reference` has what the rows of the read model result in."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final

from sqlalchemy import Connection

from annals.commands.store.database import sql
from annals.projections.entities.references import reference_rows
from annals.projections.entities.rows import stored_row

_SELECT: Final = "SELECT target, tree_key, since, until FROM reference"


class ReferenceSum:
    """The sum of the hashes of all rows that the table should have, so that memory does not grow with their number."""

    def __init__(self) -> None:
        self._sum = 0

    def add(self, row_columns: Sequence[Any], until: int | None) -> None:
        """Adds what an image of an entity results in. An unreadable one has a finding of its own."""
        try:
            row = stored_row(row_columns)
        except ValueError:
            return
        for values in reference_rows(row, until):
            self._sum += _hash(values)

    def is_sum_of_table(self, connection: Connection) -> bool:
        """Whether the table has exactly these rows. Cost: reads it once."""
        return self._sum == sum(_hash(tuple(row)) for row in sql.run(connection, _SELECT))


def _hash(values: Sequence[Any]) -> int:
    return int.from_bytes(blake2b(repr(tuple(values)).encode(), digest_size=16).digest(), "big")
