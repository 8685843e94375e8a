"""Rebuilding the read model from the log, compared with reading the log, and how its cost grows with the events."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from annals.api.registry.open_registry import open_registry
from annals.api.settings.settings import Settings
from annals.commands.store.log import Store
from annals.domain.decisions.commands import WriteMethod, WriteTree
from annals.domain.decisions.world import Context, Decision
from annals.domain.registry.events import EntityCreated, EntityEvent, EntityUpdated
from annals.projections.entities.rebuild import rebuild
from bench import samples
from bench.figures import Figure, Want
from bench.places import Place

#: Events that one appended interaction brings.
BATCH: Final = 2000
COMMAND: Final = WriteTree("/schemagroups", {}, WriteMethod.POST)


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """Events a second at each size, and the cost per event of the largest compared with that of the smallest."""
    costs = []
    for events in (2000, 20_000) if quick else (10_000, 100_000, 1_000_000):
        seconds, floor = _rebuilt(place, events)
        costs.append(seconds / events)
        measured, read = f"{events / seconds:,.0f}/s", f"{events / floor:,.0f}/s read"
        growth = costs[-1] / costs[0]
        yield Figure("Rebuild", place.name, f"{events:,} events", measured, read, growth, Want.AT_MOST, 1.5, " x")


def _rebuilt(place: Place, events: int) -> tuple[float, float]:
    """Seconds of a rebuild, and of only reading the log as it does."""
    with place.fresh() as (database, _):
        open_registry(Settings(database=database)).close()
        with closing(Store(database)) as store:
            append(store, events)
            began = time.perf_counter()
            rebuild(store)
            seconds = time.perf_counter() - began
            return seconds, _read(store)


def _read(store: Store) -> float:
    began, after = time.perf_counter(), 0
    while batch := store.events(after, 1000):
        after = batch[-1][0]
    return time.perf_counter() - began


def append(store: Store, events: int) -> None:
    """A log of so many events, a tenth of them updates, without the decisions that would lead to them."""
    for start in range(0, events, BATCH):
        numbers = range(start, start + BATCH)
        with store.writing() as tx:
            for some in ([n for n in numbers if not _again(n)], [n for n in numbers if _again(n)]):
                context = tx.context()
                decided = tuple(_event(n, context) for n in some)
                tx.append(Decision(decided, {}), context, COMMAND)


def _again(number: int) -> bool:
    """Whether an event updates the entity of the event numbered before it."""
    return number % 10 == 9


def _event(number: int, context: Context) -> EntityEvent:
    again = _again(number)
    kind = EntityUpdated if again else EntityCreated
    name = number - 1 if again else number
    xid = f"/schemagroups/group{name // 1000}/schemas/schema{name}/versions/1"
    attributes = {key: value for key, value in samples.schema(name).items() if key != "schema"}
    return kind(
        xid=xid,
        type="schemagroups.schemas.versions",
        revision=2 if again else 1,
        epoch=2 if again else 1,
        attributes={"schemaid": f"schema{name}", "versionid": "1", **attributes},
        changed=("name",) if again else (),
        xregcorrelationid=context.xregcorrelationid,
        time=context.now,
    )
