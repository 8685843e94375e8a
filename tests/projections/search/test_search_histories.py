"""The index finds what a plain scan over all entities finds, in the same order, whatever was written before."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from random import Random
from types import ModuleType
from typing import Any, Final

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from annals.domain.access.roles import Caller, Role
from annals.domain.model.builtin import default_source
from annals.domain.search.matching import ResultKey
from annals.domain.search.query import parse_query
from annals.projections.entities.view import View
from annals.projections.entities.visibility import Visibility
from annals.projections.search import gone_numbers, index_reader, segments
from annals.projections.search import search as search_module
from annals.projections.search.index_reader import IndexReader
from annals.projections.search.search import MAX_COUNT, search
from tests.support.examples import examples
from tests.support.histories import UNHURRIED, temporary_sqlite
from tests.support.registries.in_process import Api, create, serving
from tests.support.search_index import index_writer, scan, write_pending
from tests.support.stores import schema_of

EXAMPLES: Final = {"sqlite": 32, "postgresql": 8}
QUERIES_PER_HISTORY: Final = 40
CALLERS: Final = (
    Caller("all", Role.READER),
    Caller("one", groups={"/schemagroups/a": Role.READER}),
    Caller("some", groups={"/*/o*": Role.READER}),
)

WORDS: Final = ("order", "Total", "orderTotal", "order_total", "Größe", "a.b", "address", "id", "HTTPServer", "x1")
TEXT: Final = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
GROUPS: Final = ("a", "order", "Orders-2")
IDS: Final = ("order", "orderTotal", "order.total", "x1", "b")


def _avro(names: list[str], doc: str | None) -> dict[str, Any]:
    fields = [
        {"name": name.replace(".", "_").replace("ö", "o").replace("ß", "ss"), "type": "int"}
        | ({"doc": doc} if doc else {})
        for name in dict.fromkeys(names)
    ]
    return {"type": "record", "name": "R", "fields": fields}


ATTRIBUTES: Final = st.fixed_dictionaries(
    {},
    optional={
        "name": TEXT,
        "description": TEXT,
        "labels": st.dictionaries(st.sampled_from(("team", "order")), TEXT, max_size=2),
    },
)
SCHEMA: Final = st.builds(
    lambda attributes, names, doc: attributes | {"format": "Avro/1.11", "schema": _avro(names, doc)},
    ATTRIBUTES,
    st.lists(st.sampled_from(WORDS), max_size=4),
    st.one_of(st.none(), TEXT),
)
GROUP_PATH: Final = st.sampled_from(GROUPS).map("/schemagroups/{}".format)
SCHEMA_PATH: Final = st.builds("{}/schemas/{}".format, GROUP_PATH, st.sampled_from(IDS))
VERSION_PATH: Final = st.builds("{}/versions/{}".format, SCHEMA_PATH, st.sampled_from(("1", "2", "total")))
WRITE: Final = st.one_of(
    st.tuples(st.just("PUT"), GROUP_PATH, ATTRIBUTES),
    *[st.tuples(st.just("PUT"), SCHEMA_PATH.map("{}$details".format), SCHEMA)] * 3,
    *[st.tuples(st.just("PUT"), VERSION_PATH.map("{}$details".format), SCHEMA)] * 2,
    st.tuples(st.just("PATCH"), SCHEMA_PATH.map("{}$details".format), ATTRIBUTES),
    st.tuples(
        st.just("PATCH"),
        SCHEMA_PATH.map("{}/meta".format),
        st.sampled_from(({"xref": "/schemagroups/a/schemas/order"}, {"xref": None})),
    ),
    st.tuples(st.just("DELETE"), st.one_of(GROUP_PATH, SCHEMA_PATH, VERSION_PATH), st.none()),
    st.just(("REBUILD", "", None)),
)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> tuple[str, Callable[[], AbstractContextManager[str]]]:
    """The kind of a database, and a function whose context is an empty one."""
    if request.param == "sqlite":
        return request.param, temporary_sqlite
    server = request.getfixturevalue("postgres_server")
    return request.param, lambda: schema_of(server)


#: Limits so small that histories exceed them, as large registries exceed the real ones.
SMALL_LIMITS: Final = {
    search_module: {"MAX_SORTED": 1},
    segments: {"BLOCK_WORDS": 2, "BLOCK_KEYS": 2, "BLOCK_TEXTS": 2, "SOON_MERGED": 3},
    index_reader: {"_FIRST_BLOCKS": 2, "_MAX_BLOCKS": 2, "_KEY_BLOCKS": 2},
    gone_numbers: {"PART_BITS": 2},
}


@pytest.mark.timeout(900)
@pytest.mark.generated
@pytest.mark.parametrize("limits", [{}, SMALL_LIMITS], ids=["few", "many"])
def test_the_index_finds_what_a_scan_finds(
    database: tuple[str, Callable[[], AbstractContextManager[str]]],
    limits: Mapping[ModuleType, Mapping[str, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # UI-101, UI-102, UI-103, UI-104, UI-106, ACC-71
    kind, new_store = database
    for module, values in limits.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)

    @settings(max_examples=examples(EXAMPLES[kind]), **UNHURRIED, database=None, phases=[Phase.generate])
    @given(st.lists(st.tuples(WRITE, st.booleans()), min_size=10, max_size=40), st.integers(0, 2**32))
    def run(history: list[tuple[Any, bool]], seed: int) -> None:
        with new_store() as url:
            create(url, default_source())
            with serving(url) as api, index_writer(url) as writer:
                for (method, path, body), follows in history:
                    if method == "REBUILD":
                        writer.write_all()
                    else:
                        _write(api, method, path, body)
                    if follows:
                        write_pending(writer)
                write_pending(writer)
                with writer.readers.view() as view:
                    _compare(view, Random(seed))

    run()


@pytest.mark.parametrize("max_sorted", [search_module.MAX_SORTED, 1], ids=["few", "many"])
def test_the_place_of_a_phrase(store_url: str, max_sorted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-101, UI-103: a name with the words of a phrase in another order is no match, but the description may be."""
    monkeypatch.setattr(search_module, "MAX_SORTED", max_sorted)
    create(store_url, default_source())
    with serving(store_url) as api, index_writer(store_url) as writer:
        api.done("PUT", "/schemagroups/a", {"name": "order to total", "description": "the order total"})
        api.done("PUT", "/schemagroups/b", {"name": "order to total"})
        api.done("PUT", "/schemagroups/c", {"name": "one order total"})
        write_pending(writer)
        with writer.readers.view() as view:
            query = parse_query('"order total"')
            found = search(IndexReader(view.database), query, 10)
            assert [result.entity.xid for result in found.results] == ["/schemagroups/c", "/schemagroups/a"]
            assert [result.key for result in found.results] == scan(view, query)
            assert (found.count, found.more) == (2, False)


