"""Query plans for a caller with roles at some places: each reads the range of a place, not the whole type."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from annals.domain.access.roles import Caller, Role
from annals.domain.filters import PathScope, Sort, parse_filter
from annals.projections.entities.view import View
from annals.projections.entities.visibility import Visibility
from tests.projections.entities.test_filters import MODEL
from tests.support.plans import Explained, explained
from tests.support.registries.recorded import Registry, record_files

pytestmark = pytest.mark.scale

GROUPS, FILES = 30, 60
PLACES = ["/dirs/d7", "/dirs/d1*", "/d*s/d7"]
#: The conditions of a search in an index: SQLite writes `id_key>?`, PostgreSQL `(id_key >= 'd7'::text)`.
CONDITIONS = re.compile(
    r"Index Cond: (.*?)(?:;|$)|(?:USING \w+ \w+|USING COVERING INDEX \w+|USING INDEX \w+) \((.*?)\)"
)


@pytest.fixture(scope="module")
def large(shared_store_url: str) -> Iterator[Registry]:
    """Enough entities that scanning them would cost more."""
    with Registry(shared_store_url) as registry:
        record_files(registry, GROUPS, FILES)
        yield registry


def seen(db: Explained, place: str) -> View:
    return View(db).seen_by(Caller("c", groups={place: Role.READER}))


def reads_a_range(plan: str, column: str) -> bool:
    """Whether an index is read between two values of a column, and nothing from its beginning to its end."""
    conditions = [one or other for one, other in CONDITIONS.findall(plan)]
    ranges = (
        re.search(rf"{column} ?>", condition) and re.search(rf"{column} ?<", condition) for condition in conditions
    )
    return any(ranges) and not re.search(r"Seq Scan on|SCAN (entity|attribute|[ae])\b", plan)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("path", "types"), [("/dirs", {"dirs"}), ("/", {"dirs.files"}), ("/", None)])
def test_a_list_reads_the_range_of_a_place(large: Registry, place: str, path: str, types: set[str] | None) -> None:
    # ACC-72: Groups, inlined Resources, and the whole tree
    with explained(large) as db:
        list(seen(db, place).subtree(path, types))
    (plan,) = db.plans
    assert reads_a_range(plan, "key") and "TEMP B-TREE" not in plan, plan


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("sort", [None, Sort(("name",)), Sort(("name",), descending=True)])
def test_a_page_reads_the_range_of_a_place(large: Registry, place: str, sort: Sort | None) -> None:
    # ACC-72
    with explained(large) as db:
        view = seen(db, place)
        list(view.members(view.selection("/dirs", None, ""), "dirs", sort, GROUPS).page_keys(limit=10))
    assert db.plans and all(reads_a_range(plan, "key") for plan in db.plans), db.plans


@pytest.mark.parametrize("place", PLACES)
def test_a_count_reads_the_range_of_a_place(large: Registry, place: str) -> None:
    # ACC-72
    with explained(large) as db:
        query = Visibility(frozenset({place})).id_keys(db, "id_key", "dirs", "", "\x7f")
        list(db.stream(*query.wrap("SELECT count(*) FROM entity WHERE type = 'dirs' AND {}")))
    (plan,) = db.plans
    assert reads_a_range(plan, "key"), plan


#: Filters, and the column of the range. The index of values is sorted by value and then by key, so only entries of
#: equal values are in the order of keys.
FILTERS = {
    "files.name=n7": "key",
    "files.size=7": "key",
    "name!=n7": "key",
    "files.name=n*": "value",
    "files.size>=3": "value",
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("expression", FILTERS)
def test_a_filter_reads_the_range_of_a_place(large: Registry, place: str, expression: str) -> None:
    # ACC-72: a role at a place limits the range like the path of a filter does
    filter = parse_filter([[expression]], PathScope("dirs"), MODEL)
    with explained(large) as db:
        selection = seen(db, place).selection("/dirs", filter, "")
        for type in ("dirs", "dirs.files"):
            query = selection.keys(selection.state, type, selection.low, selection.high)
            if query is not None:
                list(db.stream(*query))
    column = FILTERS[expression]
    plans = [plan for plan in db.plans if re.search(column, plan)]
    assert plans and all(reads_a_range(plan, column) or reads_a_range(plan, "key") for plan in plans), db.plans


def test_several_places_are_read_between_the_first_and_the_last(large: Registry) -> None:
    # ACC-72
    with explained(large) as db:
        view = View(db).seen_by(Caller("c", groups=dict.fromkeys(["/dirs/d21", "/dirs/d2*", "/dirs/d3"], Role.READER)))
        for types in ({"dirs.files"}, None):
            list(view.subtree("/", types))
    assert all(reads_a_range(plan, "key") for plan in db.plans), db.plans
