"""Replication: from a commit to a replica's reader by each dialect, catching up, compared with a rebuild, readers."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from itertools import count
from statistics import median
from threading import Event, Thread
from typing import Final

from annals.api.registry.open_registry import open_registry
from annals.api.settings.settings import Settings
from annals.commands.store.log import Store
from annals.domain.replication.link import EVENTS, KAFKA, LOG, PULL, PUSH
from annals.projections.entities.rebuild import rebuild
from annals.projections.replication.link_workers import LINK_WORKERS
from bench import feeds, followers
from bench.figures import Figure, Want
from bench.places import Place
from bench.rebuilding import append
from tests.support.brokers.kafka import Kafka, kafka
from tests.support.polling import until
from tests.support.registries.restarted import SEPARATE_PROCESS, TOKEN, Registry
from tests.support.serving import environment

#: Readers whose cost is measured, clients that write meanwhile, and how often both is turned on and off.
READERS: Final = 10
CLIENTS: Final = 8
TURNS: Final = 4
#: Seconds that a replica may take, to be seen as it begins and as it ends.
PATIENCE: Final = 900.0
#: Seconds between looks at a replica that catches up.
LOOK: Final = 0.2
_ADMIN: Final = {"authorization": f"Bearer {TOKEN}"}
_TOPIC: Final = "bench"


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """Milliseconds to a replica by each dialect, a ratio of catching up, and a share of the write rate."""
    for (dialect, mode), connect in _CONNECTIONS.items():
        if (dialect, mode) in LINK_WORKERS:
            yield _lag(place, "Kafka" if dialect == KAFKA else mode, connect, 2 if quick else 20)
    yield _caught_up(place, 10_000 if quick else 100_000)
    yield _cost(place, 2 if quick else 8)


@contextmanager
def _two(place: Place) -> Iterator[tuple[Registry, Registry]]:
    """A primary and a replica that have stores and do not run yet."""
    with place.fresh() as (first, folder), place.fresh() as (second, other_folder), ExitStack() as stack:
        primary, replica = (
            Registry(folder / "primary", first, SEPARATE_PROCESS),
            Registry(other_folder / "replica", second, SEPARATE_PROCESS),
        )
        for registry in (primary, replica):
            stack.callback(registry.close)
            open_registry(Settings(database=registry.database)).close()
        yield primary, replica


# --- from a commit to a replica's reader -------------------------------------------------------------------------


@contextmanager
def _pull(primary: Registry, replica: Registry, **members: str) -> Iterator[None]:
    replica.link("primary", primary.url, **members)
    yield


@contextmanager
def _events(primary: Registry, replica: Registry) -> Iterator[None]:
    with _pull(primary, replica, mode=EVENTS):
        yield


@contextmanager
def _push(primary: Registry, replica: Registry) -> Iterator[None]:
    replica.link("primary", primary.url, mode="receive")
    primary.link("replica", replica.url, mode=PUSH, remote="primary")
    yield


@contextmanager
def _kafka(primary: Registry, replica: Registry) -> Iterator[None]:
    with kafka() as broker, _publishing(primary, broker):
        url = f"kafka://{broker.own()}/{_TOPIC}.log"
        replica.done("PUT", "/-/links/primary", {"url": url, "dialect": KAFKA})
        yield


@contextmanager
def _publishing(primary: Registry, broker: Kafka) -> Iterator[None]:
    options = ("--kafka", broker.own(), "--prefix", _TOPIC, "--partitions", "3", "--documents")
    command = [sys.executable, "-m", "annals", "publish", *options]
    given = environment(ANNALS_DATABASE=primary.database)
    process = subprocess.Popen(command, cwd=primary.home, env=given, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


_Connect = Callable[[Registry, Registry], AbstractContextManager[None]]
_CONNECTIONS: Final[Mapping[tuple[str, str], _Connect]] = {
    (LOG, PULL): _pull,
    (LOG, PUSH): _push,
    (LOG, EVENTS): _events,
    (KAFKA, PULL): _kafka,
}


def _lag(place: Place, name: str, connect: _Connect, seconds: int) -> Figure:
    """From the answer to a write, which comes after its commit, to the event on a stream of the replica."""
    with _two(place) as (primary, replica):
        primary.start()
        replica.start()
        with connect(primary, replica):
            primary.done("PUT", "/schemagroups/first", {})
            until(lambda: replica.request("GET", "/schemagroups/first").is_success, PATIENCE)
            there, here = _Watch(replica.url), _Watch(primary.url)
            times = feeds.write(primary.url, seconds, _ADMIN)
            far, near = there.after(times), here.after(times)
    return Figure(
        f"From a commit to a replica's stream by {name}, p99",
        place.name,
        f"{len(times):,} writes, {feeds.RATE}/s",
        f"{_percentile(far, 99):.1f} ms, p50 {median(far):.1f} ms",
        f"own stream {_percentile(near, 99):.1f} ms, p50 {median(near):.1f} ms",
        _percentile(far, 99),
        Want.AT_MOST,
        None,
        " ms",
    )


class _Watch:
    """A stream of a registry, watched from a thread of its own."""

    def __init__(self, url: str) -> None:
        self._seen: dict[str, float] = {}
        connected = Event()
        self._thread = Thread(target=feeds.watch, args=(url, self._seen, connected, _ADMIN), daemon=True)
        self._thread.start()
        connected.wait()

    def after(self, times: Mapping[str, float]) -> list[float]:
        """Milliseconds from some moments until each showed, sorted, once all did."""
        self._thread.join(PATIENCE)
        return sorted(1000 * (self._seen[name] - done) for name, done in times.items())


def _percentile(taken: list[float], percent: int) -> float:
    return taken[percent * (len(taken) - 1) // 100]


# --- catching up -------------------------------------------------------------------------------------------------


def _caught_up(place: Place, events: int) -> Figure:
    """A replica from position 0, from the creation of its link until all is durable there, compared with a rebuild."""
    with _two(place) as (primary, replica):
        with closing(Store(primary.database)) as store:
            append(store, events)
            end = store.log_end().position
            floor = rebuild(store).seconds
        primary.start()
        replica.start()
        began = time.perf_counter()
        replica.link("primary", primary.url)
        while replica.status("primary")["position"] < end:
            time.sleep(LOOK)  # who asks all the time is what is measured
        seconds = time.perf_counter() - began
    return Figure(
        "Catching up from position 0 by pull",
        place.name,
        f"{events:,} events",
        f"{events / seconds:,.0f}/s",
        f"{events / floor:,.0f}/s rebuilt",
        floor / seconds,
        Want.AT_LEAST,
        0.6,
    )


# --- what readers cost -------------------------------------------------------------------------------------------


def _cost(place: Place, seconds: int) -> Figure:
    """The share of its write rate that a registry loses to readers of its log, who take all and store nothing."""
    numbers = count()
    with _two(place) as (primary, _):
        primary.start()
        _rate(primary, 1, numbers)  # from here on, caches are warm
        alone, followed = [], []
        for _ in range(TURNS):  # in turns, because the machine's own pace changes within seconds
            alone.append(_rate(primary, seconds, numbers))
            with _followers(primary):
                followed.append(_rate(primary, seconds, numbers))
    return Figure(
        f"Writes lost to {READERS} readers of the log, in one process that stores nothing",
        place.name,
        f"{CLIENTS} clients, {TURNS} x {seconds} s",
        f"{median(followed):,.0f}/s",
        f"{median(alone):,.0f}/s without",
        100 * (1 - median(followed) / median(alone)),
        Want.AT_MOST,
        10,
        " %",
    )


@contextmanager
def _followers(primary: Registry) -> Iterator[None]:
    end = str(primary.head()["position"])  # taking in what is there already is another matter
    command = [sys.executable, "-m", "bench.followers", primary.url, str(READERS), end]
    given = environment(**{followers.TOKEN: TOKEN})
    with subprocess.Popen(command, env=given, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"following\n"
            yield
        finally:
            process.kill()


def _rate(primary: Registry, seconds: float, numbers: Iterator[int]) -> float:
    """New Groups a second from several clients at once."""
    ends = time.perf_counter() + seconds

    def client() -> int:
        made = 0
        with primary.client(TOKEN) as own:
            while time.perf_counter() < ends:
                own.put(f"/schemagroups/w{next(numbers)}", content=b"{}").raise_for_status()
                made += 1
        return made

    began = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as clients:
        made = sum(each.result() for each in [clients.submit(client) for _ in range(CLIENTS)])
    return made / (time.perf_counter() - began)
