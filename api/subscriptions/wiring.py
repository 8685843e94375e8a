"""The parts of the Subscriptions API put together, for the server and for the console."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from api.settings import Settings
from api.subscriptions.offer import offer
from api.subscriptions.parts import Parts
from api.subscriptions.ports import Deliveries, Undelivered
from api.wiring import Registry
from projections.subscriptions.contract import Resolver
from projections.subscriptions.deliveries import Deliveries as Tables
from projections.subscriptions.guard import Guard
from projections.subscriptions.match import Family, XRegistry
from projections.subscriptions.ports import Ports
from projections.xregistry_events import XRegistryEvents


def parts_of(
    settings: Settings, registry: Registry, *, resolver: Resolver | None = None, deliveries: Deliveries | None = None
) -> Parts:
    """What the surfaces share. resolver: in the place of the guard. deliveries: what is known of them."""
    return Parts(
        registry,
        lambda: offer(settings.public_url, plaintext_of(settings), settings.subscriptions_filters),
        resolver or guard_of(settings),
        deliveries or Undelivered(),
        settings.subscriptions_owned,
        settings.subscriptions_body,
    )


def families_of(settings: Settings) -> tuple[Family, ...]:
    """The families of events that there are."""
    return (XRegistry(XRegistryEvents(settings.event_changes)),)


@contextmanager
def tables_of(settings: Settings) -> Iterator[Deliveries]:
    """What the store has of deliveries, for a process that delivers nothing itself."""
    with closing(Tables(settings.database, Ports(guard_of(settings)), families_of(settings))) as found:
        yield found


def guard_of(settings: Settings) -> Guard:
    """Who says whom this server may be sent to."""
    return Guard(getattr(settings, "sinks_allow", None) or "", plaintext_of(settings))


def plaintext_of(settings: Settings) -> bool:
    """Whether events may go over channels without TLS."""
    return bool(getattr(settings, "sinks_plaintext", False))
