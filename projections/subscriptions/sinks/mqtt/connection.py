"""One MQTT connection in the event loop, which watches the client's socket and calls its timers."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, cast

from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags, _WebsocketWrapper
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from annals.domain.subscriptions.sink_uris import MQTT5, SinkAddress
from annals.projections.outgoing.client_websocket import ClientWebSocket
from annals.projections.subscriptions.contract import DELIVERED, DeliveryResult, Outcome
from annals.projections.subscriptions.sinks.mqtt.outcomes import (
    FIRST_ERROR_CODE,
    PACKET_TOO_LARGE,
    QOS_NOT_SUPPORTED,
    RETAIN_NOT_SUPPORTED,
    disconnected_outcome,
    reason_outcome,
)
from annals.projections.subscriptions.transport.connect import SinkRefused, retry_when_ready
from annals.projections.subscriptions.transport.receive_limit import MAX_BYTES, ReceiveLimit

#: Keep-alive interval of the connection, and interval of the client's timer, in seconds.
_KEEP_ALIVE_SECONDS: Final = 30
_CHECK_SECONDS: Final = 10.0
#: Unacknowledged messages at once. MQTT 5 brokers may ask for fewer.
_MAX_IN_FLIGHT: Final = 100


@dataclass(frozen=True, slots=True)
class MqttConnectionSettings:
    """The topic, options and login of a connection."""

    protocol: str
    topic: str
    qos: int
    retain: bool
    user: str | None
    password: str | None = field(repr=False)


async def connect_mqtt(broker_socket: Any, settings: MqttConnectionSettings) -> MqttConnection:
    """A connection that the broker has accepted.

    broker_socket: a socket, or an object like one; closed on failure.
    Raises: SinkRefused.
    """
    mqtt_connection = MqttConnection(broker_socket, settings)
    try:
        await mqtt_connection.acceptance
    except BaseException:
        mqtt_connection.close()
        raise
    return mqtt_connection


async def open_websocket(broker_socket: socket.socket, sink_address: SinkAddress, path: str) -> Any:
    """Opens a WebSocket on a connection. path: used if the URI has none. Raises: OSError."""
    try:
        web = ClientWebSocket(sink_address, path, "mqtt")
        request = memoryview(web.opening_request)
        while request:
            request = request[await retry_when_ready(broker_socket, partial(broker_socket.send, request)) :]
        while not web.is_open:
            # Read byte by byte, because the bytes after the head belong to the client.
            web.receive(await retry_when_ready(broker_socket, partial(broker_socket.recv, 1)))
    except BaseException:
        broker_socket.close()
        raise
    return _OpenedWebSocket(
        broker_socket, sink_address.servers[0][0], sink_address.servers[0][1], sink_address.tls, path, None
    )


class _OpenedWebSocket(_WebsocketWrapper):
    """The client library's framing on a WebSocket that is already open."""

    def _do_handshake(self, extra_headers: Any) -> None:
        self.connected = True


_NO_PROPERTIES: Final = Properties(PacketTypes.PUBACK)
_SUCCESS: Final = ReasonCode(PacketTypes.PUBACK)


