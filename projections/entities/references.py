"""The table `reference`: the entities whose attributes named an xid, now and in the past.

A row says that an image of an entity contains the text of an xid, from the image's position until it was replaced. It
is a function of the image alone, whatever the model says, and finds what may refer to an entity. Whether an image does
refer to it, and by which attribute, its JSON decides. The default Version has no rows: its Resource shows the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from annals.commands.store.damage import UnreadableRow
from annals.commands.store.database.sql import chunks
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads_trusted
from annals.projections.database.drivers import Database, Values
from annals.projections.entities.changed_rows import rows_as_of
from annals.projections.entities.leaves import UNINDEXED_TYPES
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.visibility import Visibility

#: The maximum characters of a target. It is longer than every xid, so only what follows an xid is cut off.
MAX_TARGET: Final = 600
# What a string in JSON begins with, if it begins with the xid of something in a Group; no character of it is escaped.
_TARGET: Final = re.compile(r'"(/[a-z_][a-z0-9_]*/[!#-\[\]-~]+)')
_NOW: Final = "until IS NULL"
_THEN: Final = "since <= ? AND (until IS NULL OR until > ?)"


def reference_rows(row: EntityRow, until: int | None) -> Iterator[Values]:
    """The rows of an image of an entity. until: the position that replaced it; None for the current image.

    Cost: a search for two characters, for an image without such text.
    """
    if '"/' not in row.attributes or row.type in UNINDEXED_TYPES:
        return
    targets = {target[:MAX_TARGET].lower() for target in _TARGET.findall(row.attributes)}
    if targets and not is_default_version(row):
        yield from ((target, row.tree_key, row.since, until) for target in sorted(targets))


def is_default_version(row: EntityRow) -> bool:
    """Whether an entity is a Version that is the default of its Resource."""
    return row.type.count(".") == 2 and loads_trusted(row.attributes).get("isdefault") is True


class StoredReferences:
    """What may refer to entities, on a connection. position: of a moment; None for now."""

    def __init__(self, db: Database, visibility: Visibility, position: int | None = None) -> None:
        self._db = db
        self._visibility = visibility
        self._position = position

    def rows(self, xid: str, after_key: str = "", *, below: bool) -> Iterator[EntityRow]:
        """The visible entities that may refer to an entity, or to anything below it, in the order of tree keys.

        after_key: only entities from this tree key on. Cost: O(entities that may refer to it), however many there are.
        """
        for keys in chunks(self._keys(xid, after_key, below)):
            visible_keys = [key for key in keys if self._visibility.sees_key(key)]
            rows = rows_as_of(self._db, visible_keys, self._position) if visible_keys else {}
            yield from (rows[key] for key in visible_keys if key in rows)

    def _keys(self, xid: str, after_key: str, below: bool) -> list[str]:
        alive, moment = (_NOW, ()) if self._position is None else (_THEN, (self._position, self._position))
        select = f"SELECT DISTINCT tree_key FROM reference WHERE {{}} AND tree_key >= ? AND {alive}"
        conditions = _target_conditions(xid, below)
        if not conditions:
            return []
        # One range of the primary key each, which an OR of them is not on SQLite.
        query = " UNION ".join(select.format(text) for text, _ in conditions)
        values = tuple(value for _, bounds in conditions for value in (*bounds, after_key, *moment))
        return [_checked_key(key) for (key,) in self._db.all(f"{query} ORDER BY 1", values)]


def _checked_key(key: Any) -> str:
    """The tree key in a row. Raises: UnreadableRow for a value of another type, which SQLite can store as well."""
    if not isinstance(key, str):
        raise UnreadableRow(f"a row of reference has the invalid key {key!r:.100}")
    return key


def _target_conditions(xid: str, below: bool) -> Sequence[tuple[str, Values]]:
    """Conditions for the texts that may name an entity: its xid, alone or with what may follow it in a URI."""
    target = xid.lower()
    if target == xids.REGISTRY:
        return [_between("/", "0")] if below else []
    following = [("#", "%"), (":", ";"), ("/", "0")] if below else [("#", "%"), (":", ";"), ("/meta", "/meta\x7f")]
    return [("target = ?", (target,)), *(_between(target + low, target + high) for low, high in following)]


def _between(low: str, high: str) -> tuple[str, Values]:
    return "target >= ? AND target < ?", (low, high)


def all_reference_rows(rows: Iterable[tuple[EntityRow, int | None]]) -> list[Values]:
    """The rows of some images, each with the position that replaced it."""
    return [values for row, until in rows for values in reference_rows(row, until)]
