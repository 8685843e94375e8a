"""The current replication links in the log, and their encrypted secret values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from annals.commands.store.compression.state_compression import decompress_state
from annals.commands.store.damage import report_once
from annals.commands.store.hashes import LogRow
from annals.commands.store.mapper import EventMapper, UnreadableEvent
from annals.commands.store.secrets import Vault
from annals.domain.decisions.world import Secret
from annals.domain.registry.evolve import evolve
from annals.domain.replication.link import COLLECTION, Link
from annals.domain.values import xid as xids
from annals.projections.database.drivers import Database
from annals.projections.subscriptions.state.subscriptions import reveal_secret

_EVENT_COLUMNS: Final = ", ".join(f"l.{name}" for name in LogRow._fields)
_SELECT_LIVE: Final = f"SELECT {_EVENT_COLUMNS} FROM head h JOIN log l ON l.position = h.position WHERE h.live AND "
_SELECT_ONE: Final = _SELECT_LIVE + "h.tree_key = ?"
_SELECT_ALL: Final = _SELECT_LIVE + "h.tree_key >= ? AND h.tree_key < ? ORDER BY h.tree_key"


class StoredLinks:
    """Reads links on one connection."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._mapper = EventMapper()

    def get(self, id: str) -> Link | None:
        """A live link by its exact id."""
        if "\0" in id:
            return None
        row = self._db.one(_SELECT_ONE, (xids.tree_key(f"{COLLECTION}/{id}"),))
        link = self._link(row) if row else None
        return link if link is not None and link.id == id else None

    def all(self) -> Iterator[Link]:
        """The live links, by id; a link whose event is damaged is reported and skipped."""
        for row in self._db.all(_SELECT_ALL, xids.subtree(COLLECTION)):
            try:
                link = self._link(row)
            except (UnreadableEvent, KeyError, TypeError) as error:
                # One damaged link must not stop the thread from reading the others.
                report_once(f"the link at position {row[0]} is ignored: {error}")
                continue
            if link is not None:
                yield link

    def reveal(self, vault: Vault, link: Link) -> Mapping[str, str]:
        """A link's secret values by name. Raises: LookupError when one is destroyed or no key decrypts it."""
        values = {}
        for name, reference in link.secrets.items():
            value = reveal_secret(self._db, vault, Secret(reference, link.xid, name))
            if value is None:
                raise LookupError(f"the secret {name} of the link {link.id} cannot be opened")
            values[name] = value
        return values

    def _link(self, row: Sequence[Any]) -> Link | None:
        position, stream, revision, topic, state = row
        entity = evolve(
            self._mapper.event_of_row(LogRow(position, stream, revision, topic, decompress_state(state))), position
        )
        return Link.from_entity(entity, position) if entity is not None else None
