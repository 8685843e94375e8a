"""A store and its read model, written by hand-made interactions."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Self

from annals.commands.store.log import Store
from annals.domain.decisions.commands import DeleteEntities
from annals.domain.decisions.world import Decision
from annals.domain.registry.events import EntityEvent
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.leaves import MAX_LEAVES, leaves
from annals.projections.entities.rows import entity_row
from annals.projections.entities.view_pool import ViewPool
from tests.support.read_model import read_model_rows
from tests.support.registries.history import History
from tests.support.stores import analyze

Rows = list[tuple[Any, ...]]

COMMAND = DeleteEntities("/dirs")


class Registry:
    """A registry that tests write to and read from. `history` holds the same log in memory.

    most: leaves of one entity in the attribute index. is_behind: the attribute index is not updated.
    """

    def __init__(self, url: str, most: int = MAX_LEAVES, *, is_behind: bool = False) -> None:
        self.url = url
        self.store = Store(url)
        self.history = History()
        self.entities = EntityProjection(max_leaves=most)
        self.readers = ViewPool(url)
        self.is_behind = is_behind
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self.store.create()
        with self.store.writing() as tx:
            self.entities.create(tx.connection)
        self._open.callback(self.store.close)
        self._open.callback(self.readers.close)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def record(
        self,
        *changes: tuple[str, dict[str, Any] | None],
        refresh: bool = False,
        documents: dict[str, bytes] | None = None,
    ) -> int:
        """Records one interaction in the log and the read model. Returns its last position."""
        with self.store.writing() as tx:
            events = tuple(event for _, event in self.history.record(*changes, refresh=refresh))
            recorded = tx.append(Decision(events, documents or {}), tx.context(), COMMAND)
            self.entities.apply(tx.connection, recorded.events)
            if not self.is_behind:
                self.entities.catch_up(tx.connection)
        return recorded.position

    def tables(self) -> tuple[Rows, Rows, Rows]:
        """Everything in the three tables of entities, sorted."""
        with self.store.engine.connect() as connection:
            rows = read_model_rows(connection)
        return rows["entity"], rows["entity_history"], rows["attribute"]

    def expected(self) -> tuple[Rows, Rows, Rows]:
        """The expected rows of `tables`, computed from the log in memory."""
        rows: dict[str, tuple[int, EntityEvent]] = {}
        replaced: Rows = []
        for position, event in self.history.recorded:
            if old := rows.pop(event.stream, None):
                replaced.append((*entity_row(old[1], old[0]), position))
            if event.stream in self.history.alive_at(position):
                rows[event.stream] = position, event
        alive = [entity_row(event, position) for position, event in rows.values()]
        found = [
            (entity.type, path, value, entity.id_key)
            for entity, (_, event) in zip(alive, rows.values(), strict=True)
            if entity.type not in ("/model", "/capabilities")
            for path, value in leaves(event.attributes).items()
        ]
        return sorted(map(tuple, alive), key=str), sorted(replaced, key=str), sorted(found, key=str)


def record_files(registry: Registry, groups: int, files: int) -> None:
    """Records Groups with the same number of files each: enough entities that query plans avoid scans."""
    for d in range(groups):
        recorded = (
            (f"/dirs/d{d}/files/f{f}", {"name": f"n{f}", "size": f, "meta": {"readonly": f % 2 == 0}})
            for f in range(files)
        )
        registry.record((f"/dirs/d{d}", {"dirid": f"d{d}", "name": f"d{d}"}), *recorded)
    with registry.store.writing() as transaction:
        analyze(transaction.connection)
