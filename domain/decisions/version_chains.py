"""The Versions of Resources that `maxversions` is about to prune, known without reading them."""

from __future__ import annotations

from collections.abc import Mapping

from annals.domain.registry.events import EntityDeleted, EntityEvent
from annals.domain.values import xid as xids

#: The ids of the Versions by the stream of their Resource, see `World.version_chain`.
VersionChains = Mapping[str, tuple[str, ...]]


def still_known(version_chains: VersionChains, event: EntityEvent) -> VersionChains:
    """Those that an event leaves as they were: a Version that is added, changed or removed may break a chain."""
    if not version_chains:
        return version_chains
    resource = xids.resource_of(event.stream)
    if resource not in version_chains or (event.stream == resource and not isinstance(event, EntityDeleted)):
        return version_chains
    return {key: ids for key, ids in version_chains.items() if key != resource}
