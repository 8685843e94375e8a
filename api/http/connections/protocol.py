"""HTTP/1.1 connections with limits on the size and the duration of requests.

uvicorn and its parser accept any amount of data. A BoundedProtocol counts bytes before it passes them to the parser,
handles one request after the other, and closes the connection if the client is too slow.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, Final

import httptools
import uvicorn
from starlette.types import Scope
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from annals.api.http.connections.body_parser import BodyCallbacks, framing_head
from annals.api.http.connections.connection_limits import ConnectionLimits
from annals.api.http.connections.gathered_writes import GatheredWrites
from annals.api.http.connections.handshake_loop import HandshakeLoop
from annals.api.http.connections.request_head import RequestHead, find_block_end
from annals.api.http.connections.request_target import origin_form
from annals.api.http.connections.tls import CLIENT_CERTIFICATE, client_certificate
from annals.api.http.response import Response
from annals.domain.errors.http_errors import RequestTimeout, TooManyConnections
from annals.domain.errors.problems import BadRequest, Problem

#: Maximum bytes of a chunked body that the parser receives at once.
_PIECE_BYTES: Final = 16 << 10
#: Number of requests that may wait in the parser while an earlier one is answered. Later ones wait as raw bytes.
_MAX_PIPELINED: Final = 1
#: Maximum bytes of a chunked body in addition to its data: for extensions and trailers, and for the framing of each
#: chunk.
_MAX_FRAMING_BYTES: Final = 16 << 10
_MAX_CHUNK_FRAMING_BYTES: Final = 32
#: Seconds for which a refused client may still send. Closing at once could lose the response.
_LINGER_SECONDS: Final = 2.0

#: Builds the response to a request that is refused before it is complete. scope: the part that was read.
BuildRefusal = Callable[[Problem, Scope], Response]


class BoundedConfig(uvicorn.Config):
    """uvicorn's configuration, with connection limits."""

    def __init__(
        self,
        app: Any,
        limits: ConnectionLimits,
        build_refusal: BuildRefusal,
        tls: ssl.SSLContext | None = None,
        **options: Any,
    ) -> None:
        super().__init__(app, http=BoundedProtocol, **options)
        self._tls = tls
        self.limits = limits
        self.build_refusal = build_refusal

    def load(self) -> None:
        super().load()
        self.ssl = self._tls

    def get_loop_factory(self) -> Callable[[], asyncio.AbstractEventLoop]:
        """The loop waits as long for a TLS handshake as for the head of a request."""
        return self._new_loop

    def _new_loop(self) -> HandshakeLoop:
        loop = HandshakeLoop()
        loop.handshake_seconds = self.limits.header_seconds
        return loop


