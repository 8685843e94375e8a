"""Deliveries as a server makes them: their ports filled with what the registry, its settings and its rooms have."""

from __future__ import annotations

from functools import partial

from prometheus_client import CollectorRegistry

from api.settings import Settings
from api.subscriptions.secrets import StoredSecrets
from api.subscriptions.wiring import families_of, guard_of, rights_of
from api.wiring import Registry
from projections.subscriptions.contract import Resolver
from projections.subscriptions.ports import Ports
from projections.subscriptions.service import Service
from projections.subscriptions.sinks import registered
from projections.subscriptions.tokens import Renewal
from projections.subscriptions.validation import Handshake, callback_url


def service_of(
    settings: Settings, registry: Registry, metrics: CollectorRegistry, resolver: Resolver | None = None
) -> Service:
    """What delivers for the subscriptions of a registry, not started yet.

    metrics: what its figures are collected from. resolver: looks up where sinks are, in the place of the guard.
    """
    found = resolver or guard_of(settings)
    ports = Ports(
        found,
        secrets=StoredSecrets(registry.store),
        reads=rights_of(settings, registry),
        validator=Handshake(found),
        policy=settings.sinks_validation,
        renew=Renewal(found),
        origin=settings.origin,
        callback=partial(callback_url, settings.public_url) if settings.public_url else None,
        sinks=registered(),
    )
    return Service(settings.database, ports, families_of(settings), metrics=metrics)
