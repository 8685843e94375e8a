"""Publications read from events in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from domain.compat.legacy_apis import LegacyApi, legacy_api_of
from domain.compat.publications import Publication, affects_publications, fold_publications
from domain.registry.entities import Entity
from domain.registry.events import EntityEvent
from domain.registry.evolve import evolve
from domain.values import xid as xids


class MemoryPublications:
    """Implements `Publications` over a log in memory. Each look-up reads the whole log."""

    def __init__(self, log: Sequence[EntityEvent]) -> None:
        """log: all events, from position 1 on."""
        self._log = log

    def all(self) -> Iterator[Publication]:
        """Every publication that ever existed, ordered by tree key and creation position."""
        streams: dict[str, list[tuple[int, EntityEvent]]] = {}
        for position, event in enumerate(self._log, 1):
            streams.setdefault(event.stream, []).append((position, event))
        for stream in sorted(streams, key=xids.tree_key):
            if any(affects_publications(event) for _, event in streams[stream]):
                yield from fold_publications(streams[stream])

    def kept(self, xid: str) -> Sequence[Publication]:
        low, high = xids.tree_key(xid), xids.subtree(xid)[1]
        return [one for one in self.all() if one.kept and low <= xids.tree_key(one.xid) < high]

    def by_uri(self, family: LegacyApi, uri: str) -> Publication | None:
        return next((one for one in self._standing(family) if one.uri == uri), None)

    def by_id(self, family: LegacyApi, id: str) -> Publication | None:
        return next((one for one in self._standing(family) if one.id == id), None)

    def image(self, kept: Publication) -> Entity:
        assert kept.since is not None, "it was pruned"
        entity = evolve(self._log[kept.since - 1], kept.since)
        assert entity is not None, "it lived"
        return entity

    def _standing(self, family: LegacyApi) -> Iterator[Publication]:
        return (one for one in self.all() if one.gone is None and legacy_api_of(one.xid) == family)
