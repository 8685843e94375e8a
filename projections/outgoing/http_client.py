"""HTTP requests to servers that clients name: to checked addresses, without redirects, proxies or cookies.

Spec: CloudEvents HTTP 1.1 Web Hooks, "Delivery response"; rules SUB-823, SUB-901, SUB-902, SUB-904, SUB-906.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

import httpcore

from annals.domain.errors.http_errors import InvalidSubscription
from annals.domain.subscriptions.error_places import ErrorPlace
from annals.domain.subscriptions.sink_uris import HTTP, SinkAddress, parse_sink
from annals.projections.outgoing import certificates
from annals.projections.outgoing.resolver import ADDRESS_SECONDS, ForbiddenAddress, Resolver, addresses_of

#: The maximum bytes read of a response, and the maximum seconds for its body after its status has arrived.
MAX_BODY_BYTES: Final = 64 * 1024
BODY_SECONDS: Final = 5.0
#: The maximum connections of a client, and the seconds that idle ones stay open.
MAX_CONNECTIONS: Final = 32
IDLE_SECONDS: Final = 30.0
USER_AGENT: Final = "Annals"

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class RequestFailed(Exception):
    """There is no response. code: a word for programs; message: the reason, without any address."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response. body: its beginning, as sent. is_complete: whether that is all of it."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    is_complete: bool

    def header(self, name: str) -> str | None:
        """The value of a header; several headers with the same name are joined by commas."""
        values = [value for header_name, value in self.headers if header_name == name.lower()]
        return ", ".join(values) if values else None


class HttpClient:
    """Keeps connections to one server open; any number of tasks may use it. Belongs to one event loop."""

    def __init__(
        self, uri: str, resolver: Resolver, has_secrets: bool = False, max_body_bytes: int = MAX_BODY_BYTES
    ) -> None:
        """has_secrets: whether requests contain secrets; without TLS they then stay on the machine (SUB-306).

        Raises: RequestFailed when nothing can be sent to the URI.
        """
        sink_address = _parse_address(uri)
        host, port = sink_address.servers[0]
        target = (sink_address.path or "/") + (f"?{sink_address.query}" if sink_address.query is not None else "")
        bracketed_host = f"[{host}]" if ":" in host else host
        self._url = httpcore.URL(scheme=sink_address.scheme, host=host.removesuffix("."), port=port, target=target)
        self._host = bracketed_host if port == _DEFAULT_PORTS[sink_address.scheme] else f"{bracketed_host}:{port}"
        self._origin = httpcore.Origin(sink_address.scheme.encode(), self._url.host, port)
        self._tls_context = _tls_context(resolver) if sink_address.tls else None
        self._max_body_bytes = max_body_bytes
        self._network = _CheckedBackend(resolver, sink_address.tls, has_secrets)
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._idle_connections: list[httpcore.AsyncHTTPConnection] = []
        self._running, self._is_closed = 0, False
        self._idle_timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    async def request(
        self, method: str, headers: Iterable[tuple[str, str]], content: bytes | None, seconds: float
    ) -> HttpResponse:
        """The response. seconds: for all of it, from the name lookup to the last byte. Raises: RequestFailed."""
        self._begin_request()
        try:
            return await self._exchange(self._build_request(method, headers, content), seconds)
        except TimeoutError:
            raise RequestFailed("timeout", f"no answer within {seconds:g} s") from None
        except ForbiddenAddress as refusal:
            raise RequestFailed("address", str(refusal)) from None
        except (OSError, httpcore.NetworkError, httpcore.TimeoutException) as error:
            raise _request_failed(error) from None
        except (httpcore.RemoteProtocolError, httpcore.ConnectionNotAvailable):
            raise RequestFailed("protocol", "the answer is not HTTP, or broke off") from None
        except (httpcore.LocalProtocolError, ValueError) as error:
            raise RequestFailed("request", f"this cannot be sent: {type(error).__name__}") from None
        finally:
            self._end_request()

    async def close(self) -> None:
        """Closes idle connections; those in use close with their requests."""
        self._is_closed = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._closing is not None:
            await self._closing
        await self._close_connections()

    async def _exchange(self, request: httpcore.Request, seconds: float) -> HttpResponse:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        async with asyncio.timeout_at(deadline):
            await self._slots.acquire()
        try:
            connection = await self._take_connection()
            try:
                async with asyncio.timeout_at(deadline):
                    response = await connection.handle_async_request(request)
                try:
                    body, is_complete = await _read_body(
                        response, min(BODY_SECONDS, deadline - loop.time()), self._max_body_bytes
                    )
                finally:
                    await response.aclose()
            finally:
                await self._put_back(connection)
        finally:
            self._slots.release()
        response_headers = tuple(
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.headers
        )
        return HttpResponse(response.status, response_headers, body, is_complete)

    # httpcore's pool scans all of its connections for each request, which takes longer than the request.

    async def _take_connection(self) -> httpcore.AsyncHTTPConnection:
        """The idle connection that was used last, or a new one."""
        while self._idle_connections:
            connection = self._idle_connections.pop()
            if connection.is_idle() and not connection.has_expired():
                return connection
            await connection.aclose()
        return httpcore.AsyncHTTPConnection(self._origin, self._tls_context, network_backend=self._network)

    async def _put_back(self, connection: httpcore.AsyncHTTPConnection) -> None:
        if connection.is_idle() and not (connection.is_closed() or self._is_closed):
            self._idle_connections.append(connection)
        else:
            await connection.aclose()

    def _begin_request(self) -> None:
        self._running += 1
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _end_request(self) -> None:
        """Schedules closing idle connections, because the next request may be days away."""
        self._running -= 1
        if not (self._running or self._is_closed):
            self._idle_timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._close_idle)

    def _close_idle(self) -> None:
        self._closing = asyncio.get_running_loop().create_task(self._close_connections())

    async def _close_connections(self) -> None:
        while self._idle_connections:
            await self._idle_connections.pop().aclose()

    def _build_request(
        self, method: str, headers: Iterable[tuple[str, str]], content: bytes | None
    ) -> httpcore.Request:
        length = () if content is None else (("Content-Length", str(len(content))),)
        encoded_headers = [(name.encode(), value.encode()) for name, value in (("Host", self._host), *headers, *length)]
        return httpcore.Request(method, self._url, headers=encoded_headers, content=content)


