"""One NATS connection, and the outcomes of messages on it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import os
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from nats import errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.client import JetStreamContext
from nats.js.errors import APIError, NoStreamResponseError

from annals.domain.subscriptions.sink_uris import SinkAddress
from annals.projections.outgoing import certificates
from annals.projections.outgoing.resolver import Resolver
from annals.projections.subscriptions.contract import DELIVERED, STORED, Credential, DeliveryResult, Outcome, SinkTarget
from annals.projections.subscriptions.sinks.nats.transport import NatsTransport, NatsWebSocketTransport
from annals.projections.subscriptions.transport.connect import (
    INSECURE_CHANNEL,
    SinkRefused,
    dial,
    failure_outcome,
    is_private,
)

#: Time limit in seconds for asking which stream has the subject, and pause until asking again.
_REQUEST_SECONDS: Final = 2.0
_STREAM_CHECK_SECONDS: Final = 60.0
#: No limit for events that wait for a stream's acknowledgement. At a limit, the library would wait for room and could
#: not be cancelled.
_NO_LIMIT: Final = 1 << 30
#: Seconds that closing may take.
_CLOSE_SECONDS: Final = 2.0
#: Phrases in server errors for refused users or missing rights, and for invalid messages.
_UNAUTHORIZED_ERRORS: Final = ("authorization", "authentication", "permissions violation")
_REJECTED_ERRORS: Final = ("maximum payload", "invalid publish subject", "invalid subject")
#: JetStream's code for a message that a stream never accepts. A full stream is retried, because it may be emptied.
_TOO_LARGE_FOR_STREAM: Final = 10054


async def connect_nats(target: SinkTarget, sink_address: SinkAddress, resolver: Resolver) -> NatsConnection:
    """A connection that the server has accepted. Raises: SinkRefused, ForbiddenAddress, OSError."""
    ((host, port),) = sink_address.servers
    server_socket = await dial(host, port, resolver)
    is_channel_private = is_private(server_socket, False) or not target.credential
    if not is_channel_private and sink_address.scheme == "ws":
        server_socket.close()
        raise SinkRefused(INSECURE_CHANNEL)
    transport = await (NatsWebSocketTransport if sink_address.scheme == "ws" else NatsTransport).open_over(
        server_socket, sink_address
    )
    nats_connection = NatsConnection(target, sink_address.tls or not is_channel_private)
    try:
        await nats_connection.open(transport, host, certificates.client_tls_context(resolver))
    except BaseException as error:
        await nats_connection.close()
        if isinstance(error, errors.SecureConnWantedError) and not sink_address.tls:
            raise SinkRefused(INSECURE_CHANNEL) from None
        if isinstance(error, errors.Error) and not isinstance(error, TimeoutError):
            raise SinkRefused(error_outcome(str(error))) from None
        raise
    return nats_connection


class NatsConnection:
    """A NATS connection; see `connect_nats`."""

    def __init__(self, target: SinkTarget, tls: bool) -> None:
        self._target = target
        self._subject: str = target.settings["subject"]
        self._client = _NatsPyClient(tls)
        self._context = _JetStream(self._client, timeout=_REQUEST_SECONDS, publish_async_max_pending=_NO_LIMIT)
        self._transport: NatsTransport | None = None
        self._is_ended = False
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[asyncio.Future[Outcome], float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._stream: str | None = None
        self._requested_at = float("-inf")
        self._request_lock = asyncio.Lock()
        self._stream_request: asyncio.Future[str] | None = None

    @property
    def is_closed(self) -> bool:
        """Whether it can send no more."""
        return self._is_ended or not self._client.is_connected

    async def open(self, transport: NatsTransport, host: str, tls_context: Any) -> None:
        """Performs the NATS handshake. Raises: errors.Error, OSError."""
        self._transport = self._client._transport = transport
        await self._client.connect(
            # For the library's bookkeeping only: the connection exists, and the library opens no other.
            "tls://connected:1" if transport.tls else f"{transport.scheme}://connected:1",
            name="annals",
            allow_reconnect=False,
            error_cb=self._on_error,
            closed_cb=self._on_closed,
            # Used if the server asks for TLS, whatever the URI says.
            tls=tls_context,
            tls_hostname=host,
            connect_timeout=self._target.timeout,  # type: ignore[arg-type]
            skip_subject_validation=True,
            **_login_options(self._target.credential),
        )
        if not self._client.is_connected:  # the library goes on if a server closes instead of answering
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))

    async def publish(self, payload: bytes, headers: Mapping[str, str], started_at: float) -> Outcome:
        """The outcome of a message. started_at: start of its attempt, by the loop's clock."""
        if _message_size(payload, headers) > self._client.max_payload:
            return error_outcome("maximum payload violation")
        assert self._transport
        self._transport.receive_limit.expect_answer()
        outcome_future: asyncio.Future[Outcome] = self._loop.create_future()
        self._waiting[outcome_future] = started_at
        if self._timer is None:
            self._check_deadline()
        try:
            await (self._publish_to_stream if await self._has_stream() else self._publish_and_ping)(
                payload, dict(headers), outcome_future
            )
            return await outcome_future
        except (errors.Error, OSError) as error:
            return error_outcome(str(error))
        finally:
            del self._waiting[outcome_future]

    async def close(self) -> None:
        """Closes the connection gracefully."""
        self._end(Outcome(DeliveryResult.RETRY, "closed"))
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._client.close()
        self.abort()

    def abort(self) -> None:
        """Closes the connection at once."""
        if self._transport:
            self._transport.abort()

    async def _publish_and_ping(
        self, payload: bytes, headers: dict[str, str], outcome_future: asyncio.Future[Outcome]
    ) -> None:
        """Publishes and sends a ping behind the message.

        By its answer, the server has accepted or refused the message.
        """
        await self._client.publish(self._subject, payload, headers=headers)
        self._client.request_outcome(outcome_future)

    async def _publish_to_stream(
        self, payload: bytes, headers: dict[str, str], outcome_future: asyncio.Future[Outcome]
    ) -> None:
        """Publishes with a reply subject, so that the stream that stores the message acknowledges it."""
        acknowledgement = await self._context.publish_async(self._subject, payload, headers=headers)

        def pass_on(acknowledgement: asyncio.Future[Any]) -> None:
            if not acknowledgement.cancelled() and not outcome_future.done():
                outcome_future.set_result(self._stream_outcome(acknowledgement.exception()))

        acknowledgement.add_done_callback(pass_on)
        outcome_future.add_done_callback(lambda _: acknowledgement.cancel())

    def _stream_outcome(self, error: BaseException | None) -> Outcome:
        match error:
            case None:
                return STORED
            case NoStreamResponseError():
                self._stream, self._requested_at = None, float("-inf")
                return Outcome(DeliveryResult.RETRY, "jetstream", "the stream does not answer")
            case APIError():
                result = DeliveryResult.REJECTED if error.err_code == _TOO_LARGE_FOR_STREAM else DeliveryResult.RETRY
                return Outcome(result, f"jetstream:{error.err_code}", error.description or "")
            case _:
                return error_outcome(str(error))

    async def _has_stream(self) -> bool:
        """Whether a stream stores the subject, as far as this user may know."""
        if self._stream is None and (self._request_lock.locked() or self._is_request_due):
            await self._find_stream()
        return self._stream is not None

    @property
    def _is_request_due(self) -> bool:
        return time.monotonic() - self._requested_at > _STREAM_CHECK_SECONDS

    async def _find_stream(self) -> None:
        """Asks which stream has the subject, or waits for a request that is already running."""
        async with self._request_lock:
            if self._stream is None and self._is_request_due:
                self._requested_at = time.monotonic()
                self._stream_request = asyncio.ensure_future(self._context.find_stream_name_by_subject(self._subject))
                try:
                    await asyncio.wait((self._stream_request,))
                    with contextlib.suppress(asyncio.CancelledError, errors.Error, APIError, OSError):
                        self._stream = self._stream_request.result()
                finally:
                    self._stream_request.cancel()

    async def _on_error(self, error: Exception) -> None:
        """Handles errors that the server sends unasked.

        All messages have one subject, so a refusal applies to all of them.
        """
        text = str(error)
        if "permissions violation" not in text.lower():
            return
        if f'"{self._subject}"' in text:
            self._fail_all(error_outcome(text))
        elif self._stream_request:  # a user who may not ask, or not read the answer, never may on this connection
            self._stream_request.cancel()
            self._requested_at = float("inf")

    async def _on_closed(self) -> None:
        self._end(error_outcome(str(self._client.last_error or "the connection was closed")))

    def _check_deadline(self) -> None:
        """Ends the connection of a server that takes too long to answer.

        One timer serves all messages, because a timer per message costs a third of what sending costs.
        """
        deadline = min(self._waiting.values(), default=math.inf) + self._target.timeout
        if self._is_ended or deadline == math.inf:
            self._timer = None
        elif deadline > self._loop.time():
            self._timer = self._loop.call_at(deadline, self._check_deadline)
        else:
            self._end(failure_outcome(TimeoutError()))
            self.abort()

    def _end(self, outcome: Outcome) -> None:
        self._is_ended = True
        if self._timer:
            self._timer.cancel()
        if self._stream_request:
            self._stream_request.cancel()
        self._fail_all(outcome)

    def _fail_all(self, outcome: Outcome) -> None:
        """Ends all waiting messages. A refusal arrives before the answer to the ping behind the message."""
        set_outcomes(self._waiting, outcome)