class MqttConnection:
    """An MQTT connection; see `connect_mqtt`. is_closed: whether it has ended."""

    def __init__(self, broker_socket: Any, settings: MqttConnectionSettings) -> None:
        self._loop = asyncio.get_running_loop()
        self._settings = settings
        self._waiting: dict[int, asyncio.Future[Outcome]] = {}
        self._max_packet_size = 0  # largest packet in bytes, if the broker sets a limit
        self._packed_properties: tuple[Mapping[str, Any], _PackedProperties] | None = None
        self._refusal: Outcome | None = None
        self.is_closed = False
        self.acceptance: asyncio.Future[None] = self._loop.create_future()
        self._client = _PahoClient(broker_socket, self, settings)
        self._timer = self._loop.call_later(_CHECK_SECONDS, self._check)
        self._client.start()

    async def publish(self, payload: bytes, properties: Mapping[str, Any]) -> Outcome:
        """The outcome of a message: with QoS 0 after writing it, else after the broker's acknowledgement.

        properties: MQTT 5 properties by name, which must not change afterwards. Passing the same mapping again is
        cheap.
        """
        if self._refusal:
            return self._refusal
        packed_properties = self._pack_properties(properties) if self._settings.protocol == MQTT5 else None
        if self._max_packet_size and self._packet_size(payload, packed_properties) > self._max_packet_size:
            return reason_outcome(PACKET_TOO_LARGE)
        settings = self._settings
        self._client.receive_limit.expect_answer()
        # The library calls only `pack` on the properties.
        info = self._client.publish(
            settings.topic, payload, settings.qos, settings.retain, cast("Properties | None", packed_properties)
        )
        if self.is_closed or info.rc != MQTTErrorCode.MQTT_ERR_SUCCESS:
            return disconnected_outcome("disconnected")
        future: asyncio.Future[Outcome] = self._loop.create_future()
        self._waiting[info.mid] = future
        try:
            return await future
        finally:
            self._waiting.pop(info.mid, None)

    def close(self) -> None:
        """Sends DISCONNECT, as far as that works without waiting, and closes the connection."""
        if not self.is_closed:
            self._client.leave()
            self.on_closed(disconnected_outcome("closed"))

    # --- callbacks of the client -------------------------------------------------------------------------------------

    def on_accepted(self, properties: Any) -> None:
        """Called when the broker has accepted. properties: the broker's limits."""
        self._max_packet_size = getattr(properties, "MaximumPacketSize", 0)
        if self._settings.retain and not getattr(properties, "RetainAvailable", 1):
            self._refusal = reason_outcome(RETAIN_NOT_SUPPORTED)
        if self._settings.qos > getattr(properties, "MaximumQoS", 2):
            self._refusal = reason_outcome(QOS_NOT_SUPPORTED)
        if not self.acceptance.done():
            self.acceptance.set_result(None)

    def on_answer(self, message_id: int, code: int) -> None:
        """Called when the broker has answered, or when no answer is expected."""
        future = self._waiting.get(message_id)
        if future and not future.done():
            future.set_result(reason_outcome(code) if code else DELIVERED)

    def disconnect_outcome(self, code: int) -> Outcome:
        """The outcome of a DISCONNECT from the broker, which does not name the message that caused it."""
        outcome = reason_outcome(code)
        is_certain = len(self._waiting) < 2 or outcome.result is not DeliveryResult.REJECTED
        return (
            outcome if is_certain and outcome is not DELIVERED else disconnected_outcome(outcome.code or "disconnected")
        )

    def on_closed(self, outcome: Outcome) -> None:
        """Called when the connection has ended; all messages without an answer get this outcome."""
        self.is_closed = True
        self._timer.cancel()
        if not self.acceptance.done():
            self.acceptance.set_exception(SinkRefused(outcome))
            self.acceptance.exception()  # or the loop complains when the connecting task was cancelled
        for future in self._waiting.values():
            if not future.done():
                future.set_result(outcome)

    # -----------------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        self._timer = self._loop.call_later(_CHECK_SECONDS, self._check)
        self._client.loop_misc()

    def _packet_size(self, payload: bytes, packed_properties: _PackedProperties | None) -> int:
        """The size of a PUBLISH packet in bytes."""
        remaining_length = 2 + len(self._settings.topic.encode()) + (2 if self._settings.qos else 0) + len(payload)
        remaining_length += len(packed_properties.pack()) if packed_properties else 0
        return 1 + max(1, -(-remaining_length.bit_length() // 7)) + remaining_length

    def _pack_properties(self, properties: Mapping[str, Any]) -> _PackedProperties:
        if self._packed_properties is None or self._packed_properties[0] is not properties:
            self._packed_properties = properties, _PackedProperties(properties)
        return self._packed_properties[1]


class _PackedProperties:
    """Properties in encoded form; the library would encode them for each message."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        encoded_properties = Properties(PacketTypes.PUBLISH)
        for name, value in properties.items():
            setattr(encoded_properties, name, value)
        self._bytes: bytes = encoded_properties.pack()

    def pack(self) -> bytes:
        """The encoded properties; the library calls nothing else."""
        return self._bytes


class _PahoClient(Client):
    """The library's client, on an existing connection and in this event loop.

    The library treats a message that is refused with PUBREC as accepted, and an unknown code as a broken connection. So
    this class reads the answers itself. That also avoids objects per answer that cost more than the message.
    """

    def __init__(self, broker_socket: Any, mqtt_connection: MqttConnection, settings: MqttConnectionSettings) -> None:
        is_mqtt5 = settings.protocol == MQTT5
        version = MQTTProtocolVersion.MQTTv5 if is_mqtt5 else MQTTProtocolVersion.MQTTv311
        # 22 letters and digits: the length that every broker accepts. A new id each time takes over no session.
        client_id = f"annals{secrets.token_hex(8)}"
        clean_session = None if is_mqtt5 else True
        super().__init__(
            CallbackAPIVersion.VERSION2, client_id, clean_session, protocol=version, reconnect_on_failure=False
        )
        self._broker_socket, self._mqtt_connection = broker_socket, mqtt_connection
        self._event_loop = asyncio.get_running_loop()
        self.receive_limit = ReceiveLimit()
        self.max_inflight_messages = _MAX_IN_FLIGHT
        self.suppress_exceptions = False
        if settings.user is not None:
            self.username_pw_set(settings.user, settings.password)
        self.on_connect = self._on_connected
        self.on_disconnect = self._on_disconnected
        self.on_publish = lambda client, userdata, mid, reason, properties: mqtt_connection.on_answer(mid, 0)
        self.on_socket_open = lambda client, userdata, made: self._watch(made)
        self.on_socket_close = lambda client, userdata, made: self._unwatch(made)
        self.on_socket_register_write = lambda client, userdata, made: self._watch(made, writing=True)
        self.on_socket_unregister_write = lambda client, userdata, made: self._unwatch(made, writing=True)

    def start(self) -> None:
        """Sends CONNECT. The host name passed here is not used, because the connection exists."""
        if self.protocol == MQTTProtocolVersion.MQTTv5:
            self.connect("connected", 1, _KEEP_ALIVE_SECONDS, clean_start=True)
        else:
            self.connect("connected", 1, _KEEP_ALIVE_SECONDS)

    def leave(self) -> None:
        """Sends DISCONNECT and closes the socket."""
        self.on_disconnect = None
        self.disconnect()
        self.loop_write()
        self._sock_close()

    def _create_socket(self) -> Any:
        return self._broker_socket

    def _watch(self, broker_socket: Any, writing: bool = False) -> None:
        if writing:
            self._event_loop.add_writer(broker_socket.fileno(), self.loop_write)
        else:
            self._event_loop.add_reader(broker_socket.fileno(), self._read)

    def _unwatch(self, broker_socket: Any, writing: bool = False) -> None:
        (self._event_loop.remove_writer if writing else self._event_loop.remove_reader)(broker_socket.fileno())

    def _sock_recv(self, bufsize: int) -> bytes:
        # A packet announces its size, and the library would allocate that much for each call.
        return self.receive_limit.count(super()._sock_recv(min(bufsize, MAX_BYTES)))

    def _read(self) -> None:
        self.loop_read()
        # The socket does not report bytes that TLS has already read from it.
        while (broker_socket := self.socket()) and (pending := getattr(broker_socket, "pending", None)) and pending():
            self.loop_read()

    def _on_connected(
        self, client: Client, data: Any, flags: ConnectFlags, reason: ReasonCode, properties: Any
    ) -> None:
        if reason.value >= FIRST_ERROR_CODE:
            self._mqtt_connection.on_closed(reason_outcome(reason.value))
            return
        self._max_inflight_messages = min(_MAX_IN_FLIGHT, getattr(properties, "ReceiveMaximum", _MAX_IN_FLIGHT))
        self._mqtt_connection.on_accepted(properties)

    def _on_disconnected(self, client: Client, data: Any, flags: DisconnectFlags, reason: Any, properties: Any) -> None:
        code = reason.value if flags.is_disconnect_packet_from_server and reason is not None else 0
        self._mqtt_connection.on_closed(
            self._mqtt_connection.disconnect_outcome(code) if code else disconnected_outcome("disconnected")
        )

    def _handle_pubrec(self) -> MQTTErrorCode:
        packet = self._in_packet["packet"]
        return self._ended(packet) if packet[2:] and packet[2] >= FIRST_ERROR_CODE else super()._handle_pubrec()

    def _handle_pubackcomp(self, cmd: Any) -> MQTTErrorCode:
        return self._ended(self._in_packet["packet"])

    def _ended(self, packet: bytearray) -> MQTTErrorCode:
        """The broker has finally accepted or refused a message."""
        if len(packet) < 2:
            return MQTTErrorCode.MQTT_ERR_PROTOCOL
        message_id = int.from_bytes(packet[:2], "big")
        self._mqtt_connection.on_answer(message_id, packet[2] if packet[2:] and packet[2] >= FIRST_ERROR_CODE else 0)
        if message_id not in self._out_messages:
            return MQTTErrorCode.MQTT_ERR_SUCCESS
        return self._do_on_publish(message_id, _SUCCESS, _NO_PROPERTIES)
