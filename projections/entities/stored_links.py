"""The current replication links in the log, and their encrypted secret values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from annals.commands.store.secrets import Vault
from annals.domain.decisions.world import Secret
from annals.domain.replication.link import COLLECTION, Link
from annals.domain.values import xid as xids
from annals.projections.database.drivers import Database
from annals.projections.log.entities_outside_tree import EntitiesOutsideTree
from annals.projections.log.reader import Log
from annals.projections.subscriptions.state.subscriptions import reveal_secret

#: Links of one id that are looked at.
_MAX_EARLIER: Final = 100


class StoredLinks:
    """Reads links on one connection."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._entities = EntitiesOutsideTree(db, COLLECTION)

    def get(self, id: str) -> Link | None:
        """A live link by its exact id."""
        entity = self._entities.get(id)
        return Link.from_entity(entity, entity.position) if entity is not None else None

    def earlier(self, id: str) -> Iterator[Link]:
        """The links that ever had an id, the last one first, each as it was created."""
        for row in Log(self._db).creations(xids.stream(f"{COLLECTION}/{id}"), _MAX_EARLIER):
            entity = EntitiesOutsideTree(self._db, COLLECTION, row.position).get(id)
            if entity is not None:
                yield Link.from_entity(entity, entity.position)

    def all(self, after: str = "") -> Iterator[Link]:
        """The live links, by id; a link whose event is damaged is reported and skipped. after: an id before them."""
        return (Link.from_entity(entity, entity.position) for entity in self._entities.all(after))

    def reveal(self, vault: Vault, link: Link) -> Mapping[str, str]:
        """A link's secret values by name. Raises: LookupError when one is destroyed or no key decrypts it."""
        values = {}
        for name, reference in link.secrets.items():
            value = reveal_secret(self._db, vault, Secret(reference, link.xid, name))
            if value is None:
                raise LookupError(f"the secret {name} of the link {link.id} cannot be opened")
            values[name] = value
        return values
