"""One AMQP connection with one sending link.

Proton serves as a protocol engine only: bytes in, events and bytes out. Sockets, TLS and timers belong to asyncio, so a
sink has no thread, connects to the address it was given, and checks certificates like every other sink.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast
from uuid import uuid4

from proton import Collector, Condition, Connection, Delivery, Event, Link, ProtonException, Transport, symbol

from annals.projections.outgoing.client_websocket import ClientWebSocket
from annals.projections.subscriptions.contract import DELIVERED, Outcome
from annals.projections.subscriptions.sinks.amqp.outcomes import STATE_OUTCOMES, TOO_LARGE, condition_outcome
from annals.projections.subscriptions.transport.receive_limit import ReceiveLimit

#: Seconds of silence after which a peer counts as gone.
_IDLE_SECONDS: Final = 30.0
#: Seconds that sending the last bytes to a peer may take.
_CLOSE_SECONDS: Final = 2.0
_STATE_NAMES: Final = {
    Delivery.ACCEPTED: "accepted",
    Delivery.REJECTED: "rejected",
    Delivery.RELEASED: "released",
    Delivery.MODIFIED: "modified",
}
#: What Proton raises for bytes that are not AMQP, and Python for their contents.
_CONNECTION_ERRORS: Final = (ProtonException, ConnectionError, OverflowError, ValueError, RecursionError)


@dataclass(frozen=True, slots=True)
class AmqpConnectionSettings:
    """The settings of a connection and its link.

    host: as named in the URI.
    user: None for anonymous.
    secure: whether the channel is safe for a password.
    """

    host: str
    address: str
    linkname: str = ""
    presettled: bool = False
    linkproperties: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    password: str = field(default="", repr=False)
    secure: bool = False


class AmqpConnection(asyncio.Protocol):
    """An open connection. closed_outcome: why it can send no more; None while it can."""

    def __init__(self, settings: AmqpConnectionSettings, websocket: ClientWebSocket | None = None) -> None:
        self.closed_outcome: Outcome | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self._is_presettled = settings.presettled
        self._websocket = websocket
        self._receive_limit = ReceiveLimit()
        self._waiting: OrderedDict[asyncio.Future[Outcome], bytes] = OrderedDict()  # in the order of sending
        self._unsettled: dict[str, asyncio.Future[Outcome]] = {}
        self._unflushed_outcomes: list[asyncio.Future[Outcome]] = []
        self._last_tag = 0
        self._is_paused = True  # until there is a socket
        self._is_turn_scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._engine = _open_engine(settings)
        self._collector = Collector()
        self._connection = _open_connection(settings, self._collector)
        self._engine.bind(self._connection)
        self._link = _open_link(self._connection, settings)
        self._event_handlers: Final[dict[Any, Callable[[Any], None]]] = {
            Event.LINK_FLOW: self._on_flow,
            Event.DELIVERY: lambda event: self._on_delivery(event.delivery),
            Event.LINK_REMOTE_CLOSE: lambda event: self._on_remote_close(event.link.remote_condition, "detached"),
            Event.LINK_REMOTE_DETACH: lambda event: self._on_remote_close(event.link.remote_condition, "detached"),
            Event.SESSION_REMOTE_CLOSE: lambda event: self._on_remote_close(event.session.remote_condition, "ended"),
            Event.CONNECTION_REMOTE_CLOSE: lambda event: self._on_remote_close(
                event.connection.remote_condition, "closed"
            ),
            Event.TRANSPORT_ERROR: lambda event: self._on_remote_close(event.transport.condition, "protocol"),
        }

    # --- for the sink ------------------------------------------------------------------------------------------------

    def send(self, message: bytes) -> asyncio.Future[Outcome]:
        """The outcome of a message. Cancelling the future drops a message that is not sent yet."""
        outcome: asyncio.Future[Outcome] = self._loop.create_future()
        if self.closed_outcome:
            outcome.set_result(self.closed_outcome)
        else:
            self._waiting[outcome] = message
            # A peer may give no credit for hours, while each attempt is cancelled at its timeout.
            outcome.add_done_callback(lambda done: self._waiting.pop(done, None))
            self._receive_limit.expect_answer()
            self._turn_soon()
        return outcome

    def close(self) -> None:
        """Closes the connection; `closed` is done when the socket is gone. A second call does nothing."""
        if self.closed_outcome is None:
            self._connection.close()
            self._run_engine()
        self._fail_all(condition_outcome("closed"))

    # --- asyncio.Protocol --------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = cast("asyncio.Transport", transport)
        # Without acknowledgements, a message counts once it is handed to the socket (SUB-709): buffer nothing here.
        self._transport.set_write_buffer_limits(high=0)
        self._is_paused = False
        if self._websocket:
            self._transport.write(self._websocket.opening_request)
        self._run_engine()

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        try:
            self._receive_limit.count(data)
            if self._websocket:
                data = self._websocket.receive(data)
                if self._websocket.is_closed:
                    raise ConnectionError("closed")
            while data and (capacity := self._engine.capacity()) > 0:
                self._engine.push(data[:capacity])
                data = data[capacity:]
        except _CONNECTION_ERRORS as error:
            self._fail_all(condition_outcome("protocol", str(error)))
        self._run_engine()

    def pause_writing(self) -> None:
        """See asyncio."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """See asyncio."""
        self._is_paused = False
        self._turn_soon()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._transport = None
        self._fail_all(condition_outcome("disconnected", str(exc or "")))
        if self._timer:
            self._timer.cancel()
        if not self.closed.done():
            self.closed.set_result(None)

    # --- the engine --------------------------------------------------------------------------------------------------

    def _turn_soon(self) -> None:
        """Schedules a turn of the engine after other tasks, so that their messages leave in one write."""
        if not self._is_turn_scheduled:
            self._is_turn_scheduled = True
            self._loop.call_soon(self._run_engine)

    def _run_engine(self) -> None:
        """Handles the engine's events and writes its output."""
        self._is_turn_scheduled = False
        try:
            self._transmit()
            self._handle_events()
            self._write()
            self._handle_events()  # Proton finds some errors, such as a refused password, when bytes are read
            self._tick()
        except _CONNECTION_ERRORS as error:
            self._fail_all(condition_outcome("protocol", str(error)))

    def _handle_events(self) -> None:
        while (event := self._collector.peek()) is not None:
            if handler := self._event_handlers.get(event.type):
                handler(event)
            self._collector.pop()

    def _write(self) -> None:
        if self._transport is None or (self._websocket and not self._websocket.is_open):
            return
        if self._websocket and (pong_frames := self._websocket.encode_message()):
            self._transport.write(pong_frames)
        while not self._is_paused and (size := self._engine.pending()) > 0:
            chunk = self._engine.peek(size)
            if chunk is None:
                break
            self._transport.write(self._websocket.encode_message(chunk) if self._websocket else chunk)
            self._engine.pop(len(chunk))
        if self._unflushed_outcomes and not self._is_paused and not self._link.queued:
            _set_outcomes(self._unflushed_outcomes, DELIVERED)
            self._unflushed_outcomes = []

    def _transmit(self) -> None:
        """Passes waiting messages to the engine, as far as the peer gives credit."""
        while self._waiting and self._link.credit > 0 and not self.closed_outcome:
            outcome, message = self._waiting.popitem(last=False)
            if outcome.done():
                continue
            size_limit = self._link.remote_max_message_size
            if size_limit and len(message) > size_limit:
                outcome.set_result(
                    condition_outcome(TOO_LARGE, f"{len(message)} bytes, but the peer takes at most {size_limit}")
                )
                continue
            self._last_tag += 1
            delivery = self._link.delivery(str(self._last_tag))
            self._link.stream(message)
            self._link.advance()
            if self._is_presettled:
                delivery.settle()
                self._unflushed_outcomes.append(outcome)
            else:
                self._unsettled[str(self._last_tag)] = outcome

    def _tick(self) -> None:
        """Lets the engine check and send heartbeats, and schedules the next check.

        Called once in each turn, because the engine counts from the first call after a write.
        """
        deadline = self._engine.tick(self._loop.time())
        if deadline and not self.closed_outcome and (self._timer is None or deadline < self._timer.when()):
            self._set_timer(deadline, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self._tick()
        self._run_engine()

    def _set_timer(self, when: float, callback: Callable[[], None]) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, callback)

    def _on_flow(self, event: Any) -> None:
        self._transmit()
        if self._link.drain_mode:
            self._link.drained()

    def _on_delivery(self, delivery: Any) -> None:
        state = _STATE_NAMES.get(delivery.remote_state)
        if state is None and not delivery.settled:
            return
        outcome = self._unsettled.pop(delivery.tag, None)
        if outcome is not None and not outcome.done():
            outcome.set_result(_delivery_outcome(state, delivery))
        delivery.settle()

    def _on_remote_close(self, condition: Condition | None, default_code: str) -> None:
        """Ends the connection after the peer or the engine ended it. default_code: the code if no reason is given."""
        self._fail_all(
            condition_outcome(condition.name, condition.description or "")
            if condition
            else condition_outcome(default_code)
        )

    def _fail_all(self, outcome: Outcome) -> None:
        if self.closed_outcome is None:
            self.closed_outcome = outcome
            _set_outcomes(self._waiting, outcome)
            _set_outcomes(self._unsettled.values(), outcome)
            _set_outcomes(self._unflushed_outcomes, outcome)
            self._waiting.clear()
            self._unsettled.clear()
            self._unflushed_outcomes = []
        if self._transport and not self._transport.is_closing():
            self._transport.close()
            # Do not wait for a peer that does not read, or does not close its side of TLS.
            self._set_timer(self._loop.time() + _CLOSE_SECONDS, self._transport.abort)