def _tls_context(resolver: Resolver) -> ssl.SSLContext:
    try:
        return certificates.client_tls_context(resolver)
    except OSError:
        raise RequestFailed("tls", "the file of ANNALS_SINKS_CA cannot be read") from None


def _parse_address(uri: str) -> SinkAddress:
    try:
        return parse_sink(uri, HTTP, ErrorPlace())
    except InvalidSubscription as error:
        raise RequestFailed("request", error.arguments["error_detail"]) from None


async def _read_body(response: httpcore.Response, seconds: float, limit: int) -> tuple[bytes, bool]:
    """The body as far as it was read, and whether it is complete; a broken body does not invalidate the status."""
    body = bytearray()
    with suppress(httpcore.NetworkError, httpcore.RemoteProtocolError, TimeoutError):
        async with asyncio.timeout(seconds):
            async for chunk in response.aiter_stream():
                body += chunk
                if len(body) > limit:
                    return bytes(body[:limit]), False
            return bytes(body), True
    return bytes(body), False


def _request_failed(error: BaseException) -> RequestFailed:
    """The reason for a broken connection, worded again because the system's message contains addresses."""
    if isinstance(error, httpcore.ConnectError | httpcore.ConnectTimeout):
        cause = _root_cause(error)
        if isinstance(cause, ssl.SSLCertVerificationError):
            return RequestFailed("tls", f"its certificate is not trusted: {cause.verify_message}")
        if isinstance(cause, ssl.SSLError):
            return RequestFailed("tls", "the TLS handshake failed")
        return RequestFailed("tls", "it closed the connection during the TLS handshake")
    if isinstance(error, socket.gaierror):
        return RequestFailed("name", "the name of the host has no address")
    if isinstance(error, ConnectionRefusedError):
        return RequestFailed("connection", "the connection was refused")
    if isinstance(error, OSError):
        return RequestFailed("connection", "the connection failed")
    return RequestFailed("connection", "the connection broke off")


def _root_cause(error: BaseException) -> BaseException:
    while cause := error.__cause__ or error.__context__:  # the pool raises errors `from None`
        error = cause
    return error


class _CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects to the addresses from a resolver. TLS and requests still use the names of the URI."""

    def __init__(self, resolver: Resolver, tls: bool, has_secrets: bool) -> None:
        self._resolver, self._requires_loopback = resolver, has_secrets and not tls
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Raises: ForbiddenAddress, OSError."""
        addresses = await addresses_of(self._resolver, host, port)
        if self._requires_loopback and not all(ip_address(address).is_loopback for address in addresses):
            raise ForbiddenAddress("credentials are sent over TLS only")
        for address in addresses[:-1]:
            with suppress(OSError):
                return await self._connect(address, port, ADDRESS_SECONDS)
        return await self._connect(addresses[-1], port, None)

    async def _connect(self, address: str, port: int, seconds: float | None) -> httpcore.AsyncNetworkStream:
        try:
            return await self._network.connect_tcp(address, port, seconds)
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            cause = _root_cause(error)
            raise cause if isinstance(cause, OSError) else ConnectionError from None
