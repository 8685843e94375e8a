"""The registry opened by the console itself, for verbs that write without a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from api.settings import Settings
from commands.handle import Road
from commands.log import Store
from domain import xid as xids
from domain.commands import CreateRegistry
from domain.model.builtin import default_source
from projections.entities.apply import Entities


@dataclass(frozen=True, slots=True)
class Registry:
    """A store and the road into it."""

    store: Store
    road: Road

    def model(self) -> dict[str, Any]:
        """The `modelsource` and `model` in force."""
        last = self.store.recorder.select_events(xids.MODEL, desc=True, limit=1)[0]
        attributes: dict[str, Any] = self.store.mapper.to_domain_event(last).attributes
        return attributes


@contextmanager
def opened(settings: Settings) -> Iterator[Registry]:
    """The registry of the settings, made where there is none yet."""
    store = Store(settings.database, public_url=settings.public_url or "")
    entities = Entities()
    store.create()
    with store.writing() as tx:
        entities.create(tx.connection)
    road = Road(store, [entities])
    try:
        if not store.tip().position:
            road.submit(CreateRegistry(settings.registryid, default_source()), caller="console").result()
        yield Registry(store, road)
    finally:
        road.close()
        store.close()
