"""Published Versions are the same wherever they are read, whatever is written through either API.

The oracle follows streams by itself: a Version is live, retained after it was pruned, or gone.
"""

from __future__ import annotations

from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.log import Store
from annals.commands.store.write_transaction import Recorded
from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from annals.domain.compat.legacy_apis import legacy_api_of, version_number
from annals.domain.decisions.commands import (
    Command,
    CreateRegistry,
    DeleteEntities,
    ReplaceModel,
    Restore,
    WriteMethod,
    WriteTree,
)
from annals.domain.errors.problems import Problem
from annals.domain.registry.events import SALT, EntityDeleted, EntityEvent
from annals.domain.values import xid as xids
from annals.projections.compat.versions import CompatVersions
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.publications import SqlPublications
from annals.projections.entities.rebuild import rebuild
from annals.projections.entities.rows import publication_row
from annals.projections.entities.tables import tables
from annals.projections.entities.verify.verify_history import verify_history
from annals.projections.entities.view import View
from annals.projections.entities.view_pool import ViewPool
from tests.support.compat_commands import URL, C, G, M, S, delete, post, put_group, source
from tests.support.examples import examples
from tests.support.read_model import read_model_rows
from tests.support.registries.memory import START, MemoryRegistry
from tests.support.registries.memory_world import MemoryPublications

DEFINITIONS = (S, M)
#: Ids of Versions: numbers, one that resembles a number, and names.
VERSIONS = ("1", "2", "3", "7", "02", "a", "b")


@dataclass
class DefinitionState:
    """A definition by its events. numbers: of live and retained Versions by versionid; owners: versionids by number."""

    numbers: dict[str, int] = field(default_factory=dict)
    living: set[str] = field(default_factory=set)
    owners: dict[int, str] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)


def followed(events: list[tuple[int, EntityEvent]]) -> dict[str, DefinitionState]:
    """Each definition after its events. Asserts that a number has one owner in a definition's life (LEG-210)."""
    definitions: dict[str, DefinitionState] = {}
    for position, event in events:
        if legacy_api_of(event.xid) is None or event.type.count(".") == 0:
            continue
        if event.type.count(".") == 1:
            if isinstance(event, EntityDeleted):
                definitions[event.xid].owners.clear()
            definitions.setdefault(event.xid, DefinitionState())
            continue
        definition, _, id = event.xid.rpartition("/versions/")
        one = definitions.setdefault(definition, DefinitionState())
        if not isinstance(event, EntityDeleted):
            number = version_number(id, event.private)
            assert number and one.owners.setdefault(number, id) == id, f"{event.xid} took {number}"
            assert id not in one.living or one.numbers[id] == number, f"{event.xid} changed {one.numbers[id]}"
            one.numbers[id], one.rows[id] = number, position
            one.living.add(id)
        elif event.reason == "pruned":
            one.living.discard(id)
        else:
            assert event.private.get("number", version_number(id, {})) == one.numbers.pop(id)
            one.living.discard(id)
    return definitions


_IDS = st.sampled_from(VERSIONS)
_CONTENTS = st.sampled_from((b"a one", b"a two", b"a three"))
_NAMES = st.sampled_from((None, None, None, "urn:x:1", "urn:x:2", "versions/1", f"{G}/schemas/s/versions/2"))
_AUTHORITIES = st.sampled_from((None, None, "urn:example", "https://other.example/"))
_LIMITS = st.sampled_from((0, 1, 1, 3))


def _version(definition: str, text: str) -> dict[str, Any]:
    if definition == S:
        return {"format": "Text/1", "schema": text, "contenttype": "text/plain"}
    return {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "a"}}, "name": text}