class _NatsPyClient(Client):
    """The library's client without reconnects, which would bypass the resolver."""

    def __init__(self, tls: bool) -> None:
        super().__init__()
        self._tls = tls
        self._outcome_requests: list[asyncio.Future[Outcome]] = []

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        """Insists on TLS where it is required; otherwise the server, or a machine in between, could leave it out."""
        if initial_connection and self._tls:
            if not (info.get("tls_required") or info.get("tls_available")):
                raise errors.SecureConnWantedError
            self._server_info["tls_required"] = True
        await super()._process_info(info, initial_connection)

    def request_outcome(self, outcome_future: asyncio.Future[Outcome]) -> None:
        """Requests an answer behind all published messages. One ping serves all requests of one turn of the loop."""
        self._outcome_requests.append(outcome_future)
        if len(self._outcome_requests) == 1:
            self._request_task = asyncio.ensure_future(self._send_requests())

    async def _send_requests(self) -> None:
        outcome_futures, self._outcome_requests = self._outcome_requests, []
        pong: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        pong.add_done_callback(lambda _: set_outcomes(outcome_futures, DELIVERED))
        await self._send_ping(pong)

    async def _send_ping(self, future: asyncio.Future[Any] | None = None) -> None:
        """Sends a ping after all published messages; the library's own method would overtake them."""
        self._pongs.append(future or asyncio.get_running_loop().create_future())
        await self._send_command(b"PING\r\n")
        await self._flush_pending()


