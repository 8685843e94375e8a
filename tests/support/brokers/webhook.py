"""A receiver of webhooks that requires a password, for the suite of all sinks: uvicorn and the CloudEvents SDK."""

from __future__ import annotations

import queue
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import uvicorn
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from cloudevents.core.v1.event import CloudEvent
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from annals.projections.subscriptions.contract import Credential, SinkTarget
from tests.support.brokers.certificates import issue_certificate
from tests.support.brokers.suite import GOOD, HOST, PASSWORD, USER, Broker, Received
from tests.support.ports import free_port

_EXPECTED = f"Basic {b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"


class Webhook(Broker):
    """See suite.Broker."""

    protocol: ClassVar[str] = "HTTP"

    def __init__(self, folder: Path) -> None:
        self._files = issue_certificate(folder, HOST)
        self.ca = self._files.ca
        self._ports = (free_port(), free_port())
        self._running: list[tuple[uvicorn.Server, Thread]] = []
        self._queue: queue.Queue[Received] = queue.Queue()

    def target(
        self,
        *,
        contentmode: str = "structured",
        credential: Credential | None = GOOD,
        tls: bool = False,
        seconds: float = 10.0,
        host: str = HOST,
        port: int | None = None,
        **settings: Any,
    ) -> SinkTarget:
        """See suite.Broker."""
        scheme, own = ("https", self._ports[1]) if tls else ("http", self._ports[0])
        uri = f"{scheme}://{host}:{port or own}/events?a=b"
        return SinkTarget("s1", uri, {"method": "POST"} | settings, contentmode, credential, seconds)

    @contextmanager
    def receiving(self) -> Iterator[Webhook]:
        """See suite.Broker."""
        self._queue = queue.Queue()
        yield self

    def take(self, count: int, seconds: float = 60.0) -> list[Received]:
        """See suite.Receiver."""
        found: list[Received] = []
        end = time.monotonic() + seconds
        while len(found) < count:
            try:
                found.append(self._queue.get(timeout=max(end - time.monotonic(), 0.01)))
            except queue.Empty:
                break
        return found

    def start(self) -> None:
        """See suite.Broker."""
        tls = {"ssl_certfile": self._files.certificate, "ssl_keyfile": self._files.key}
        options: tuple[dict[str, Any], ...] = ({}, tls)
        for port, option in zip(self._ports, options, strict=True):
            server = uvicorn.Server(
                uvicorn.Config(self._receive, port=port, log_level="error", lifespan="off", interface="asgi3", **option)
            )
            thread = Thread(target=server.run, daemon=True)
            thread.start()
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.01)
            self._running.append((server, thread))

    def stop(self) -> None:
        """See suite.Broker."""
        for server, thread in self._running:
            server.should_exit = server.force_exit = True
            thread.join(10)
        self._running.clear()

    async def _receive(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        answer = Response(status_code=202)
        if request.headers.get("authorization") != _EXPECTED:
            answer = Response(f"who is {request.headers.get('authorization')}?", 401)
        else:
            event = from_http_event(HTTPMessage(dict(request.headers), await request.body()))
            assert isinstance(event, CloudEvent)
            structured = request.headers["content-type"].startswith("application/cloudevents")
            self._queue.put(Received("structured" if structured else "binary", event))
        await answer(scope, receive, send)
