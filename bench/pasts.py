"""Reading as of moments of the past, compared with reading the present, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from annals.api.registry.open_registry import open_registry
from annals.api.settings.settings import Settings
from annals.commands.store.log import Store
from annals.domain.decisions.commands import WriteMethod, WriteTree
from annals.domain.decisions.world import Context, Decision
from annals.domain.registry.events import EntityCreated, EntityEvent, EntityUpdated
from annals.domain.values import xid as xids
from annals.domain.values.json_text import Json
from annals.projections.entities.apply import EntityProjection
from bench import samples
from bench.figures import Figure, Want
from bench.load import rate
from bench.places import Place, serving

COMMAND: Final = WriteTree("/schemagroups", {}, WriteMethod.POST)
#: Schemas of a group, which come and change together.
EACH: Final = 1000


class What(NamedTuple):
    """What is read, of groups and schemas by number. bound: how many times as long it may take as of then."""

    name: str
    path: str
    bound: float


WHAT: Final = (
    What("GET a Version as of then", "/schemagroups/group{}/schemas/schema{}/versions/1$details", 2),
    What("GET a document as of then", "/schemagroups/group{}/schemas/schema{}/versions/1", 2),
    What("GET 100 schemas as of then", "/schemagroups/group{}/schemas?limit=100", 5),
    What("GET 100 groups as of then", "/schemagroups?limit=100", 5),
)


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """One figure for each kind of answer: everything that is read has changed since the moments asked for."""
    groups = 4 if quick else 250
    with place.fresh() as (database, folder):
        moments = fill(database, groups)
        with serving(database, folder) as served:
            for what in WHAT:
                yield _compared(place, served.url, what, groups, moments, 1 if quick else 2, folder)


def fill(database: str, groups: int) -> list[int]:
    """A registry whose schemas were made, then changed: 4,000 events a group; moments once half of them were made."""
    open_registry(Settings(database=database)).close()
    entities = EntityProjection()
    with closing(Store(database)) as store:
        made = [_appended(store, entities, group, revision=1) for group in range(groups)]
        for group in range(groups):
            _appended(store, entities, group, revision=2)
    return made[groups // 2 - 1 :]


def _appended(store: Store, entities: EntityProjection, group: int, revision: int) -> int:
    """The position after one interaction that makes a group, or changes everything in it."""
    with store.writing() as tx:
        context = tx.context()
        recorded = tx.append(Decision(tuple(_events(group, revision, context)), {}), context, COMMAND)
        entities.apply(tx.connection, recorded.events)
    return recorded.position


def _events(group: int, revision: int, context: Context) -> Iterator[EntityEvent]:
    own = f"/schemagroups/group{group}"
    attributes = {"schemagroupid": f"group{group}", "name": f"take {revision}", "schemascount": EACH}
    yield _event(own, attributes, revision, context)
    for n in range(EACH):
        more = {name: value for name, value in samples.schema(n).items() if name != "schema"}
        version = {"schemaid": f"schema{n}", "versionid": "1", "epoch": revision, **more, "name": f"take {revision}"}
        meta = {"schemaid": f"schema{n}", "epoch": revision, "defaultversionid": "1"}
        xid = f"{own}/schemas/schema{n}"
        yield _event(xid, {**version, "meta": meta, "versionscount": 1}, revision, context)
        yield _event(f"{xid}/versions/1", version, revision, context)


def _event(xid: str, attributes: dict[str, Json], revision: int, context: Context) -> EntityEvent:
    return (EntityUpdated if revision > 1 else EntityCreated)(
        xid=xid,
        type=xids.type_of(xid),
        revision=revision,
        epoch=revision,
        attributes=attributes,
        xregcorrelationid=context.xregcorrelationid,
        time=context.now,
    )


def _compared(
    place: Place, url: str, what: What, groups: int, moments: list[int], seconds: float, folder: Path
) -> Figure:
    """How many times as long an answer about the past takes; the middle of three rounds, which take turns."""
    live = [what.path.format(n % (groups // 2), n % EACH) for n in range(500)]
    then = [f"{path}{'&' if '?' in path else '?'}asof={moments[n % len(moments)]}" for n, path in enumerate(live)]
    rate(url, live, 1, folder)
    rounds = [(rate(url, live, seconds, folder), rate(url, then, seconds, folder)) for _ in range(3)]
    now, past = sorted(rounds, key=lambda pair: pair[0] / pair[1])[1]
    size, measured, floor = f"{groups * EACH * 4:,} events", f"{past:,.0f}/s", f"{now:,.0f}/s"
    return Figure(what.name, place.name, size, measured, floor, now / past, Want.AT_MOST, what.bound, " x")
