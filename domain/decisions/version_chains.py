"""The Versions of Resources that `maxversions` is about to prune, known without reading them."""

from __future__ import annotations

from collections.abc import Mapping

from annals.domain.registry.events import EntityDeleted, EntityEvent
from annals.domain.values import xid as xids

#: The ids of the Versions by the stream of their Resource, see `World.version_chain`.
VersionChains = Mapping[str, tuple[str, ...]]


def broken_chain(event: EntityEvent) -> str | None:
    """The stream of the Resource whose chain an event may break: by a Version that is added, changed or removed."""
    resource = xids.resource_of(event.stream)
    return None if event.stream == resource and not isinstance(event, EntityDeleted) else resource
