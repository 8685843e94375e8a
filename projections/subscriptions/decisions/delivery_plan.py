"""The settings of a subscription in the form that the delivery workers use."""

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

from annals.domain.subscriptions.subscription import Subscription
from annals.projections.events.event_families import EventFamily
from annals.projections.subscriptions.contract import Credential, SinkTarget
from annals.projections.subscriptions.decisions.retry import RetryPolicy
from annals.projections.subscriptions.event_messages import EventMessage, SubscriptionFilter
from annals.projections.subscriptions.sequence import sequence_text

#: Names of secrets: members of the credential, headers, the signing key, and queries of URIs.
_CREDENTIAL_PREFIX: Final = "sinkcredential."
_HEADERS_PREFIX: Final = "protocolsettings.headers."
_SIGNING_KEY: Final = "protocolsettings.signingkey"
_QUERY_SUFFIX: Final = ".query"
_SINK: Final = "sink"
_DEAD_LETTER_URI: Final = "protocolsettings.deadletter.uri"
_ENDPOINT: Final = "sinkcredential.refreshtokenendpoint"
#: The prefix of a key in the form of Standard Webhooks.
_KEY_PREFIX: Final = "whsec_"


@dataclass(frozen=True, slots=True)
class DeliveryPlan:
    """The settings that one version of a subscription prescribes for its deliveries.

    position: log position of the event that set them.
    batch_size: largest number of events in one request.
    batch_wait: seconds to wait for that many.
    deadletter: `store`, `drop`, or the URI of a sink for dead letters.
    """

    subscription: Subscription
    event_filter: SubscriptionFilter
    position: int
    protocol: str
    ordering: str
    retry_policy: RetryPolicy
    batch_size: int
    batch_wait: float
    timeout: float
    deadletter: str
    rate: int | None
    sink_hash: str

    @classmethod
    def from_subscription(cls, subscription: Subscription, families: Sequence[EventFamily]) -> DeliveryPlan:
        """The plan of a subscription as recorded in the log."""
        attributes = subscription.attributes
        settings: Mapping[str, Any] = attributes.get("protocolsettings") or {}
        is_batched = settings.get("contentmode") == "batched"
        dead_letter_settings = settings.get("deadletter") or {}
        return cls(
            subscription=subscription,
            event_filter=SubscriptionFilter(subscription, families),
            position=subscription.position,
            protocol=attributes["protocol"],
            ordering=settings.get("ordering") or "subject",
            retry_policy=RetryPolicy.from_settings(settings),
            batch_size=settings.get("maxbatchsize") or 100 if is_batched else 1,
            batch_wait=settings.get("maxbatchwait", 200) / 1000 if is_batched else 0.0,
            timeout=settings.get("timeout") or 30,
            deadletter=dead_letter_settings["uri"]
            if dead_letter_settings.get("mode") == "sink"
            else dead_letter_settings.get("mode") or "store",
            rate=settings.get("requestrate"),
            # A hash, because a query may hold a secret; a changed secret has another reference.
            sink_hash=_hash_parts(
                attributes["protocol"], attributes["sink"], subscription.secrets.get(_SINK + _QUERY_SUFFIX, "")
            ),
        )

    def ordering_key(self, event: EventMessage) -> str:
        """The ordering key of a message: messages of one key stay in order (SUB-811)."""
        match self.ordering:
            case "none":
                return sequence_text(event.sequence)
            case "source":
                return event.message.source
        return f"{event.message.source} {event.message.subject}"

    @property
    def needs_consent(self) -> bool:
        """Whether the protocol has a consent handshake."""
        return self.protocol == "HTTP"

    def target(self, secrets: Mapping[str, str], origin: str) -> SinkTarget:
        """The target of deliveries, with the secrets that the sink needs."""
        attributes = self.subscription.attributes
        settings: dict[str, Any] = deepcopy(dict(attributes.get("protocolsettings") or {}))
        headers = {
            name.removeprefix(_HEADERS_PREFIX): secrets[name] for name in secrets if name.startswith(_HEADERS_PREFIX)
        }
        if headers:
            settings["headers"] = {**(settings.get("headers") or {}), **headers}
        return SinkTarget(
            subscription=self.subscription.id,
            uri=_with_query(attributes["sink"], _SINK, secrets),
            settings=settings,
            contentmode=settings.get("contentmode") or "structured",
            credential=_credential(attributes.get("sinkcredential"), secrets),
            timeout=self.timeout,
            origin=origin,
            signing_key=_signing_key(secrets[_SIGNING_KEY]) if _SIGNING_KEY in secrets else None,
        )

    def dead_letter_target(self, secrets: Mapping[str, str], origin: str) -> SinkTarget:
        """The target of dead letters, if that is a sink (SUB-832)."""
        uri = _with_query(self.deadletter, _DEAD_LETTER_URI, secrets)
        return SinkTarget(self.subscription.id, uri, {"method": "POST"}, timeout=self.timeout, origin=origin)

    def token_endpoint(self, secrets: Mapping[str, str]) -> str:
        """The URL at which tokens are renewed, with its query."""
        return _with_query(self.renewal_uri, _ENDPOINT, secrets)

    @property
    def renewal_uri(self) -> str:
        """The URL at which tokens are renewed, without its query; empty if there is none."""
        credential = self.subscription.attributes.get("sinkcredential") or {}
        return str(credential.get("refreshtokenendpoint") or "") if _has_type(credential, "REFRESHTOKEN") else ""

    @property
    def token_expiry(self) -> float | None:
        """When the token of the settings expires, in seconds since 1970; None for a credential that does not expire."""
        credential = self.subscription.attributes.get("sinkcredential") or {}
        expiry = credential.get("accesstokenexpiresutc")
        return datetime.fromisoformat(expiry).timestamp() if expiry else None

    def guarantee(self, stored: bool) -> str:
        """The delivery guarantee that the sink's acknowledgement gives (SUB-709).

        stored: whether the peer that acknowledged the last event stores events.
        """
        settings: Mapping[str, Any] = self.subscription.attributes.get("protocolsettings") or {}
        is_at_most_once = (
            (self.protocol in ("MQTT3", "MQTT5") and settings.get("qos") == 0)
            or (self.protocol == "AMQP" and settings.get("sendersettlementmode") == "settled")
            or (self.protocol == "KAFKA" and str(settings.get("acks")) == "0")
            or (self.protocol == "NATS" and not stored)
        )
        return "atmostonce" if is_at_most_once else "atleastonce"

    @property
    def is_webhook_conformant(self) -> bool | None:
        """Whether deliveries follow the webhook specification; None for protocols other than HTTP (SUB-715)."""
        if self.protocol != "HTTP":
            return None
        attributes = self.subscription.attributes
        method = (attributes.get("protocolsettings") or {}).get("method") or "POST"
        return method == "POST" and urlsplit(attributes["sink"]).scheme == "https"


def _credential(attributes: Mapping[str, Any] | None, secrets: Mapping[str, str]) -> Credential | None:
    if not attributes:
        return None

    def value(name: str) -> str:
        return str(secrets.get(_CREDENTIAL_PREFIX + name) or attributes.get(name) or "")

    return Credential(
        type=attributes["credentialtype"],
        identifier=value("identifier"),
        secret=value("secret"),
        token=value("accesstoken"),
        tokentype=value("accesstokentype") or "bearer",
    )


def _has_type(credential: Mapping[str, Any], credential_type: str) -> bool:
    return credential.get("credentialtype") == credential_type


def _with_query(uri: str, name: str, secrets: Mapping[str, str]) -> str:
    """A URI with its query, which is stored separately as a secret."""
    query = secrets.get(name + _QUERY_SUFFIX)
    return uri if query is None else f"{uri}?{query}"


def _signing_key(key: str) -> bytes:
    """The bytes of a key: decoded if it is in the form of Standard Webhooks, else its text."""
    try:
        return b64decode(key.removeprefix(_KEY_PREFIX), validate=True) if key.startswith(_KEY_PREFIX) else key.encode()
    except Error:
        return key.encode()


def _hash_parts(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:32]