class _JetStream(JetStreamContext):
    async def _handle_async_reply(self, msg: Msg) -> None:
        """Handles a stream's acknowledgement. The library loses some of those that are errors."""
        try:
            await super()._handle_async_reply(msg)
        except APIError as error:
            acknowledgement = self._publish_async_futures.get(msg.subject.rpartition(".")[2])
            if acknowledgement and not acknowledgement.done():
                acknowledgement.set_exception(error)


def set_outcomes(futures: Iterable[asyncio.Future[Outcome]], outcome: Outcome) -> None:
    """Sets the outcome of all futures that have none yet."""
    for future in futures:
        if not future.done():
            future.set_result(outcome)


def error_outcome(text: str) -> Outcome:
    """The outcome of an error text from the server or the library."""
    message = text.removeprefix("nats: ").strip("'\" ")
    lower_message = message.lower()
    if any(phrase in lower_message for phrase in _UNAUTHORIZED_ERRORS):
        return Outcome(DeliveryResult.UNAUTHORIZED, "unauthorized", message)
    if any(phrase in lower_message for phrase in _REJECTED_ERRORS):
        return Outcome(DeliveryResult.REJECTED, "rejected", message)
    return Outcome(DeliveryResult.RETRY, "nats", message)


def _message_size(payload: bytes, headers: Mapping[str, str]) -> int:
    """The message size as the server counts it."""
    return len(payload) + len(b"NATS/1.0\r\n\r\n") + sum(len(name) + len(value) + 4 for name, value in headers.items())


def _login_options(credential: Credential | None) -> dict[str, Any]:
    if credential is None:
        return {}
    if credential.type == "PLAIN":
        return {"user": credential.identifier, "password": credential.secret}
    return {"token": credential.token}
