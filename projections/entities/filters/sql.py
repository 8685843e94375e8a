"""Fragments of SQL with their parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final, NamedTuple

from annals.projections.database.drivers import Database
from annals.projections.entities.rows import ROW_COLUMNS

_ENTITY_COLUMNS: Final = ", ".join(f"e.{name}" for name in ROW_COLUMNS)


class SqlFragment(NamedTuple):
    """A text with `?` for parameters, and the parameters in their order."""

    text: str
    values: tuple[Any, ...] = ()

    def wrap(self, text: str) -> SqlFragment:
        """The fragment inserted at the `{}` of a text."""
        return SqlFragment(text.replace("{}", self.text), self.values)


#: SQLite nests the operands of OR one in another, and accepts 1000 levels.
_MAX_OPERANDS: Final = 500

#: Conditions that are true of every row, and of none.
ALWAYS: Final = SqlFragment("1 = 1")
NEVER: Final = SqlFragment("1 = 0")


def join_fragments(separator: str, fragments: Iterable[SqlFragment]) -> SqlFragment:
    """One fragment of several, with their parameters in order."""
    parts = tuple(fragments)
    return SqlFragment(
        separator.join(fragment.text for fragment in parts),
        tuple(value for fragment in parts for value in fragment.values),
    )


def and_(*conditions: SqlFragment) -> SqlFragment:
    """The conditions joined by AND."""
    return join_fragments(" AND ", conditions)


def or_(conditions: Iterable[SqlFragment]) -> SqlFragment:
    """The conditions joined by OR, in parentheses."""
    parts = list(conditions)
    while len(parts) > _MAX_OPERANDS:
        groups = (parts[start : start + _MAX_OPERANDS] for start in range(0, len(parts), _MAX_OPERANDS))
        parts = [join_fragments(" OR ", group).wrap("({})") for group in groups]
    return join_fragments(" OR ", parts).wrap("({})")


def between(column: str, low: str, high: str) -> SqlFragment:
    """The condition that a column is between two keys, both exclusive."""
    return SqlFragment(f"{column} > ? AND {column} < ?", (low, high))


def in_list(db: Database, column: str, values: Collection[str | int]) -> SqlFragment:
    """The condition that a column has one of some values."""
    return SqlFragment(db.in_list(column), (db.list_parameter(values),))


def key_list(db: Database, keys: Collection[str]) -> SqlFragment:
    """A table expression with some keys, in the column `key`."""
    return SqlFragment(db.list_table, (db.list_parameter(keys),))


def among_types(types: Collection[str]) -> SqlFragment:
    """The condition that a row is of one of several types, where the rows are read in the order of tree keys."""
    # The concatenation hides the column from the index by type, whose many ranges would have to be merged.
    return SqlFragment(f"type || '' IN ({', '.join('?' for _ in types)})", tuple(types))


def entities_by_key(type: str, keys: SqlFragment) -> SqlFragment:
    """The rows of a type's entities with some id keys.

    keys: SELECT DISTINCT of the column `id_key`. Without DISTINCT it would be part of the join; SQLite would then apply
    its range of keys to the entities too, and prefer that range to the equality of keys.
    """
    select = (
        f"SELECT {_ENTITY_COLUMNS} FROM ({{}}) AS k CROSS JOIN entity AS e WHERE e.id_key = k.id_key AND e.type = ?"
    )
    query = keys.wrap(select)
    return SqlFragment(query.text, (*query.values, type))