def _write(api: Api, method: str, path: str, body: Any) -> None:
    answer = api.send(method, path, body)
    assert answer.status_code < 500, (method, path, json.dumps(body), answer.text)


def _compare(view: View, random: Random) -> None:
    for _ in range(QUERIES_PER_HISTORY):
        text, caller, all_versions = _query(random), random.choice(CALLERS), random.random() < 0.3
        query = parse_query(text)
        expected = scan(view.seen_by(caller), query, all_versions)
        index = IndexReader(view.database, Visibility.of_caller(caller), all_versions)
        assert index.position() == view.position()
        found, after = list[ResultKey](), None
        while True:
            page = search(index, query, random.choice((1, 3, 100)), after)
            found += [result.key for result in page.results]
            if (after := page.next) is None:
                break
        assert found == expected, text
        assert page.count == min(len(expected), MAX_COUNT), text


def _query(random: Random) -> str:
    words = random.choices((*WORDS, "tot", "ord", "ORDERTOTAL", "grosse", "Total order", "b"), k=random.randint(0, 3))
    parts = [f'"{word}"' if random.random() < 0.2 else word for word in words]
    if random.random() < 0.2:
        parts.append(f'"{" ".join(random.choices(WORDS, k=2))}"')
    if random.random() < 0.4 or not parts:
        filters = ("type:schemagroups.schemas", "type:schemagroups", "group:/schemagroups/A", "format:avro")
        parts.append(random.choice((*filters, "format:Avro/1.11", "type:schemagroups.schemas.versions")))
    if random.random() < 0.2:
        parts.append(f"in:{random.choice(('id', 'name', 'label', 'field', 'description'))}")
    return " ".join(parts)