def _steps(xid: str) -> st.SearchStrategy[Command]:
    """Commands on a definition, over either API."""
    group = xids.parent(xid) or "/"

    def put(id: str, text: str) -> Command:
        return WriteTree(f"{xid}/versions/{id}", _version(xid, text), WriteMethod.PUT)

    def add(ids: list[str]) -> Command:
        return WriteTree(f"{xid}/versions", {id: _version(xid, id) for id in ids}, WriteMethod.POST)

    posts = (
        st.builds(post, st.just(xid), _CONTENTS),
        st.builds(post, st.just(xid), _CONTENTS, description=_IDS, id=_NAMES, authority=_AUTHORITIES),
    )
    places = ("/", group, xid, xid, *(f"{xid}/versions/{id}" for id in "123a"))
    return st.one_of(
        *posts * 2,
        st.builds(delete, st.just(xid), st.integers(1, 9)),
        st.builds(delete, st.just(xid), st.integers(1, 3)),
        st.builds(delete, st.sampled_from((xid, xid, group, f"{group}/{xids.segments(xid)[2]}"))),
        st.builds(put, _IDS, st.sampled_from("xy")),
        st.builds(put, _IDS, st.sampled_from("xy")),
        st.builds(add, st.lists(_IDS, min_size=1, max_size=3, unique=True)),
        st.builds(lambda text: WriteTree(xid, _version(xid, text), WriteMethod.POST), st.sampled_from("xy")),
        st.builds(lambda id: DeleteEntities(f"{xid}/versions/{id}"), _IDS),
        st.builds(DeleteEntities, st.sampled_from((xid, xid, group))),
        st.builds(
            lambda to: WriteTree(f"{xid}/meta", {"xref": to}, WriteMethod.PUT), st.sampled_from((f"{xid}2", None))
        ),
        st.builds(lambda most: ReplaceModel(source(most)), _LIMITS),
        *[st.builds(Restore, st.sampled_from(places), st.integers(6, 40))] * 3,
    )


def _history(xid: str) -> st.SearchStrategy[list[Command]]:
    start: list[Command] = [
        put_group(G, "Text/1"),
        put_group(C, "CloudEvents"),
        *(post(xid, f"a {n}".encode()) for n in range(2)),
    ]
    steps = st.lists(_steps(xid), min_size=4, max_size=18)
    return st.builds(lambda most, rest: [ReplaceModel(source(most)), *start, *rest], _LIMITS, steps)


_HISTORIES = st.one_of(_history(S), _history(M))


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(_HISTORIES)
def test_what_is_published_is_one_thing(history: list[Command]) -> None:
    # LEG-210, LEG-405, LEG-610, LEG-707, LEG-1201: the log, a rebuild, the registry in memory and the past agree
    with TemporaryDirectory() as folder:
        check(f"sqlite:///{Path(folder) / 'annals.db'}", history)


def check(url: str, history: list[Command]) -> None:
    memory = MemoryRegistry()
    store = Store(
        url,
        public_url=URL,
        clock=lambda: START + timedelta(seconds=memory.interactions),
        new_id=lambda: f"c{memory.interactions}",
        open_publications=SqlPublications,
    )
    with closing(store), closing(ViewPool(url)) as readers:
        store.create()
        with store.writing() as tx:
            EntityProjection().create(tx.connection)
        run(store, CreateRegistry("test", {}))
        seen = {store.log_end().position: published_versions(readers)}
        for command in history:
            both(store, memory, command)
            seen[store.log_end().position] = published_versions(readers)
        assert_agreement(store, readers, memory)
        for position, then in seen.items():
            assert published_versions(readers, position) == then
        findings = [*verify_log(store), *verify_row_hashes(store), *verify_history(store)]
        assert not findings, findings
        with store.writing() as tx:
            EntityProjection().catch_up(tx.connection)
        before = dump(store)
        rebuild(store)
        assert dump(store) == before


def both(store: Store, memory: MemoryRegistry, command: Command) -> None:
    """Handles a command in the store and in memory, and asserts that the outcomes are equal."""
    memory.interactions += 1
    done = run(store, command)
    memory.interactions -= 1
    try:
        decision = memory.do(command)
    except Problem as problem:
        memory.interactions += 1
        assert isinstance(done, Problem), done
        assert (type(done), str(done)) == (type(problem), str(problem))
        return
    assert isinstance(done, Recorded), done
    assert [plain(event) for _, event in done.events] == [plain(event) for event in decision.events]
    assert (done.processed, done.number) == (decision.processed, decision.number)


