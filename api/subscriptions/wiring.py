"""Builds the parts of the Subscriptions API, for the server and for the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

from annals.api.auth.callers import Authenticator
from annals.api.registry.open_registry import Registry
from annals.api.settings.settings import Settings
from annals.api.subscriptions.config import server_offer
from annals.api.subscriptions.context import SubscriptionApiContext
from annals.api.subscriptions.owner_rights import OwnerRights
from annals.api.subscriptions.ports import Deliveries, NoDeliveries
from annals.projections.compat.families import all_event_families
from annals.projections.events.event_families import EventFamily
from annals.projections.outgoing.destination_guard import DestinationGuard
from annals.projections.outgoing.resolver import Resolver
from annals.projections.subscriptions.delivery_status import StoredDeliveries
from annals.projections.subscriptions.ports import DeliveryPorts
from annals.projections.subscriptions.transport.webhook_handshake import WebhookHandshake


def build_subscription_context(
    settings: Settings, registry: Registry, *, resolver: Resolver | None = None, deliveries: Deliveries | None = None
) -> SubscriptionApiContext:
    """The dependencies that the handlers share.

    resolver: replaces the DestinationGuard. deliveries: the state of deliveries.
    """
    return SubscriptionApiContext(
        registry,
        lambda: server_offer(registry.store.public_url, allows_plaintext(settings), settings.subscriptions_filters),
        resolver or build_guard(settings),
        deliveries or NoDeliveries(),
        settings.subscriptions_owned,
        settings.subscriptions_body,
    )


def build_event_families(settings: Settings) -> tuple[EventFamily, ...]:
    """All event families, in the order in which one log event is published in them (SUB-113)."""
    return all_event_families(settings.event_changes)


@contextmanager
def open_deliveries(settings: Settings) -> Iterator[Deliveries]:
    """The stored state of deliveries, for a process that delivers nothing itself."""
    address_guard = build_guard(settings)
    ports = DeliveryPorts(address_guard, validator=WebhookHandshake(address_guard), policy=settings.sinks_validation)
    with closing(StoredDeliveries(settings.database, ports, build_event_families(settings))) as deliveries:
        yield deliveries


def build_owner_rights(authenticator: Authenticator, *, has_provider: bool = False) -> OwnerRights:
    """The rights of subscription owners. has_provider: whether people sign in at a provider, which lists nobody."""
    return OwnerRights(authenticator, has_issued_tokens=has_provider or "jwt" in authenticator.names)


def build_guard(settings: Settings) -> DestinationGuard:
    """The guard that decides which destinations this server may connect to."""
    return DestinationGuard(settings.sinks_allow or "", allows_plaintext(settings), settings.sinks_ca or "")


def build_guard_for_url(url: str, settings: Settings) -> DestinationGuard:
    """The same guard for a URL of the operator's settings. Its host is allowed because the setting names it."""
    host = urlsplit(url).netloc.rpartition("@")[2]
    return DestinationGuard(
        ",".join(filter(None, (settings.sinks_allow, host))), allows_plaintext(settings), settings.sinks_ca or ""
    )


def allows_plaintext(settings: Settings) -> bool:
    """Whether deliveries may use connections without TLS."""
    return bool(settings.sinks_plaintext)