class BoundedProtocol(HttpToolsProtocol):
    """One connection, with limits on its requests."""

    flow: _BoundedFlowControl

    def __init__(
        self,
        config: BoundedConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.url = b""
        self._limits = config.limits
        self._build_refusal = config.build_refusal
        self._head = RequestHead(config.limits.head)
        #: Whether the next byte begins a request and no bytes are waiting.
        self._is_between_requests = True
        #: Whether the body of a request comes next.
        self._is_in_body = False
        #: Bytes passed on since the request's head, body bytes among them, and chunks.
        self._fed_bytes = self._content_bytes = self._chunk_count = 0
        #: Body size in bytes; None for a chunked body. Then the last bytes of a chunked body.
        self._body_length: int | None = None
        self._tail = b""
        #: Bytes that the parser has not received yet, and the index where they begin.
        self._pending: tuple[bytes, int] | None = None
        #: The time since which the connection waits for the rest of a request; None if it does not wait.
        self._waiting_since: float | None = None
        #: Whether the connection reads no more, and the problem that it reports to the client.
        self._is_ended = False
        self._refusal: Problem | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._gathered_writes = GatheredWrites(transport)
        super().connection_made(self._gathered_writes)
        if (certificate := client_certificate(transport)) is not None:
            self.app_state = {**self.app_state, CLIENT_CERTIFICATE: certificate}
        self.flow = _BoundedFlowControl(self._gathered_writes)
        self._waiting_since = self.loop.time()
        if len(self.connections) > self._limits.connections:
            self._refuse(TooManyConnections(max_connections=self._limits.connections))
            transport.close()  # no waiting for the client, which would keep the connection open

    def data_received(self, data: bytes) -> None:
        if self._is_between_requests and not self.pipeline and self._head.is_short(data):
            super().data_received(data)
            if self._is_in_body:
                self._begin_body()
        elif self._is_ended:
            return
        elif self._pending is not None:
            unread, start = self._pending
            self._pending = unread[start:] + data, 0
        else:
            self._is_between_requests = False
            self._feed_parser(data, 0)

    def _feed_parser(self, data: bytes, start: int) -> None:
        """Passes to the parser as many bytes as it may have."""
        while start < len(data) and not self._is_ended and not self.transport.is_closing():
            if len(self.pipeline) >= _MAX_PIPELINED:
                self._pending = data, start
                self.flow.pause()
                return
            end = self._body_end(data, start) if self._is_in_body else self._head.find_end(data, start)
            self._feed(data if end - start == len(data) else data[start:end])
            start = end
        self._is_between_requests = not (self._is_ended or self._is_in_body or self._head.has_begun)
        if self._waiting_since is None and not self._is_between_requests:
            self._waiting_since = self.loop.time()

    def _body_end(self, data: bytes, start: int) -> int:
        """The end of a piece of the body that contains nothing after the body."""
        if self._body_length is not None and self._body_length > self._fed_bytes:
            return min(len(data), start + self._body_length - self._fed_bytes)
        return min(find_block_end(self._tail, data, start), start + _PIECE_BYTES)

    def _feed(self, piece: bytes) -> None:
        """Passes one piece of a head or of a body to the parser."""
        if self._is_in_body:
            self._fed_bytes += len(piece)
            self._tail = (self._tail + piece[-3:])[-3:]
            super().data_received(piece)
            self._check_framing()
        elif (exceeded := self._head.add(piece)) is not None:
            super().data_received(piece[: exceeded.start])
            self._refuse(exceeded.problem)
        else:
            super().data_received(piece)
            if self._is_in_body:
                self._begin_body()

    def _begin_body(self) -> None:
        """Starts to count the bytes of a body."""
        self._is_between_requests = False
        self._fed_bytes = self._content_bytes = self._chunk_count = 0
        self._tail = b""
        self._body_length = _body_length(self.scope["headers"])
        self._waiting_since = self.loop.time()

    def _check_framing(self) -> bool:
        """Whether a body's framing is within the limit; refuses a body that exceeds it."""
        if (
            not self._is_in_body
            or self._fed_bytes - self._content_bytes
            <= _MAX_FRAMING_BYTES + _MAX_CHUNK_FRAMING_BYTES * self._chunk_count
        ):
            return True
        self._refuse(
            BadRequest(error_detail=f"chunk extensions and trailers have more than {_MAX_FRAMING_BYTES} bytes")
        )
        return False

    # Callbacks of the parser

    def on_headers_complete(self) -> None:
        self.url, self.headers[:] = origin_form(self.url, self.headers)
        super().on_headers_complete()  # fails for a target without a path, as CONNECT has
        self._is_in_body, self._waiting_since = True, None
        # Trailers arrive like headers. They are not headers, and the application may not have read the headers yet.
        self.headers = []

    def on_chunk_header(self) -> None:
        """Counts a chunk."""
        self._chunk_count += 1

    def on_body(self, body: bytes) -> None:
        self._content_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._ignores_upgrade():  # the parser ends the request without its body
            return
        if not self._is_between_requests:
            if not self._check_framing():
                return
            self._waiting_since, self._fed_bytes = None, 0
            self._head.reset()
        self._is_in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        # Sends concurrent responses together, so that a client with several connections wakes once.
        if len(self.tasks) > 1:
            self.loop.call_soon(self._gathered_writes.flush)
        else:
            self._gathered_writes.flush()
        super().on_response_complete()
        if self._is_between_requests or self.transport.is_closing():
            return
        if self._refusal is not None:
            self._send_error(self._refusal)
        elif self._pending is not None:
            unread, self._pending = self._pending, None
            self.flow.release()
            self._feed_parser(*unread)

    # Refusals

    def check_time(self, now: float, last_check: float) -> None:
        """Refuses a request that takes too long to arrive. last_check: time of the last check, in seconds."""
        if self._waiting_since is None or self._is_ended:
            return
        if self.flow.read_paused:  # the client may not send now, so this time does not count
            self._waiting_since += now - last_check
            return
        limits = self._limits
        allowed_seconds = (
            limits.body_seconds + self._content_bytes / limits.body_rate if self._is_in_body else limits.header_seconds
        )
        if now - self._waiting_since <= allowed_seconds:
            return
        if self._is_in_body or self._head.has_begun:
            self._refuse(RequestTimeout(part="the body" if self._is_in_body else "the head"))
        else:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        self._refuse(BadRequest(error_detail="this is not an HTTP request"))

    def _refuse(self, problem: Problem) -> None:
        """Stops reading and ends the connection, with a response if none is being sent."""
        if self._is_ended:
            return
        self._refusal = problem
        self._stop_reading()
        self._unset_keepalive_if_required()
        self.flow.release()
        if self._is_in_body:
            self._abandon(self.cycle)
        self._send_error(problem)

    def _stop_reading(self) -> None:
        """Stops reading."""
        self._is_ended, self._is_between_requests, self._pending = True, False, None

    def _ignores_upgrade(self) -> bool:
        """Whether the request offers another protocol, and goes on without it (RFC 9110, "Upgrade")."""
        return bool(self.parser.should_upgrade()) and self.scope["method"] != "CONNECT"

    def _unsupported_upgrade_warning(self) -> None:
        # The parser takes the following bytes for another protocol. In a CONNECT they are for another server;
        # otherwise another parser reads them, because they are the body. Java's own client offers h2c in each request.
        if self._ignores_upgrade():
            self.parser = httptools.HttpRequestParser(BodyCallbacks(self))
            self.parser.feed_data(framing_head(self.scope["headers"]))
        else:
            self.cycle.keep_alive = False
            self._stop_reading()

    def on_ignored_upgrade_complete(self) -> None:
        """Ends a request whose body was read by a parser of its own."""
        self.parser = httptools.HttpRequestParser(self)
        self.on_message_complete()

    def _abandon(self, cycle: RequestResponseCycle) -> None:
        """Ends a request whose body does not arrive. If it is already being answered, this closes the connection."""
        if cycle.response_started or self.pipeline:
            self.transport.close()
        cycle.disconnected = True
        cycle.message_event.set()

    def _send_error(self, problem: Problem) -> None:
        """Sends the response, and closes the connection after the client had time to read it.

        Responses to earlier requests go first; this method is called again after each of them.
        """
        is_responding = self.cycle is not None and not (self.cycle.response_complete or self.cycle.disconnected)
        if is_responding or self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        response = self._build_refusal(problem, self._known_scope())
        assert isinstance(response.body, bytes), "a problem has a body that is here"
        headers = [*self.server_state.default_headers, *response.headers, (b"connection", b"close")]
        headers.append((b"content-length", b"%d" % len(response.body)))
        status = f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}\r\n".encode()
        header_lines = b"".join(b"%s: %s\r\n" % header for header in headers)
        self.transport.write(b"%s%s\r\n%s" % (status, header_lines, response.body))
        self.transport.write_eof()
        self.loop.call_later(_LINGER_SECONDS, self.transport.abort)

    def _known_scope(self) -> Scope:
        """The known part of the request that is being received."""
        if self._is_in_body:
            return dict(self.scope)
        connection_scope = {
            "scheme": self.scheme,
            "server": self.server,
            "client": self.client,
            "root_path": self.root_path,
        }
        scope: Scope = {
            "type": "http",
            "method": "GET",
            "raw_path": b"/",
            "query_string": b"",
            "headers": [],
            **connection_scope,
        }
        if not self._head.lines:
            return scope
        try:
            target, headers = origin_form(self.url, self.headers)
            url = httptools.parse_url(target)
        except httptools.HttpParserError:
            return scope
        return {**scope, "raw_path": url.path or b"/", "query_string": url.query or b"", "headers": list(headers)}


def _body_length(headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """The size of a body in bytes from its headers, which the parser has checked; None for a chunked body."""
    header_values = dict(headers)
    return (
        int(header_values[b"content-length"])
        if b"content-length" in header_values and b"transfer-encoding" not in header_values
        else None
    )


class _BoundedFlowControl(FlowControl):
    """Flow control that the application cannot resume while received bytes wait for the parser."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        self._is_paused = False

    def pause(self) -> None:
        """Stops reading."""
        self._is_paused = True
        self.pause_reading()

    def release(self) -> None:
        """Resumes reading."""
        self._is_paused = False
        self.resume_reading()

    def resume_reading(self) -> None:
        if not self._is_paused:
            super().resume_reading()
