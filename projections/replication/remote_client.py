"""Another registry over HTTP."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final
from weakref import WeakSet

import httpx

from projections.outgoing.resolver import Resolver
from projections.replication.bounded_responses import ResponseTooLarge, read_lines, read_response
from projections.replication.guarded_connections import guarded_transport
from projections.replication.stalled_responses import (
    STALL_SECONDS,
    ResponseStalled,
    Watchdog,
    check_progress,
    watch_upload,
)

#: Seconds to connect, and between two parts of an answer; feeds are asked to wait for less.
TIMEOUT: Final = httpx.Timeout(20.0, read=60.0)
#: Characters of what a problem document says that an error repeats.
MAX_DETAIL_LENGTH: Final = 500
_FAILURES: Final = (
    httpx.HTTPError,
    httpx.InvalidURL,
    httpx.StreamError,
    RuntimeError,
    ResponseStalled,
    ResponseTooLarge,
)
#: Has a connection end within 20 s over which nothing arrives any more, not even word of what has arrived: nobody else
#: tells of a line that is cut, and TCP alone waits for one to come back for as long again as it was away. Whoever only
#: takes long to answer keeps the connection, as its system answers. Not every system has all of these.
_KEEPALIVE_OPTIONS: Final = (
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 10),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 5),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 2),
    (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", 20_000),
)


class RemoteError(Exception):
    """The other registry is not there, or answers with something that is no answer.

    status: of its answer; None where there is none. problem: the JSON of what it says, if it is that.
    """

    def __init__(self, said: str, status: int | None = None, problem: Mapping[str, Any] | None = None) -> None:
        self.status = status
        self.problem = problem or {}
        super().__init__(said)


class RemoteClient:
    """A registry by the URL of its root, or of one of its older APIs; `close` it.

    resolver: says which addresses may be connected to. credential: the public members of a link's credential with its
    secret values.
    """

    def __init__(self, url: str, resolver: Resolver, credential: Mapping[str, Any] | None = None) -> None:
        self.url = url
        self._client = httpx.Client(
            auth=_auth(credential),
            headers=_headers(credential),
            timeout=TIMEOUT,
            transport=guarded_transport(resolver),
        )
        self._sockets: WeakSet[socket.socket] = WeakSet()

    def close(self) -> None:
        """Ends its connections."""
        self._client.close()

    def cut(self) -> None:
        """Has the requests that run, in whatever thread, fail at once; later ones connect anew."""
        for connected in list(self._sockets):
            with suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)  # closing alone would wake nobody who waits for an answer

    def ask(self, method: str, path: str, *, within: float = STALL_SECONDS, **options: Any) -> httpx.Response:
        """The whole answer to a request, of a status below 400. within: seconds that it has. Raises: RemoteError."""
        try:
            with Watchdog(self.cut, within) as watchdog:
                given = watch_upload(options, watchdog)
                with self._client.stream(method, self.url + path, extensions=self._traced(), **given) as response:
                    answer = read_response(response)
        except _FAILURES as error:
            raise self._lost(error) from None
        return self._checked(answer)

    @contextmanager
    def stream(self, path: str, **options: Any) -> Iterator[Iterator[bytes | None]]:
        """The lines of an answer to a GET, as they come, and None after each part of it that came at once.

        Raises: RemoteError, inside the block as well.
        """
        try:
            with (
                Watchdog(self.cut) as watchdog,
                self._client.stream("GET", self.url + path, extensions=self._traced(), **options) as response,
            ):
                if response.status_code >= 400:
                    response = read_response(response)
                watchdog.rest()
                yield check_progress(read_lines(self._checked(response)))
        except _FAILURES as error:
            raise self._lost(error) from None

    def _traced(self) -> dict[str, Any]:
        """Has the client tell of its connections: nothing else knows one that no answer has come over yet."""

        def trace(name: str, info: Mapping[str, Any]) -> None:
            if name in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
                connected = info["return_value"].get_extra_info("socket")
                _set_keepalive(connected)
                self._sockets.add(connected)

        return {"trace": trace}

    def _checked(self, response: httpx.Response) -> httpx.Response:
        if response.status_code < 400:
            return response
        problem = _problem(response)
        where = f"{response.request.method} {response.request.url.path} answers {response.status_code}"
        raise RemoteError(": ".join(filter(None, (where, _problem_text(problem)))), response.status_code, problem)

    def _lost(self, error: Exception) -> RemoteError:
        said = " ".join(str(error).split()) or type(error).__name__
        return RemoteError(f"{self.url} does not answer: {said}")


def _problem(response: httpx.Response) -> dict[str, Any]:
    """The problem document of an answer; empty for everything else, which may be of a server that is no registry."""
    try:
        found = response.json()
    except (ValueError, RecursionError):
        return {}
    texts = ("type", "title")
    return found if isinstance(found, dict) and all(isinstance(found.get(name), str) for name in texts) else {}


def _problem_text(problem: Mapping[str, Any]) -> str:
    """What a problem document says to people, in one line; nothing else of an answer is shown (SUB-904)."""
    texts = (problem.get("title"), problem.get("detail"))
    return " ".join(" ".join(text.split()) for text in texts if isinstance(text, str))[:MAX_DETAIL_LENGTH].strip()


def _set_keepalive(connected: socket.socket) -> None:
    """Has the system end a connection whose line is cut."""
    with suppress(OSError):  # it has ended already
        for level, name, value in _KEEPALIVE_OPTIONS:
            if hasattr(socket, name):
                connected.setsockopt(level, getattr(socket, name), value)


def _headers(credential: Mapping[str, Any] | None) -> dict[str, str]:
    if credential and credential.get("type") == "bearer" and "token" in credential:
        return {"authorization": f"Bearer {credential['token']}"}
    return {}


def _auth(credential: Mapping[str, Any] | None) -> httpx.BasicAuth | None:
    if credential and credential.get("type") == "basic":
        return httpx.BasicAuth(credential["username"], credential.get("password", ""))
    return None
