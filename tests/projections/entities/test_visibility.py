"""One predicate decides which entities a caller sees: as conditions of SQL and as a function."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from annals.commands.store.log import Store
from annals.domain.access.places import MAX_PLACES
from annals.domain.access.roles import Caller, Role
from annals.domain.values import xid as xids
from annals.projections.database import drivers
from annals.projections.database.drivers import Database
from annals.projections.entities.filters.sql import SqlFragment, and_, key_list
from annals.projections.entities.id_keys import LAST_ID_KEY, id_key, id_key_bound
from annals.projections.entities.visibility import EVERYTHING, Visibility

#: Few characters, so that places often match xids: letters of both cases, a wildcard of LIKE, and characters around
#: which the order of keys matters.
_ID_CHARACTERS = "abB_-.~@:1"
_NAMES = ("a", "ab", "a_b", "dirs")
_WILD_NAMES = (*_NAMES, "*", "a*", "*b", "d*s", "a**")

_ids = st.text("abAB_1", min_size=1, max_size=1).flatmap(
    lambda first: st.text(_ID_CHARACTERS, max_size=3).map(lambda rest: first + rest)
)
_places = st.builds(
    "/{}/{}".format, st.sampled_from(_WILD_NAMES), st.text(_ID_CHARACTERS + "**", min_size=1, max_size=4)
)
_visibilities = st.frozensets(_places.map(str.lower), max_size=4).map(Visibility)


@st.composite
def _xids(draw: st.DrawFn) -> str:
    """A Group, a Resource or a Version, or an entity above the Groups."""
    parts = [draw(st.sampled_from(_NAMES)), draw(_ids)]
    for name in draw(st.sampled_from([[], ["files"], ["files", "versions"], ["a"], ["a", "versions"]])):
        parts += [name, draw(_ids)]
    return draw(st.sampled_from([xids.join(*parts)] * 7 + list(xids.ROOT_STREAMS)))


_entities = st.lists(_xids(), max_size=40).map(
    lambda found: list({xids.tree_key(xid): xid.lower() for xid in found}.values())
)
#: The path of a query: an entity, a collection or the registry.
_paths = st.one_of(
    st.just(xids.REGISTRY), st.sampled_from(_NAMES).map("/{}".format), _xids(), _xids().map("{}/files".format)
)


@pytest.fixture(scope="module")
def db(shared_store_url: str) -> Iterator[Database]:
    with ExitStack() as stack:
        store = Store(shared_store_url)
        stack.callback(store.close)
        yield drivers.database_of(stack.enter_context(store.engine.connect()))


@pytest.fixture(params=[MAX_PLACES, 0], ids=["few places", "many places"])
def max_places(request: pytest.FixtureRequest) -> Iterator[None]:
    """Also the conditions that are made for more places than this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("annals.projections.entities.visibility.MAX_PLACES", request.param)
        yield


@pytest.mark.usefixtures("max_places")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(visibility=_visibilities, entities=_entities, path=_paths)
@example(Visibility(frozenset({"/a/a*"})), ["/a/a", "/a/ab", "/a/b", "/ab/a"], "/")
@example(Visibility(frozenset({"/*/a_b"})), ["/a/a_b", "/a/aab", "/a/b/files/a_b"], "/")
@example(Visibility(frozenset({"/a/*b*a", "/a/*b*"})), ["/a/aba", "/a/ab", "/a/a/files/aba"], "/a")
@example(Visibility(frozenset({"/a/b", "/a/a*"})), ["/a/b", "/a/b/files/x", "/a/bb", "/a/ab"], "/")
def test_conditions_and_function_agree(db: Database, visibility: Visibility, entities: list[str], path: str) -> None:
    # ACC-71: one predicate, as SQL for queries and as a function for streams
    low, high = xids.subtree(path)
    keys = {xid: xids.tree_key(xid) for xid in entities}
    expected = {xid for xid, key in keys.items() if low < key < high and visibility.sees_key(key)}
    condition = visibility.tree_keys(db, "k.key", low, high)
    in_groups = expected - set(xids.ROOT_STREAMS)
    assert _selected(db, list(keys.values()), condition) == {keys[xid] for xid in in_groups}
    for type in {xids.type_of(xid) for xid in entities} - set(xids.ROOT_STREAMS):
        of_type = {xid for xid in entities if xids.type_of(xid) == type}
        bounds = (id_key_bound(type, low), id_key_bound(type, high))
        condition = visibility.id_keys(db, "k.key", type, *bounds)
        found = _selected(db, [id_key(keys[xid]) for xid in of_type], condition)
        assert found == {id_key(keys[xid]) for xid in expected & of_type}, type


@given(visibility=_visibilities, xid=_xids())
def test_the_predicate_is_the_roles_of_a_caller(visibility: Visibility, xid: str) -> None:
    # ACC-71: a list shows what the caller can read by its path; the entities above all Groups are visible to all
    caller = Caller("c", groups=dict.fromkeys(visibility.places or (), Role.READER))
    assert Visibility.of_caller(caller) == visibility
    sees = visibility.sees_key(xids.tree_key(xid))
    assert sees is (caller.can_read(xid) or xid in xids.ROOT_STREAMS)
    within = visibility.within(xid)
    assert (within == EVERYTHING) is (sees and xid not in xids.ROOT_STREAMS), "inside a visible Group all is visible"


def test_a_role_for_the_registry_sees_everything(db: Database) -> None:
    # ACC-71
    assert Visibility.of_caller(Caller("c", Role.READER, {"/dirs/d": Role.WRITER})) == EVERYTHING
    assert EVERYTHING.sees_key("!dirs!any!files!f")
    keys = ["a", "b!c"]
    assert _selected(db, keys, EVERYTHING.id_keys(db, "k.key", "dirs", "", LAST_ID_KEY)) == set(keys)


def test_callers_with_thousands_of_places(db: Database) -> None:
    # ACC-60, ACC-71: each grant has 100 places at most, and a caller may be in many groups with grants
    places = frozenset(f"/dirs/d{n}" for n in range(3000))
    keys = [xids.tree_key(f"/dirs/{id}") for id in ("d0", "d2999", "d3000", "e")]
    low, high = xids.subtree("/dirs")
    assert _selected(db, keys, Visibility(places).tree_keys(db, "k.key", low, high)) == set(keys[:2])


def _selected(db: Database, keys: list[str], condition: SqlFragment) -> set[str]:
    source = key_list(db, keys)
    rows = db.all(*and_(SqlFragment(f"SELECT k.key FROM {source.text} AS k WHERE 1 = 1", source.values), condition))
    assert len({key for (key,) in rows}) == len(rows)
    return {key for (key,) in rows}