def _delivery_outcome(state: str | None, delivery: Any) -> Outcome:
    """The outcome of a delivery that has a terminal state, or was settled without one."""
    if state is None:
        return condition_outcome("settled", "without an outcome")
    condition = delivery.remote.condition if state == "rejected" else None
    return (
        STATE_OUTCOMES[state](condition.name, condition.description or "")
        if condition
        else STATE_OUTCOMES[state]("", "")
    )


def _set_outcomes(futures: Any, outcome: Outcome) -> None:
    for future in futures:
        if not future.done():
            future.set_result(outcome)


def _open_engine(settings: AmqpConnectionSettings) -> Transport:
    transport = Transport()
    transport.idle_timeout = _IDLE_SECONDS
    sasl = transport.sasl()
    sasl.allowed_mechs("ANONYMOUS" if settings.user is None else "PLAIN")
    sasl.allow_insecure_mechs = settings.secure
    return transport


def _open_connection(settings: AmqpConnectionSettings, collector: Collector) -> Connection:
    connection = Connection()
    connection.collect(collector)
    connection.container = f"annals-{uuid4()}"
    connection.hostname = settings.host
    if settings.user is not None:
        connection.user, connection.password = settings.user, settings.password
    connection.open()
    return connection


def _open_link(connection: Connection, settings: AmqpConnectionSettings) -> Any:
    session = connection.session()
    session.open()
    link = session.sender(settings.linkname or str(uuid4()))
    link.target.address = settings.address
    link.snd_settle_mode = Link.SND_SETTLED if settings.presettled else Link.SND_UNSETTLED
    if settings.linkproperties:
        link.properties = {symbol(name): value for name, value in settings.linkproperties.items()}
    link.open()
    return link
