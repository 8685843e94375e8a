"""Follows the log: a projection applies whole interactions, and its position moves in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import Final, Protocol

from sqlalchemy import Connection

from commands.store.engine import WRITING
from commands.store.log import Store
from domain.registry.events import EntityEvent
from projections.database import drivers
from projections.log import positions

#: The number of interactions in one step: enough to make a commit cheap.
BATCH_INTERACTIONS: Final = 100

_END: Final = "SELECT max(last) FROM (SELECT last FROM interaction WHERE last > ? ORDER BY last LIMIT ?) AS next"


class Projection(Protocol):
    """A projection that follows the log."""

    @property
    def name(self) -> str:
        """The name under which its position is stored; never reused for another projection."""

    def apply(self, connection: Connection, recorded: Sequence[tuple[int, EntityEvent]]) -> None:
        """Applies the events of whole interactions, in log order.

        What it writes on this connection is written once; an effect outside this transaction can repeat after a
        failure.
        """


class LogFollower:
    """Moves one projection along the log. Several processes may run it: only one at a time moves it."""

    def __init__(self, store: Store, projection: Projection, together: int = BATCH_INTERACTIONS) -> None:
        self._store = store
        self._projection = projection
        self._together = together
        self._engine = store.engine.execution_options(**{WRITING: True})
        with self._engine.begin() as connection:
            positions.POSITIONS.create(connection, checkfirst=True)

    def step(self) -> int:
        """Applies the next interactions; returns the number of their events, 0 at the end of the log."""
        if self._end(self.position()) is None:
            return 0
        with self._engine.begin() as connection:
            db = drivers.database_of(connection)
            after = positions.lock_position(db, self._projection.name)
            end = self._end(after)
            if end is None:
                return 0
            self._projection.apply(connection, self._store.events(after, end - after))
            positions.save_position(db, self._projection.name, end)
        return end - after

    def catch_up(self) -> int:
        """Applies the rest of the log; returns the number of events."""
        return sum(iter(self.step, 0))

    def run(self, stop: Event, pause: float = 0.05) -> None:
        """Follows the log until stopped. pause: seconds between polls of an unchanged log."""
        while not stop.is_set():
            if not self.step():
                stop.wait(pause)

    def position(self) -> int:
        """The last position applied."""
        with self._store.engine.connect() as connection:
            return positions.read_position(drivers.database_of(connection), self._projection.name)

    def _end(self, after: int) -> int | None:
        with self._store.engine.connect() as connection:
            end: int | None = drivers.database_of(connection).one(_END, (after, self._together))[0]
            return end
