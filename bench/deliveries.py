"""Deliveries: from a commit to the receiver, how many a second, and what dead sinks and much matching do to others.

SUB-806 asks for the figure of dead sinks.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any, Final

import httpx
from cloudevents.core.formats.json import JSONFormat

from annals.projections.database.connections import connect
from annals.projections.log.reader import Log
from annals.projections.outgoing.destination_guard import DestinationGuard
from annals.projections.subscriptions.event_messages import EventMessageReader
from annals.projections.subscriptions.ports import DeliveryPorts
from annals.projections.subscriptions.service import DeliveryService
from annals.projections.subscriptions.sinks.http import sink as _http
from annals.projections.subscriptions.workers.deliverer import WRITE_DELAY_SECONDS
from bench.figures import Figure, Want
from bench.places import Place
from bench.receiver import Receiver, receiving
from tests.support.delivery_rig import FAMILIES, Rig

assert _http  # it registers itself
#: Events a second of a steady stream.
RATE: Final = 100
#: Requests that the bare client has under way; what suits it best counts.
TOGETHER: Final = (1, 8, 32)


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """Figures of one kind of store."""
    yield _latency(place, 2 if quick else 20)
    yield from _throughput(place, 500 if quick else 10_000)
    yield _dead(place, *((100, 1, 2) if quick else (1_000, 10, 20)))
    yield _loop_lateness(place, *((100, 500) if quick else (1_000, 20_000)))


@contextmanager
def _delivering(rig: Rig, write: float = WRITE_DELAY_SECONDS) -> Iterator[DeliveryService]:
    """Deliveries of a registry, notified of its commits as by the command bus."""
    ports = DeliveryPorts(resolver=DestinationGuard(allow_list="127.0.0.1", allows_plaintext=True), policy="off")
    service = DeliveryService(rig.url, ports, write_delay=write)
    service.start()
    rig.services.append(service)
    try:
        yield service
    finally:
        rig.services.remove(service)
        service.stop()


@contextmanager
def _registry(place: Place) -> Iterator[tuple[Rig, Receiver]]:
    with ExitStack() as stack:
        url, _ = stack.enter_context(place.fresh())
        receiver = stack.enter_context(receiving())
        rig = Rig(url)
        stack.callback(rig.close)
        yield rig, receiver


def _steadily(rig: Rig, seconds: int, rate: int = RATE) -> dict[str, float]:
    """When each of so many new Groups was committed, spread evenly over the time."""
    began, times = time.perf_counter(), {}
    for number in range(rate * seconds):
        time.sleep(max(0.0, began + number / rate - time.perf_counter()))
        rig.record((f"/dirs/g{number}", {"n": number}))
        times[f"/dirs/g{number}"] = time.perf_counter()
    return times


def _latency(place: Place, seconds: int) -> Figure:
    with _registry(place) as (rig, receiver):
        rig.subscribe(sink=f"{receiver.url}/s")
        with _delivering(rig):
            rig.groups("warm")
            receiver.wait(1)
            times = _steadily(rig, seconds)
            taken = _taken(times, receiver)
        alone = _taken(_posted(receiver, max(1, seconds // 4)), receiver)
    p99, floor = _p99(taken), f"{_p99(alone):.1f} ms httpx alone, to the same receiver"
    size = f"{len(taken):,} events, {RATE}/s, p50 {median(taken):.1f} ms"
    return Figure(
        "From a commit to an HTTP receiver, p99", place.name, size, f"{p99:.1f} ms", floor, p99,
        Want.AT_MOST, 100, " ms",
    )  # fmt: skip


def _taken(times: dict[str, float], receiver: Receiver) -> list[float]:
    """Milliseconds from each of some times to the request about it."""
    return [1000 * (at - times[subject]) for _, subject, at in receiver.wait(len(times))]


def _p99(taken: list[float]) -> float:
    return sorted(taken)[int(0.99 * (len(taken) - 1))]


def _posted(receiver: Receiver, seconds: int) -> dict[str, float]:
    """When a bare client began each of its requests, as many a second: what the machine itself adds at this time."""
    began, times = time.perf_counter(), {}
    with httpx.Client() as client:
        for number in range(RATE * seconds):
            time.sleep(max(0.0, began + number / RATE - time.perf_counter()))
            times[f"/alone/{number}"] = time.perf_counter()
            client.post(f"{receiver.url}/s", content=f'{{"subject": "/alone/{number}"}}')
    return times


def _throughput(place: Place, events: int) -> Iterator[Figure]:
    """Events a second of a backlog, compared with a bare client, and with deliveries that store nothing."""
    with _registry(place) as (rig, receiver):
        rig.subscribe("kept", sink=f"{receiver.url}/s")
        _backlog(rig, events)
        bare = max(asyncio.run(_bare(rig, receiver, events // 5, together)) for together in TOGETHER)
        kept = _rate(rig, receiver, events, WRITE_DELAY_SECONDS)
        rig.unsubscribe("kept")
        rig.subscribe("lost", sink=f"{receiver.url}/s", start="earliest")
        lost = _rate(rig, receiver, events, 3600.0)
    size = f"{events:,} events"
    yield Figure(
        "Events to one HTTP receiver", place.name, size, f"{kept:,.0f}/s", f"{bare:,.0f}/s httpx alone", kept / bare,
        Want.AT_LEAST, 0.5, " x",
    )  # fmt: skip
    yield Figure(
        "The same, with their state kept", place.name, size, f"{kept:,.0f}/s", f"{lost:,.0f}/s without", kept / lost,
        Want.AT_LEAST, 0.85, " x",
    )  # fmt: skip


def _backlog(rig: Rig, events: int) -> None:
    for start in range(0, events, 250):
        rig.record(*((f"/dirs/g{number}", {"n": 1}) for number in range(start, min(start + 250, events))))


def _rate(rig: Rig, receiver: Receiver, events: int, write: float) -> float:
    with _delivering(rig, write):
        seen = receiver.wait(events)
    return _a_second(seen)


def _a_second(seen: list[Any]) -> float:
    times: list[float] = [at for _, _, at in seen]
    return (len(times) - 1) / (max(times) - min(times))


async def _bare(rig: Rig, receiver: Receiver, events: int, together: int) -> float:
    """Requests a second of a client that only sends the same bodies."""
    reader = connect(rig.url)
    _, messages = EventMessageReader(lambda: Log(reader), FAMILIES).read_chunk(1, 100)
    reader.close()
    bodies = [JSONFormat().write(each.cloudevent()) for each in messages]
    left = iter(range(events))

    async def some(client: httpx.AsyncClient) -> None:
        headers = {"content-type": "application/cloudevents+json; charset=UTF-8"}
        for number in left:
            await client.post(f"{receiver.url}/s", content=bodies[number % len(bodies)], headers=headers)

    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=together)) as client:
        await asyncio.gather(*(some(client) for _ in range(together)))
    return _a_second(receiver.arrivals())


def _dead(place: Place, count: int, dead: int, seconds: int) -> Figure:
    """Subscriptions of which some have sinks that accept connections and never answer."""
    with _registry(place) as (rig, receiver), socket.create_server(("127.0.0.1", 0), backlog=1024) as silent:
        for number in range(count):
            port = silent.getsockname()[1] if number < dead else 0
            sink = f"http://127.0.0.1:{port}/" if port else f"{receiver.url}/s"
            rig.subscribe(f"s{number}", sink=sink, filters=_some(number, dead))
        with _delivering(rig) as service:
            _settled(service, count)
            times = _steadily(rig, seconds, 20)
            seen = receiver.wait(sum(_wanted(subject, count, dead) for subject in times))
    taken = sorted(1000 * (at - times[subject]) for _, subject, at in seen)
    p95 = taken[int(0.95 * (len(taken) - 1))]
    size = f"{count:,} subscriptions, {dead} dead sinks, {len(taken) / seconds:,.0f} deliveries/s"
    return Figure(
        "The others, with dead sinks, p95", place.name, size, f"{p95:.0f} ms", f"p50 {median(taken):.0f} ms", p95,
        Want.AT_MOST, 1000, " ms",
    )  # fmt: skip


def _some(number: int, dead: int) -> list[dict[str, Any]]:
    """Dead sinks get everything, the others what is about one last digit in a hundred."""
    return [] if number < dead else [{"suffix": {"subject": f"{number % 100:02}"}}]


def _wanted(subject: str, count: int, dead: int) -> int:
    return sum(subject.endswith(f"{number % 100:02}") for number in range(dead, count))


def _settled(service: DeliveryService, count: int) -> None:
    while len(service.lags()) < count:
        time.sleep(0.05)
    time.sleep(0.5)


def _loop_lateness(place: Place, count: int, events: int) -> Figure:
    """How late a loop in another thread is, as a server's is, while a long log is matched for many."""
    with _registry(place) as (rig, _):
        rig.groups("first")
        for number in range(count):
            filter = {"sql": f"subject LIKE '/nowhere/{number}%' AND type LIKE '%.deleted'"}
            rig.subscribe(f"s{number}", sink="http://127.0.0.1:9/", filters=[filter], start="earliest")
        _backlog(rig, events)
        alone = asyncio.run(_late(lambda: False, 2.0))
        with _delivering(rig) as service:
            late = asyncio.run(_late(lambda: bool(service.lags()) and not any(lag for _, lag in service.lags()), 60.0))
    size = f"{events:,} events, {count:,} subscriptions"
    return Figure(
        "A server's loop during matching, late by p99", place.name, size, f"{late:.1f} ms", f"{alone:.1f} ms alone",
        late, Want.AT_MOST, 25, " ms",
    )  # fmt: skip


async def _late(done: Any, seconds: float) -> float:
    """Milliseconds by which waits of one were late, p99, until something is done or the time is up."""
    until, late = time.perf_counter() + seconds, []
    while not done() and time.perf_counter() < until:
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        late.append(1000 * (time.perf_counter() - began) - 1)
    return _p99(late) if late else 0.0
