"""The parts of the Subscriptions API put together, for the server and for the console."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

from api.callers import fixed_tokens
from api.settings import Settings
from api.subscriptions.offer import offer
from api.subscriptions.parts import Parts
from api.subscriptions.ports import Deliveries, Undelivered
from api.subscriptions.rights import Rights
from api.wiring import Registry
from domain.compat.family import FAMILIES
from projections.compat_events import CompatEvents
from projections.families import Family, XRegistry
from projections.subscriptions.contract import Resolver
from projections.subscriptions.deliveries import Deliveries as Tables
from projections.subscriptions.guard import Guard
from projections.subscriptions.ports import Ports
from projections.subscriptions.validation import Handshake
from projections.xregistry_events import XRegistryEvents


def parts_of(
    settings: Settings, registry: Registry, *, resolver: Resolver | None = None, deliveries: Deliveries | None = None
) -> Parts:
    """What the surfaces share. resolver: in the place of the guard. deliveries: what is known of them."""
    return Parts(
        registry,
        lambda: offer(registry.store.public_url, plaintext_of(settings), settings.subscriptions_filters),
        resolver or guard_of(settings),
        deliveries or Undelivered(),
        settings.subscriptions_owned,
        settings.subscriptions_body,
    )


def families_of(settings: Settings) -> tuple[Family, ...]:
    """The families of events that there are, in the order in which an event of the log is told in them (SUB-113)."""
    return (XRegistry(XRegistryEvents(settings.event_changes)), *map(CompatEvents, FAMILIES))


@contextmanager
def tables_of(settings: Settings) -> Iterator[Deliveries]:
    """What the store has of deliveries, for a process that delivers nothing itself."""
    guard = guard_of(settings)
    ports = Ports(guard, validator=Handshake(guard), policy=settings.sinks_validation)
    with closing(Tables(settings.database, ports, families_of(settings))) as found:
        yield found


def rights_of(settings: Settings, registry: Registry) -> Rights:
    """What owners of subscriptions may read."""
    listed = fixed_tokens(settings.tokens).named if settings.tokens else None
    return Rights(listed, lambda: registry.readers.quick().subscriptions, settings.jwt_keys is not None)


def guard_of(settings: Settings) -> Guard:
    """Who says whom this server may be sent to."""
    return Guard(settings.sinks_allow or "", plaintext_of(settings), settings.sinks_ca or "")


def guard_to(url: str, settings: Settings) -> Guard:
    """The same for a URL that the operator's settings name, whose host is permitted by that."""
    host = urlsplit(url).netloc.rpartition("@")[2]
    return Guard(",".join(filter(None, (settings.sinks_allow, host))), plaintext_of(settings), settings.sinks_ca or "")


def plaintext_of(settings: Settings) -> bool:
    """Whether events may go over channels without TLS."""
    return bool(settings.sinks_plaintext)