def run(store: Store, command: Command) -> Recorded | Exception:
    [done] = handle([PendingCommand(deepcopy(command))], store, [EntityProjection()])
    return done


def plain(event: EntityEvent) -> dict[str, Any]:
    """An event without its salt, which it gets when it is recorded."""
    private = {name: value for name, value in event.private.items() if name != SALT}
    return {**event.model_dump(), "private": private, "kind": type(event)}


def published_versions(readers: ViewPool, position: int | None = None) -> dict[str, list[tuple[Any, ...]]]:
    """The Versions of each definition in the legacy APIs, now or at a position."""
    with readers.view() as view:
        published = CompatVersions(view if position is None else view.as_of(position))
        return {xid: [*map(tuple, published.versions(xid))] for xid in DEFINITIONS}


def assert_agreement(store: Store, readers: ViewPool, memory: MemoryRegistry) -> None:
    with readers.view() as view:
        for xid, state in followed(list(enumerate(memory.log, 1))).items():
            assert_published(view, xid, state)
    expected = sorted((tuple(publication_row(one)) for one in MemoryPublications(memory.log).all()), key=str)
    assert expected == dump(store)["published"]


def assert_published(view: View, xid: str, state: DefinitionState) -> None:
    published = CompatVersions(view)
    if xids.segments(xid)[-1] != "s" and xids.segments(xid)[-1] != "m":
        return
    row = view.entity(xid)
    if row is None or '"xref"' in row.attributes:
        assert not state.numbers, state
        return
    found = {one.row.id: (one.number, one.row.since, not one.is_retained) for one in published.versions(xid)}
    assert found == {id: (number, state.rows[id], id in state.living) for id, number in state.numbers.items()}
    family = legacy_api_of(xid)
    assert family is not None
    assert published.numbers(xid) == sorted(state.numbers.values())
    for one in published.versions(xid):
        assert published.version(xid, one.number) == one
        assert published.by_uri(family, one.uri, (URL + family.base, URL)) == one
    latest = published.latest(xid)
    assert latest is not None and latest.number == max(state.numbers.values())


def dump(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    with store.engine.connect() as connection:
        return read_model_rows(connection)


#: Versions are pruned, written again, forgotten, restored, and deleted with their definition.
STORY: list[Command] = [
    ReplaceModel(source(1)),
    put_group(G, "Text/1"),
    put_group(C, "CloudEvents"),
    *(post(M, f"a {n}".encode(), authority="urn:x", id=f"urn:{n}") for n in range(4)),
    *(post(S, f"a {n}".encode()) for n in range(4)),
    delete(M, 2),
    WriteTree(f"{M}/versions/1", _version(M, "again"), WriteMethod.PUT),
    delete(S, 4),
    delete(S, 1),
    WriteTree(f"{S}/versions", {"x": _version(S, "x")}, WriteMethod.POST),
    Restore(S, 30),
    DeleteEntities(C),
    Restore("/", 45),
    post(M, b"a 9", id="urn:" + "y" * 3000),
    post(M, b"a 10"),
]


def test_a_story_on_either_database(store_url: str) -> None:
    # LEG-707, LEG-1201
    check(store_url, STORY)


def test_damage_is_found(store_url: str) -> None:
    # LEG-606, LEG-707: the rows that look-ups rely on have to agree with the log
    check(store_url, STORY)
    with closing(Store(store_url)) as store:
        own = tables().published
        for change in (
            own.update().where(own.c.number == 2).values(number=5),
            own.update().where(own.c.uri.is_not(None)).values(uri="urn:other"),
            own.update().where(own.c.pruned.is_not(None)).values(gone=1),
            own.delete(),
        ):
            with store.engine.begin() as connection:
                assert connection.execute(change).rowcount
            assert [finding for finding in verify_history(store) if "published" in str(finding)], change
            rebuild(store)
            assert not list(verify_history(store))
