"""The sinks for MQTT 3.1.1 and 5, with one connection each. They connect on first use, and again after a failure.

Concurrent `send` calls share the connection, as far as the broker allows. The client runs in the event loop, without a
thread. paho-mqtt is optional; this module can be imported without it.
Spec: CloudEvents MQTT protocol binding 1.0.2; SUB-305, 702, 708, 709.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from cloudevents.core.v1.event import CloudEvent

from annals.domain.subscriptions.sink_uris import MQTT3, MQTT5
from annals.projections.outgoing.resolver import Resolver
from annals.projections.subscriptions.contract import DELIVERED, Credential, DeliveryResult, Outcome, SinkTarget, sink
from annals.projections.subscriptions.sinks import cloudevents
from annals.projections.subscriptions.sinks.mqtt.outcomes import disconnected_outcome
from annals.projections.subscriptions.transport.connect import (
    INSECURE_CHANNEL,
    SinkRefused,
    dial,
    failure_outcome,
    is_private,
    start_tls,
    target_address,
)

if TYPE_CHECKING:
    from annals.projections.subscriptions.sinks.mqtt.connection import MqttConnection

_STRUCTURED_TYPE: Final = f"{cloudevents.STRUCTURED}; charset=utf-8"
#: The WebSocket path if the URI has none.
_WEBSOCKET_PATH: Final = "/mqtt"
#: The outcome of an event for a closed sink.
_CLOSED: Final = disconnected_outcome("closed")


@sink(MQTT3)
def open_mqtt3(target: SinkTarget, resolver: Resolver) -> MqttSink:
    """A sink of MQTT 3.1.1. Raises: ImportError without paho-mqtt."""
    return _open_sink(target, resolver, MQTT3)


@sink(MQTT5)
def open_mqtt5(target: SinkTarget, resolver: Resolver) -> MqttSink:
    """A sink of MQTT 5. Raises: ImportError without paho-mqtt."""
    return _open_sink(target, resolver, MQTT5)


def _open_sink(target: SinkTarget, resolver: Resolver, protocol: str) -> MqttSink:
    import_module("annals.projections.subscriptions.sinks.mqtt.connection")  # fails here, not at the first event

    return MqttSink(target, resolver, protocol)


class MqttSink:
    """See contract.Sink."""

    #: Largest useful number of concurrent `send` calls.
    concurrency: Final = 32

    def __init__(self, target: SinkTarget, resolver: Resolver, protocol: str) -> None:
        self._target, self._resolver, self._protocol = target, resolver, protocol
        self._address = target_address(target, protocol)
        self._structured_properties = self._properties(_STRUCTURED_TYPE, {})
        self._connection: MqttConnection | None = None
        self._connect_lock = asyncio.Lock()
        self._is_closed = False

    async def send(self, events: Sequence[CloudEvent]) -> Outcome:
        """See contract.Sink. For several events, the first outcome that is not a success."""
        for event in events:
            outcome = await self._send(event)
            if outcome.result is not DeliveryResult.DELIVERED:
                return outcome
        return DELIVERED

    async def close(self) -> None:
        """See contract.Sink."""
        self._is_closed = True
        self._drop(self._connection)

    async def _send(self, event: CloudEvent) -> Outcome:
        connection: MqttConnection | None = None
        try:
            payload, properties = self._message(event)
        except ValueError as error:
            return Outcome(
                DeliveryResult.REJECTED, "unwritable", f"the event cannot be written: {type(error).__name__}"
            )
        try:
            async with asyncio.timeout(self._target.timeout):
                connection = await self._open_connection()
                return await connection.publish(payload, properties)
        except TimeoutError as timeout_error:
            # A broker that did not acknowledge in time gets no more messages on this connection.
            self._drop(connection)
            return failure_outcome(timeout_error)
        except (OSError, SinkRefused) as error:
            return failure_outcome(error)
        except Exception as error:  # such as an unreachable network: no exception may escape
            return failure_outcome(error)

    async def _open_connection(self) -> MqttConnection:
        """The open connection. Raises: SinkRefused, ForbiddenAddress, OSError."""
        if self._connection and not self._connection.is_closed:
            return self._connection
        async with self._connect_lock:
            if self._is_closed:
                raise SinkRefused(_CLOSED)
            if self._connection is None or self._connection.is_closed:
                connection = await self._connect()
                if self._is_closed:  # closed while connecting
                    connection.close()
                    raise SinkRefused(_CLOSED)
                self._connection = connection
            return self._connection

    async def _connect(self) -> MqttConnection:
        from annals.projections.subscriptions.sinks.mqtt.connection import (
            MqttConnectionSettings,
            connect_mqtt,
            open_websocket,
        )

        ((host, port),) = self._address.servers
        connection: Any = await dial(host, port, self._resolver)
        if self._target.credential and not is_private(connection, self._address.tls):
            connection.close()
            raise SinkRefused(INSECURE_CHANNEL)
        if self._address.tls:
            connection = await start_tls(connection, host, self._resolver)
        if self._address.scheme.startswith("ws"):
            connection = await open_websocket(connection, self._address, _WEBSOCKET_PATH)
        settings = self._target.settings
        user, password = _login(self._target.credential)
        topic, qos, retain = settings["topicname"], settings.get("qos", 1), settings.get("retain", False)
        connection_settings = MqttConnectionSettings(self._protocol, topic, qos, retain, user, password)
        return await connect_mqtt(connection, connection_settings)

    def _message(self, event: CloudEvent) -> tuple[bytes, dict[str, Any]]:
        """The payload, and the MQTT 5 properties by name. Raises: ValueError."""
        if self._protocol == MQTT3 or not cloudevents.is_sent_binary(event, self._target.contentmode):
            return cloudevents.structured_json(event), self._structured_properties
        attributes = cloudevents.text_attributes(event)
        return cloudevents.data_bytes(event), self._properties(attributes.pop("datacontenttype", None), attributes)

    def _properties(self, content_type: str | None, attributes: Mapping[str, str]) -> dict[str, Any]:
        """The properties of a message with a content type, and attributes as user properties."""
        properties: dict[str, Any] = {} if content_type is None else {"ContentType": content_type}
        user_properties = self._target.settings.get("userproperties") or {}
        pairs = [
            *attributes.items(),
            *((name, value) for name, value in user_properties.items() if name not in attributes),
        ]  # SUB-708
        if pairs:
            properties["UserProperty"] = pairs
        if expiry := self._target.settings.get("expiry"):
            properties["MessageExpiryInterval"] = expiry
        return properties

    def _drop(self, connection: MqttConnection | None) -> None:
        if connection is not None:
            connection.close()
        if connection is self._connection:
            self._connection = None


def _login(credential: Credential | None) -> tuple[str | None, str | None]:
    """User and password. A token is sent as the password; the required user name may be empty (SUB-305)."""
    if credential is None:
        return None, None
    if credential.type == "PLAIN":
        return credential.identifier, credential.secret
    return credential.identifier, credential.token
