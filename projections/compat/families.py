"""All event families: that of the registry itself, and those of the legacy APIs."""

from __future__ import annotations

from annals.domain.compat.legacy_apis import LEGACY_APIS
from annals.projections.compat.events import CompatEvents
from annals.projections.events.event_families import EventFamily, XRegistryFamily
from annals.projections.events.xregistry_events import XRegistryEvents


def all_event_families(lists_changes: bool = True) -> tuple[EventFamily, ...]:
    """Every family, in the order in which one log event is published in them (SUB-113).

    lists_changes: see XRegistryEvents.
    """
    return (XRegistryFamily(XRegistryEvents(lists_changes)), *map(CompatEvents, LEGACY_APIS))
