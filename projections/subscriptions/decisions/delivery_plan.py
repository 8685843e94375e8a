"""What a subscription's settings come to for those who deliver."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

from domain.subscriptions.subscription import Subscription
from projections.events.event_families import EventFamily
from projections.subscriptions.contract import Credential, SinkTarget
from projections.subscriptions.decisions.retry import RetryPolicy
from projections.subscriptions.event_messages import EventMessage, SubscriptionFilter
from projections.subscriptions.sequence import sequence_text

#: Names of secrets: members of the credential, headers, what signs deliveries, and queries of URIs.
_CREDENTIAL: Final = "sinkcredential."
_HEADERS: Final = "protocolsettings.headers."
_KEY: Final = "protocolsettings.signingkey"
_QUERY: Final = ".query"
_SINK: Final = "sink"
_LETTERS: Final = "protocolsettings.deadletter.uri"
_ENDPOINT: Final = "sinkcredential.refreshtokenendpoint"
#: Before a key as Standard Webhooks writes it.
_KEY_PREFIX: Final = "whsec_"


@dataclass(frozen=True, slots=True)
class DeliveryPlan:
    """position: of the event that settled it. most: events of one request; gather: seconds to wait for that many.

    deadletter: `store`, `drop`, or the URI of a sink for dead letters.
    """

    subscription: Subscription
    wants: SubscriptionFilter
    position: int
    protocol: str
    ordering: str
    retries: RetryPolicy
    most: int
    gather: float
    seconds: float
    deadletter: str
    rate: int | None
    sink: str

    @classmethod
    def of(cls, subscription: Subscription, families: Sequence[EventFamily]) -> DeliveryPlan:
        """The plan of a subscription as the log has it."""
        attributes = subscription.attributes
        settings: Mapping[str, Any] = attributes.get("protocolsettings") or {}
        batched = settings.get("contentmode") == "batched"
        letters = settings.get("deadletter") or {}
        return cls(
            subscription=subscription,
            wants=SubscriptionFilter(subscription, families),
            position=subscription.position,
            protocol=attributes["protocol"],
            ordering=settings.get("ordering") or "subject",
            retries=RetryPolicy.of(settings),
            most=settings.get("maxbatchsize") or 100 if batched else 1,
            gather=settings.get("maxbatchwait", 200) / 1000 if batched else 0.0,
            seconds=settings.get("timeout") or 30,
            deadletter=letters["uri"] if letters.get("mode") == "sink" else letters.get("mode") or "store",
            rate=settings.get("requestrate"),
            # A hash, as a query may hold a secret, which another reference stands for once it has changed.
            sink=_hash(attributes["protocol"], attributes["sink"], subscription.secrets.get(_SINK + _QUERY, "")),
        )

    def key(self, told: EventMessage) -> str:
        """What a message is kept in order by (SUB-811)."""
        match self.ordering:
            case "none":
                return sequence_text(told.sequence)
            case "source":
                return told.message.source
        return f"{told.message.source} {told.message.subject}"

    @property
    def validates(self) -> bool:
        """Whether its sink is one that consents."""
        return self.protocol == "HTTP"

    def target(self, secrets: Mapping[str, str], origin: str) -> SinkTarget:
        """Where events go, with what the sink is to be shown."""
        attributes = self.subscription.attributes
        settings: dict[str, Any] = deepcopy(dict(attributes.get("protocolsettings") or {}))
        headers = {name.removeprefix(_HEADERS): secrets[name] for name in secrets if name.startswith(_HEADERS)}
        if headers:
            settings["headers"] = {**(settings.get("headers") or {}), **headers}
        return SinkTarget(
            subscription=self.subscription.id,
            uri=_with_query(attributes["sink"], _SINK, secrets),
            settings=settings,
            contentmode=settings.get("contentmode") or "structured",
            credential=_credential(attributes.get("sinkcredential"), secrets),
            seconds=self.seconds,
            origin=origin,
            key=_signing_key(secrets[_KEY]) if _KEY in secrets else None,
        )

    def for_letters(self, secrets: Mapping[str, str], origin: str) -> SinkTarget:
        """Where dead letters go, where that is a sink (SUB-832)."""
        uri = _with_query(self.deadletter, _LETTERS, secrets)
        return SinkTarget(self.subscription.id, uri, {"method": "POST"}, seconds=self.seconds, origin=origin)

    def endpoint(self, secrets: Mapping[str, str]) -> str:
        """Where tokens are renewed, with its query."""
        return _with_query(self.renewal, _ENDPOINT, secrets)

    @property
    def renewal(self) -> str:
        """Where a token is renewed, less its query; nothing where none is."""
        credential = self.subscription.attributes.get("sinkcredential") or {}
        return str(credential.get("refreshtokenendpoint") or "") if _has_type(credential, "REFRESHTOKEN") else ""

    @property
    def expires(self) -> float | None:
        """When the token of the settings ends, in seconds since 1970; None for credentials without an end."""
        credential = self.subscription.attributes.get("sinkcredential") or {}
        given = credential.get("accesstokenexpiresutc")
        return datetime.fromisoformat(given).timestamp() if given else None

    def guarantee(self, stored: bool) -> str:
        """What the sink's acknowledgement is worth (SUB-709). stored: whether who acknowledged last keeps events."""
        settings: Mapping[str, Any] = self.subscription.attributes.get("protocolsettings") or {}
        once = (
            (self.protocol in ("MQTT3", "MQTT5") and settings.get("qos") == 0)
            or (self.protocol == "AMQP" and settings.get("sendersettlementmode") == "settled")
            or (self.protocol == "KAFKA" and str(settings.get("acks")) == "0")
            or (self.protocol == "NATS" and not stored)
        )
        return "atmostonce" if once else "atleastonce"

    @property
    def conformant(self) -> bool | None:
        """Whether deliveries are as the webhook specification wants them; None for other protocols (SUB-715)."""
        if self.protocol != "HTTP":
            return None
        attributes = self.subscription.attributes
        method = (attributes.get("protocolsettings") or {}).get("method") or "POST"
        return method == "POST" and urlsplit(attributes["sink"]).scheme == "https"


def _credential(given: Mapping[str, Any] | None, secrets: Mapping[str, str]) -> Credential | None:
    if not given:
        return None

    def value(name: str) -> str:
        return str(secrets.get(_CREDENTIAL + name) or given.get(name) or "")

    return Credential(
        type=given["credentialtype"],
        identifier=value("identifier"),
        secret=value("secret"),
        token=value("accesstoken"),
        tokentype=value("accesstokentype") or "bearer",
    )


def _has_type(credential: Mapping[str, Any], type: str) -> bool:
    return credential.get("credentialtype") == type


def _with_query(uri: str, name: str, secrets: Mapping[str, str]) -> str:
    """A URI with the query that was kept apart from it."""
    query = secrets.get(name + _QUERY)
    return uri if query is None else f"{uri}?{query}"


def _signing_key(key: str) -> bytes:
    """A key as Standard Webhooks writes it, or any text."""
    try:
        return b64decode(key.removeprefix(_KEY_PREFIX), validate=True) if key.startswith(_KEY_PREFIX) else key.encode()
    except Error:
        return key.encode()


def _hash(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:32]
