"""Builds the delivery service of a server from the registry and its settings."""

from __future__ import annotations

from functools import partial

from prometheus_client import CollectorRegistry

from annals.api.auth.callers import Authenticator
from annals.api.registry.open_registry import Registry
from annals.api.settings.settings import Settings
from annals.api.subscriptions.secrets import StoredSecrets
from annals.api.subscriptions.wiring import build_event_families, build_guard, build_owner_rights
from annals.projections.outgoing.resolver import Resolver
from annals.projections.subscriptions.ports import DeliveryPorts
from annals.projections.subscriptions.service import DeliveryService
from annals.projections.subscriptions.sinks import load_sinks
from annals.projections.subscriptions.transport.token_renewal import TokenRenewal
from annals.projections.subscriptions.transport.webhook_handshake import WebhookHandshake, callback_url


def build_delivery_service(
    settings: Settings,
    registry: Registry,
    authenticator: Authenticator,
    metrics: CollectorRegistry,
    resolver: Resolver | None = None,
) -> DeliveryService:
    """The delivery service for the subscriptions of a registry, not started yet.

    authenticator: knows the rights of owners. metrics: the Prometheus registry for its metrics. resolver: resolves the
    addresses of sinks; replaces the DestinationGuard.
    """
    address_guard = resolver or build_guard(settings)
    ports = DeliveryPorts(
        address_guard,
        secrets=StoredSecrets(registry.store),
        may_read=build_owner_rights(authenticator, has_provider=settings.oidc is not None),
        validator=WebhookHandshake(address_guard),
        policy=settings.sinks_validation,
        renew_tokens=TokenRenewal(address_guard),
        origin=settings.origin,
        build_callback=partial(callback_url, settings.public_url) if settings.public_url else None,
        sinks=load_sinks(),
    )
    return DeliveryService(settings.database, ports, build_event_families(settings), metrics=metrics)
