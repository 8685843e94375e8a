"""The HTTP client for another registry."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit
from weakref import WeakSet

from annals.domain.values.json_text import InvalidJson, loads
from annals.projections.outgoing.resolver import Resolver
from annals.projections.replication.remote.bounded_responses import ResponseTooLarge, read_lines, read_response
from annals.projections.replication.remote.content_decoding import ACCEPT_ENCODING, UndecodableResponse
from annals.projections.replication.remote.secret_mask import SecretMask
from annals.projections.replication.remote.stalled_responses import (
    STALL_SECONDS,
    ResponseStalled,
    Watchdog,
    check_progress,
    watch_upload,
)

if TYPE_CHECKING:
    import httpx  # takes long, and only links need it

#: Seconds to connect, and seconds between two parts of an answer. Requests for feeds ask for shorter waits.
CONNECT_SECONDS: Final = 20.0
READ_SECONDS: Final = 60.0
#: Largest length in an error of a text of the other registry, in characters.
MAX_DETAIL_LENGTH: Final = 500
#: Largest size in bytes of a problem document that is read; parsed JSON takes many times as much memory.
_MAX_PROBLEM_BYTES: Final = 1 << 18
#: Socket options that close a connection within 20 s after the peer stops acknowledging. Otherwise nothing reports a
#: cut line, and after it is back, TCP alone waits for as long again as it was cut. A peer that only answers slowly
#: keeps the connection, because its system acknowledges. Not every system has all of these options.
_KEEPALIVE_OPTIONS: Final = (
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 10),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 5),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 2),
    (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", 20_000),
)


class RemoteError(Exception):
    """The other registry is unreachable, or its answer is an error or invalid.

    status: of its answer; None if there is none.
    problem: the JSON of its problem document, if it sent one.
    """

    def __init__(self, message: str, status: int | None = None, problem: Mapping[str, Any] | None = None) -> None:
        self.status = status
        self.problem = problem or {}
        super().__init__(message)


class RemoteLines(NamedTuple):
    """An answer to read line by line. lines: as they arrive, and None after each received chunk.

    next_url: the URL of the next page; empty if the answer has no such link.
    """

    lines: Iterator[bytes | None]
    next_url: str


class RemoteClient:
    """A client for a registry, by the URL of its root or of one of its legacy APIs; `close` it.

    resolver: decides which addresses may be connected to.
    credential: the public members of a link's credential and its secret values; without TLS it stays on the machine.
    """

    def __init__(self, url: str, resolver: Resolver, credential: Mapping[str, Any] | None = None) -> None:
        import httpx

        from annals.projections.replication.remote.guarded_connections import guarded_transport

        self.url = url
        self._client = httpx.Client(
            auth=_basic_auth(credential),
            headers={"accept-encoding": ACCEPT_ENCODING, **_credential_headers(credential)},
            timeout=httpx.Timeout(CONNECT_SECONDS, read=READ_SECONDS),
            transport=guarded_transport(resolver, bool(credential) and urlsplit(url).scheme == "http"),
        )
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._mask = SecretMask(credential)

    def close(self) -> None:
        """Closes its connections."""
        self._client.close()

    def abort_requests(self) -> None:
        """Makes all running requests fail at once, in every thread. Later requests open new connections."""
        for connection in list(self._sockets):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)  # `close` alone would not wake a thread that waits for an answer

    def request(
        self,
        method: str,
        path: str,
        *,
        timeout: float = STALL_SECONDS,
        max_bytes: int | None = None,
        **options: Any,
    ) -> httpx.Response:
        """The whole answer to a request, with a status below 400.

        timeout: time limit in seconds. max_bytes: limit of its body, instead of the one for documents.
        Raises: RemoteError.
        """
        try:
            with Watchdog(self.abort_requests, timeout) as watchdog:
                watched_options = watch_upload(options, watchdog)
                with self._client.stream(
                    method, self.url + path, extensions=self._tracing_extensions(), **watched_options
                ) as response:
                    complete_response = read_response(response, max_bytes)
        except _failure_types() as error:
            raise self._connection_lost(error) from None
        return self._raise_for_status(complete_response)

    @contextmanager
    def stream(self, path: str, media_type: str, params: Mapping[str, str]) -> Iterator[RemoteLines]:
        """The answer 200 to a GET, in a media type.

        Raises: RemoteError, also inside the block, and for an answer that is something else, such as a proxy's page.
        """
        try:
            with (
                Watchdog(self.abort_requests) as watchdog,
                self._client.stream(
                    "GET",
                    self.url + path,
                    params=params,
                    headers={"accept": media_type},
                    extensions=self._tracing_extensions(),
                ) as response,
            ):
                if response.status_code >= 400:
                    response = read_response(response)
                watchdog.stop()
                self._check_media_type(self._raise_for_status(response), media_type)
                yield RemoteLines(check_progress(read_lines(response)), response.links.get("next", {}).get("url", ""))
        except _failure_types() as error:
            raise self._connection_lost(error) from None

    def _tracing_extensions(self) -> dict[str, Any]:
        """Registers each new connection: a connection without an answer is not known otherwise."""

        def trace(name: str, info: Mapping[str, Any]) -> None:
            if name in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
                connection = info["return_value"].get_extra_info("socket")
                _set_keepalive(connection)
                self._sockets.add(connection)

        return {"trace": trace}

    def _raise_for_status(self, response: httpx.Response) -> httpx.Response:
        if response.status_code < 400:
            return response
        problem = _parse_problem(response)
        request_line = f"{response.request.method} {response.request.url.path} answers {response.status_code}"
        raise RemoteError(
            ": ".join(filter(None, (request_line, self._problem_text(problem)))), response.status_code, problem
        )

    def _problem_text(self, problem: Mapping[str, Any]) -> str:
        """The texts of a problem document in one line. Nothing else of an answer is shown (SUB-904)."""
        texts = (problem.get("title"), problem.get("detail"))
        return self._shown_text(" ".join(text for text in texts if isinstance(text, str)))

    def _check_media_type(self, response: httpx.Response, media_type: str) -> None:
        """Raises: RemoteError."""
        content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code != 200 or content_type != media_type:
            raise RemoteError(
                f"GET {response.request.url.path} answers {response.status_code} "
                f"with {self._shown_text(content_type) or 'no content type'}, not 200 with {media_type}",
                response.status_code,
            )

    def _shown_text(self, text: str) -> str:
        """A text of the other registry in one line, without the link's secrets, of at most MAX_DETAIL_LENGTH."""
        return _one_line(self._mask.hide(text))[:MAX_DETAIL_LENGTH].strip()

    def _connection_lost(self, error: Exception) -> RemoteError:
        import httpx

        # Only these errors repeat a part of what was sent or received; all others have texts of their own.
        message = self._mask.hide(str(error)) if isinstance(error, httpx.ProtocolError) else str(error)
        return RemoteError(f"{self.url} does not answer: {_one_line(message) or type(error).__name__}")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _parse_problem(response: httpx.Response) -> dict[str, Any]:
    """The problem document of an answer; empty for any other answer, such as that of a server that is no registry."""
    if len(response.content) > _MAX_PROBLEM_BYTES:
        return {}
    try:
        document = loads(response.content)
    except InvalidJson:
        return {}
    texts = ("type", "title")
    return document if isinstance(document, dict) and all(isinstance(document.get(name), str) for name in texts) else {}


def _set_keepalive(connection: socket.socket) -> None:
    """Makes the system close a connection whose line is cut."""
    with suppress(OSError):  # the connection has ended already
        for level, name, value in _KEEPALIVE_OPTIONS:
            if hasattr(socket, name):
                connection.setsockopt(level, getattr(socket, name), value)


def _credential_headers(credential: Mapping[str, Any] | None) -> dict[str, str]:
    if credential and credential.get("type") == "bearer" and "token" in credential:
        return {"authorization": f"Bearer {credential['token']}"}
    return {}


def _failure_types() -> tuple[type[Exception], ...]:
    """The errors of a request; `except` calls this only after an error."""
    import httpx

    return (
        *(httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, RuntimeError),
        *(ResponseStalled, ResponseTooLarge, UndecodableResponse),
    )


def _basic_auth(credential: Mapping[str, Any] | None) -> httpx.BasicAuth | None:
    import httpx

    if credential and credential.get("type") == "basic":
        return httpx.BasicAuth(credential["username"], credential.get("password", ""))
    return None
