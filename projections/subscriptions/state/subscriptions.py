"""Subscriptions read from the log, now or at a position, and the sealed secrets that they refer to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from annals.commands.store.compression.state_compression import decompress_state
from annals.commands.store.hashes import LogRow
from annals.commands.store.mapper import EventMapper, require_bytes
from annals.commands.store.secrets import Vault
from annals.domain.decisions.world import Secret
from annals.domain.registry.evolve import evolve
from annals.domain.subscriptions.subscription import TYPE, Subscription
from annals.projections.database.drivers import Database

COLLECTION: Final = f"/{TYPE}"

_EVENT_COLUMNS: Final = ", ".join(f"l.{name}" for name in LogRow._fields)
_SELECT_ONE: Final = (
    f"SELECT {_EVENT_COLUMNS} FROM log l WHERE l.stream = ? AND l.position <= ? ORDER BY l.revision DESC LIMIT 1"
)
# The first revision is the creation, because an id is never reused for another subscription.
_CREATION_POSITION: Final = "(SELECT f.position FROM log f WHERE f.stream = l.stream AND f.revision = 1)"
_SELECT_CURRENT: Final = (
    f"SELECT * FROM (SELECT {_CREATION_POSITION} AS born, {_EVENT_COLUMNS} FROM head h JOIN log l ON"
    " l.position = h.position"
    " WHERE h.type = ? AND h.live) AS living WHERE born > ? ORDER BY born"
)
_SELECT_PAST: Final = (
    f"SELECT f.position, {_EVENT_COLUMNS} FROM log f JOIN log l ON l.stream = f.stream AND l.revision ="
    " (SELECT max(t.revision) FROM log t WHERE t.stream = f.stream AND t.position <= ?)"
    f" WHERE f.stream >= '{COLLECTION}/' AND f.stream < '{COLLECTION}0' AND f.revision = 1"
    " AND f.position > ? AND f.position <= ? ORDER BY f.position"
)
_SELECT_SECRET: Final = "SELECT wrapped, sealed FROM secret WHERE reference = ? AND owner = ? AND name = ?"
_MAX_POSITION: Final = (1 << 63) - 1


class CreatedSubscription(NamedTuple):
    """A subscription and the position of its creation."""

    born: int
    subscription: Subscription


class StoredSubscriptions:
    """Subscriptions over one connection. position: the position to read at; None for now."""

    def __init__(self, db: Database, position: int | None = None) -> None:
        self._db = db
        self._position = position
        self._mapper = EventMapper()

    def get(self, id: str) -> Subscription | None:
        """A live subscription by its exact id. Uses index lookups."""
        if "\0" in id:
            return None  # PostgreSQL rejects such text even in queries
        row = self._db.one(_SELECT_ONE, (f"{COLLECTION}/{id}".lower(), self._last_position))
        subscription = self._subscription(row) if row else None
        return subscription if subscription is not None and subscription.id == id else None

    def all(self, after: int = 0) -> Iterator[CreatedSubscription]:
        """The live subscriptions that were created after a position, in order of creation.

        Cost: O(subscriptions); for a past position, deleted ones included.
        """
        if self._position is None:
            rows = self._db.all(_SELECT_CURRENT, (TYPE, after))
        else:
            rows = self._db.all(_SELECT_PAST, (self._position, after, self._position))
        for created_position, *row in rows:
            if (subscription := self._subscription(row)) is not None:
                yield CreatedSubscription(created_position, subscription)

    def reveal(self, vault: Vault, secret: Secret) -> str | None:
        """A secret value; None if it was destroyed or no key opens it."""
        return reveal_secret(self._db, vault, secret)

    @property
    def _last_position(self) -> int:
        return _MAX_POSITION if self._position is None else self._position

    def _subscription(self, row: Sequence[Any]) -> Subscription | None:
        position, stream, revision, topic, state = row
        event = self._mapper.event_of_row(LogRow(position, stream, revision, topic, decompress_state(state)))
        entity = evolve(event, position)
        return Subscription.from_entity(entity, position) if entity is not None else None


def reveal_secret(db: Database, vault: Vault, secret: Secret) -> str | None:
    """A secret value; None if it was destroyed or no key opens it."""
    row = db.one(_SELECT_SECRET, (secret.reference, secret.owner, secret.name))
    return vault.unseal(secret, require_bytes(row[0]), require_bytes(row[1])) if row else None
