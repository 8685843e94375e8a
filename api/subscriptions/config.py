"""What this server supports for subscriptions, as OPTIONS shows it (SUB-108, SUB-202, SUB-506)."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any, Final

from annals.commands.store.database.registry_url import UNCONFIGURED_URL
from annals.domain.compat import legacy_apis as compat
from annals.domain.subscriptions import credentials, event_families, filters
from annals.domain.subscriptions.member_types import describe_members
from annals.domain.subscriptions.protocol_settings import SETTINGS_BY_PROTOCOL
from annals.domain.subscriptions.sink_uris import AMQP, HTTP, KAFKA, MQTT3, MQTT5, NATS, PROTOCOLS, SCHEMES
from annals.domain.subscriptions.subscription_document import CONFIG_MEMBERS, SubscriptionSupport
from annals.projections.subscriptions.sinks import load_sinks

#: Media types of a subscription in requests. The first is the media type of responses.
MEDIA_TYPES: Final = ("application/json", "application/cloudevents-subscription+json")
#: The path that an event family appends to the root of the registry in its events' `source`.
_BASE_PATHS: Final = {
    event_families.XREGISTRY: "",
    **{family.name: family.base for family in compat.LEGACY_APIS},
}
#: Protocols that are always installed, and the Python package that each other protocol needs.
_BUILTIN_PROTOCOLS: Final = frozenset((HTTP, KAFKA))
_LIBRARIES: Final = {MQTT3: "paho", MQTT5: "paho", AMQP: "proton", NATS: "nats"}


@cache
def available_protocols() -> tuple[str, ...]:
    """The protocols that can deliver events. The first call looks them up, because clients take time to load."""
    sinks = load_sinks()
    return tuple(
        protocol
        for protocol in PROTOCOLS
        if protocol in _BUILTIN_PROTOCOLS or (protocol in sinks and find_spec(_LIBRARIES[protocol]))
    )


def server_offer(public_url: str, plaintext: bool, max_filters: int) -> SubscriptionSupport:
    """What a server with these settings supports. max_filters: of one subscription."""
    root = (public_url or UNCONFIGURED_URL).rstrip("/")
    return SubscriptionSupport(
        available_protocols(), {family: root + path for family, path in _BASE_PATHS.items()}, plaintext, max_filters
    )


def options_document(support: SubscriptionSupport) -> dict[str, Any]:
    """The body of OPTIONS on subscriptions."""
    return {
        "protocols": {name: _protocol_document(name) for name in support.protocols},
        "dialects": list(filters.DIALECTS),
        "config": CONFIG_MEMBERS,
        "families": {name: {"source": source} for name, source in support.sources.items()},
        "sinkcredential": {name: describe_members(table) for name, table in credentials.CREDENTIAL_MEMBERS.items()},
        "filters": {"maximum": support.filters, "depth": filters.MAX_DEPTH, "nodes": filters.MAX_FILTERS},
        "mediatypes": list(MEDIA_TYPES),
    }


def subscription_config_types() -> dict[str, str]:
    """The keys of `config` with their types, in the form of an endpoint's `subscriptionconfig`."""
    return {name: str(member["type"]) for name, member in CONFIG_MEMBERS.items()}


def _protocol_document(name: str) -> dict[str, Any]:
    return {"schemes": list(SCHEMES[name]), "protocolsettings": describe_members(SETTINGS_BY_PROTOCOL[name])}
