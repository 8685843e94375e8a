"""Events and targets for tests of sinks over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import uvloop
from cloudevents.core.v1.event import CloudEvent

from annals.projections.outgoing.destination_guard import DestinationGuard
from annals.projections.outgoing.resolver import Resolver
from annals.projections.subscriptions.contract import Credential, Outcome, SinkTarget
from annals.projections.subscriptions.sinks.http.sink import open_http

T = TypeVar("T")

#: Permits the receivers of tests.
LOCAL = DestinationGuard("127.0.0.1,[::1]", allows_plaintext=True)
TIME = datetime(2026, 11, 21, 20, 30, 15, 120000, UTC)


def event(id: str = "1", data: Any = None, **attributes: Any) -> CloudEvent:
    """An event; with data its `datacontenttype` is JSON unless another one is given."""
    known = {
        "specversion": "1.0",
        "id": id,
        "source": "https://registry.example.com",
        "type": "io.xregistry.version.created",
        "subject": "/schemagroups/g/schemas/s/versions/1",
        "time": TIME,
    }
    contenttype = {} if data is None else {"datacontenttype": "application/json"}
    return CloudEvent(known | contenttype | attributes, data)


def target(
    uri: str,
    contentmode: str = "structured",
    *,
    credential: Credential | None = None,
    seconds: float = 10.0,
    origin: str = "",
    key: bytes | None = None,
    **settings: Any,
) -> SinkTarget:
    return SinkTarget("s1", uri, {"method": "POST"} | settings, contentmode, credential, seconds, origin, key)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in an event loop like that of deliveries."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def send_batches(to: SinkTarget, *batches: Sequence[CloudEvent], resolver: Resolver = LOCAL) -> list[Outcome]:
    """The outcomes of batches that one sink sends one after the other."""

    async def work() -> list[Outcome]:
        sink = open_http(to, resolver)
        try:
            return [await sink.send(events) for events in batches]
        finally:
            await sink.close()

    return run(work())
