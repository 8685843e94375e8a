"""The current replication links in the log, and their encrypted secret values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from annals.commands.store.secrets import Vault
from annals.domain.decisions.world import Secret
from annals.domain.replication.link import COLLECTION, Link
from annals.domain.values import xid as xids
from annals.projections.database.drivers import Database
from annals.projections.log.entities_outside_tree import EntitiesOutsideTree
from annals.projections.log.reader import Log
from annals.projections.subscriptions.state.subscriptions import reveal_secret


class StoredLinks:
    """Reads links on one connection."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._entities = EntitiesOutsideTree(db, COLLECTION)

    def get(self, id: str) -> Link | None:
        """A live link by its exact id."""
        entity = self._entities.get(id)
        return Link.from_entity(entity, entity.position) if entity is not None else None

    def former(self, id: str) -> Link | None:
        """The last link of an id of which there is none now; None if there never was one."""
        rows = Log(self._db).latest(xids.stream(f"{COLLECTION}/{id}"), 1)
        if not rows:
            return None
        entity = EntitiesOutsideTree(self._db, COLLECTION, rows[0].position - 1).get(id)
        return Link.from_entity(entity, entity.position) if entity is not None else None

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
