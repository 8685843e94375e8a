"""Feeds over HTTP: all events, compared with reading the log; from a commit to a reader's stream; bytes."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import Final
from urllib.parse import urlsplit

import httpx

from annals.api.feeds.formats import EVENT_STREAM, NDJSON
from annals.api.registry.open_registry import open_registry
from annals.api.settings.settings import Settings
from annals.commands.store.database import sql
from annals.commands.store.log import Store
from annals.domain.values.json_text import dumps, loads
from annals.projections.entities.view_pool import ViewPool
from bench import samples
from bench.figures import Figure, Want
from bench.places import Place, serving
from bench.rebuilding import append

#: The fastest of so many readings.
TURNS: Final = 3
#: Writes a second while a stream is watched.
RATE: Final = 100
#: The Group that ends the watch.
LAST: Final = "/schemagroups/last"
#: Headers of a caller without a name.
NOBODY: Final[Mapping[str, str]] = {}
#: Documents of the wild that the tests have.
DOCUMENTS: Final = Path(__file__).parents[1] / "tests" / "data"


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """Events a second, milliseconds to a stream, and bytes of log for an event."""
    yield from _from_the_beginning(place, 10_000 if quick else 100_000)
    yield from _to_a_stream(place, 2 if quick else 20)
    yield _bytes(place, 100 if quick else 1000)


def _from_the_beginning(place: Place, events: int) -> Iterator[Figure]:
    with place.fresh() as (database, folder):
        open_registry(Settings(database=database)).close()
        with closing(Store(database)) as store:
            append(store, events)
        with serving(database, folder) as served:
            for path in ("/-/events", "/-/log"):
                # In turns, because the machine's own pace changes within seconds.
                turns = [(_rate(served.url + path), _floor(database)) for _ in range(TURNS)]
                read, size = max(rate for rate, _ in turns)
                floor = max(floor for _, floor in turns)
                yield Figure(
                    f"{path} from position 0, as lines",
                    place.name,
                    f"{events:,} events, {size / (1 << 20):.0f} MB",
                    f"{read:,.0f}/s",
                    f"{floor:,.0f}/s read",
                    read,
                    Want.AT_LEAST,
                    50_000,
                    "/s",
                )


def _rate(url: str) -> tuple[float, int]:
    """Lines a second, and all bytes of an answer, over a plain socket: a client library would be what is measured."""
    parts = urlsplit(url)
    request = f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: {NDJSON}\r\nConnection: close\r\n\r\n"
    buffer, lines, size, began = bytearray(1 << 18), 0, 0, time.perf_counter()
    with socket.create_connection((parts.hostname or "", parts.port or 80)) as connection:
        connection.sendall(request.encode())
        while got := connection.recv_into(buffer):
            lines += buffer.count(b"}\n", 0, got)
            size += got
    return lines / (time.perf_counter() - began), size


def _floor(database: str) -> float:
    """Events a second that only reading the log gives."""
    with closing(ViewPool(database)) as readers, readers.view() as view:
        last, began = view.log.head().last, time.perf_counter()
        for _ in view.log.events(1, last):
            pass
        return last / (time.perf_counter() - began)


def _to_a_stream(place: Place, seconds: int) -> Iterator[Figure]:
    """From the answer to a write, which comes after its commit, to the event on a stream."""
    with place.fresh() as (database, folder), serving(database, folder) as served:
        seen, connected = dict[str, float](), Event()
        watching = Thread(target=watch, args=(served.url, seen, connected), daemon=True)
        watching.start()
        connected.wait()
        times = write(served.url, seconds)
        watching.join(5)
    taken = sorted(1000 * (seen[name] - done) for name, done in times.items())
    p50, p99 = median(taken), taken[int(0.99 * (len(taken) - 1))]
    yield Figure(
        "From a commit to a stream, p99",
        place.name,
        f"{len(taken):,} writes, {len(taken) / seconds:.0f}/s",
        f"{p99:.1f} ms",
        f"p50 {p50:.1f} ms",
        p99,
        Want.AT_MOST,
        50,
        " ms",
    )


def watch(url: str, seen: dict[str, float], connected: Event, headers: Mapping[str, str] = NOBODY) -> None:
    """Notes when each Group shows on a stream, until the last one does. headers: of the request."""
    query, own = "type=io.xregistry.group.created", {**headers, "accept": EVENT_STREAM}
    with httpx.stream("GET", f"{url}/-/events?{query}", headers=own, timeout=60) as answer:
        for line in answer.iter_lines():
            connected.set()
            if line.startswith("data: "):
                subject = loads(line[6:].encode())["subject"]
                if subject == LAST:
                    return
                seen[subject] = time.perf_counter()


def write(url: str, seconds: int, headers: Mapping[str, str] = NOBODY) -> dict[str, float]:
    """When each of so many new Groups was durable, spread evenly over the time. headers: of each request."""
    began = time.perf_counter()
    with httpx.Client(headers=headers, timeout=60) as client, ThreadPoolExecutor(8) as clients:

        def one(number: int) -> tuple[str, float]:
            time.sleep(max(0.0, began + number / RATE - time.perf_counter()))
            xid = f"/schemagroups/g{number}"
            client.put(url + xid, content=b"{}").raise_for_status()
            return xid, time.perf_counter()

        times = dict(clients.map(one, range(RATE * seconds)))
        client.put(url + LAST, content=b"{}").raise_for_status()
        return times


def _bytes(place: Place, schemas: int) -> Figure:
    """Bytes of log that an event takes, compared with those of the documents that the clients sent."""
    with place.fresh() as (database, folder), serving(database, folder) as served, closing(Store(database)) as store:
        with httpx.Client(base_url=served.url, timeout=600) as client:
            client.post("/schemagroups", content=samples.body(1, schemas)).raise_for_status()
            for number, found in enumerate(sorted(DOCUMENTS.rglob("*.json"))):
                body = dumps({"format": "JsonSchema/draft-07", "schema": loads(found.read_bytes())})
                client.put(f"/schemagroups/wild/schemas/s{number}$details", content=body).raise_for_status()
        with store.engine.connect() as connection:
            states = "SELECT count(*), sum(length(state)) FROM log WHERE position > 3"
            events, size = sql.run(connection, states).fetchone()
            documents = sql.scalar(connection, "SELECT sum(length(bytes)) FROM document", ())
    return Figure(
        "Bytes of log for an event",
        place.name,
        f"{events:,} events of {schemas:,} schemas",
        f"{size / events:,.0f} bytes",
        f"documents {documents / events:,.0f} bytes",
        size / events,
        Want.AT_MOST,
        300,
        " bytes",
    )
