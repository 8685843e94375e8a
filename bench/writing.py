"""Small writes through the command bus, one after the other and from 16 clients."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Final

from sqlalchemy import event

from annals.api.registry.open_registry import Registry, open_registry
from annals.api.settings.settings import Settings
from annals.commands.command_bus import CommandBus
from annals.commands.store.log import Store
from annals.domain.decisions.commands import WriteMethod, WriteTree
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.query import ViewPool
from bench import samples
from bench.bare import added, count, rows_of, seconds_by_hand
from bench.figures import Figure, Want
from bench.places import Place

CLIENTS: Final = 16


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """Sequential writes beside the same rows by hand; then how many share a commit, and what durability costs them."""
    writes = 200 if quick else 2000
    yield _sequential(place, writes)
    yield from _together(place, writes)


@contextmanager
def _registry(place: Place) -> Iterator[Registry]:
    with place.fresh() as (database, _), closing(open_registry(Settings(database=database))) as registry:
        _write(registry.command_bus, 999_998)
        yield registry


def _write(command_bus: CommandBus, number: int) -> None:
    xid = f"/schemagroups/group0/schemas/schema{number % 1_000_000}"

    def build_command() -> WriteTree:
        return WriteTree(xid, samples.schema(number), WriteMethod.PUT)

    command_bus.submit(build_command(), rebuild=build_command).result()


def _sequential(place: Place, writes: int) -> Figure:
    with _registry(place) as registry:
        before, began = rows_of(registry.store), time.perf_counter()
        for number in range(writes):
            _write(registry.command_bus, number)
        seconds = time.perf_counter() - began
        rows = added(before, rows_of(registry.store))
    with place.fresh() as (database, _), closing(open_registry(Settings(database=database))) as empty:
        floor = seconds_by_hand(empty.store, rows, writes)
    size = f"{writes:,} writes, {count(rows) / writes:.0f} rows each"
    return Figure(
        "Small writes, one by one",
        place.name,
        size,
        f"{writes / seconds:,.0f}/s",
        f"{writes / floor:,.0f}/s",
        seconds / floor,
        Want.AT_MOST,
        3,
        " x",
    )


def _together(place: Place, writes: int) -> Iterator[Figure]:
    with _registry(place) as registry:
        durable, commits = _clients(registry.command_bus, registry.store, writes)
        database = registry.store.engine.url.render_as_string(hide_password=False)
        registry.command_bus.close()
        loose = Store(database, durable=False)
        command_bus = CommandBus(loose, [EntityProjection()])
        with closing(loose), closing(command_bus), closing(ViewPool(database)):
            free, _ = _clients(command_bus, loose, writes, start=writes)
    size = f"{writes:,} writes"
    yield Figure(
        f"Small writes from {CLIENTS} clients: commits a write",
        place.name,
        size,
        f"{commits:,}",
        f"{writes:,}",
        commits / writes,
        Want.AT_MOST,
        0.25,
    )
    yield Figure(
        f"Small writes from {CLIENTS} clients, durability on and off",
        place.name,
        size,
        f"{durable:,.0f}/s",
        f"{free:,.0f}/s",
        100 * durable / free,
        Want.AT_LEAST,
        60,
        " %",
    )


def _clients(command_bus: CommandBus, store: Store, writes: int, start: int = 0) -> tuple[float, int]:
    """Writes a second, and how many commits they took."""
    commits: list[object] = []
    event.listen(store.engine, "commit", commits.append)
    began = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(lambda number: _write(command_bus, number), range(start, start + writes)))
    return writes / (time.perf_counter() - began), len(commits)
