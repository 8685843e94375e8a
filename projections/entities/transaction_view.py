"""The read model inside a write transaction, as of the command that was decided last."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, cast

from annals.commands.store.write_transaction import WriteTransaction
from annals.domain.values.xid import CAPABILITIES, MODEL
from annals.projections.database import drivers
from annals.projections.database.drivers import Database
from annals.projections.entities.rows import EntityRow, entity_row
from annals.projections.entities.view import ListSubtree, View


class TransactionView(View):
    """Single entities are made from the events that the transaction has in memory; all else is queried.

    A query writes what the transaction has appended, so commands whose answers need none are written together.
    """

    def __init__(self, transaction: WriteTransaction) -> None:
        super().__init__(cast(Database, _WrittenDatabase(transaction)))
        self._world = transaction.world

    def definitions(self) -> tuple[int, int]:
        return self._world.definition_position(MODEL), self._world.definition_position(CAPABILITIES)

    def entity(self, xid: str) -> EntityRow | None:
        head = self._world.stream_head(xid)
        if head.event is None or head.event.xid != xid:
            return None
        return entity_row(head.event, head.position)

    def entities(self, xids: Sequence[str]) -> list[EntityRow]:
        self._world.prefetch(xids)
        return [row for row in map(self.entity, xids) if row is not None]

    def subtree_lister(self, xid: str, types: Iterable[str]) -> ListSubtree:
        """`View.subtree_lister`, which queries nothing until it is asked for entities of some type."""
        return _LazySubtree(lambda: super(TransactionView, self).subtree_lister(xid, types))


class _WrittenDatabase:
    """A `Database` that has everything that a write transaction has appended."""

    def __init__(self, transaction: WriteTransaction) -> None:
        self._transaction = transaction

    def __getattr__(self, name: str) -> Any:
        return getattr(drivers.database_of(self._transaction.connection), name)


class _LazySubtree:
    def __init__(self, open_subtree: Callable[[], ListSubtree]) -> None:
        self._open_subtree = open_subtree
        self._subtree: ListSubtree | None = None

    def __call__(self, xid: str, types: Collection[str]) -> Iterator[EntityRow]:
        if not types:
            return iter(())
        if self._subtree is None:
            self._subtree = self._open_subtree()
        return self._subtree(xid, types)
