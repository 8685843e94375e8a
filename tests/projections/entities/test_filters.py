"""Filters and sorts by index have the same results as by document, on generated registries.

The expected results come from the rule itself, which is applied to all entities, one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annals.domain.errors import problems
from annals.domain.filters import Conjunction, EntityFilter, PathScope, Sort, depth, parse_filter, parse_sort
from annals.domain.model import compile_model
from annals.domain.values import xid as xids
from annals.projections.entities.filters import by_index, missing_attributes, pages
from annals.projections.entities.filters.by_document import matches, sort_key_of
from annals.projections.entities.filters.by_index import MANY_LEAVES
from annals.projections.entities.filters.pages import PageKey
from annals.projections.entities.leaves import MAX_LEAVES
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.view import View
from tests.support.examples import examples
from tests.support.registries.recorded import Registry

MODEL = compile_model(
    {
        "groups": {
            "dirs": {
                "singular": "dir",
                "attributes": {"*": {"type": "any"}},
                "resources": {
                    "files": {"singular": "file", "attributes": {"*": {"type": "any"}}},
                    "notes": {"singular": "note", "attributes": {"*": {"type": "any"}}},
                },
            }
        }
    }
)
BASE = "http://h"
LONG = "long " * 30
TEXTS = (
    "",
    "a",
    "A",
    "ab",
    "b*c",
    "ß",
    "SS",
    "50%_\\",
    "true",
    "5",
    "\0x",
    "Kelvin \u212a",
    LONG,
    LONG + "x",
    LONG + "Y",
)
NUMBERS = (
    *(0, 1, 5, -1.5, 0.1, 2**53, 2**53 + 1, 2**60, 2**60 + 1, 1e300),
    *map(Decimal, ("9007199254740993.5", "1.00000000000000000001", "0.1000000000000000055511151231257827")),
    *map(Decimal, ("1.10", "1e400", "1e999", "-1e-400", "123456789012345678901234567890")),
)
TIMES = ("2025-01-01T00:00:00Z", "2025-01-01T00:00:00.5Z", "2025-01-01T00:00:00.50Z", "2024-12-31T23:00:00Z")
#: A key that makes paths longer than the index stores them.
LONG_KEY = "l" * 190
NAMES = ("p", "q", "m", "tags")

scalars = st.sampled_from([*TEXTS, *NUMBERS, *TIMES, True, False])
values = st.one_of(
    scalars,
    st.dictionaries(st.sampled_from(["k", "a.b", "5", "it's", LONG_KEY]), scalars, max_size=2),
    st.dictionaries(st.sampled_from(["k", LONG_KEY]), st.just({"k": "a", LONG_KEY: "a"}), max_size=2),
    st.lists(scalars, max_size=2),
    st.just({"k": {"k": "a"}}),
)
attributes = st.dictionaries(st.sampled_from(NAMES), values, max_size=3)
ids = st.sampled_from(["x", "X1", "x-1", "x.2"])
entities = st.dictionaries(
    st.tuples(ids, st.sampled_from(["files", "notes"]), ids, ids),
    st.tuples(attributes, attributes, attributes),
    max_size=6,
)
paths = st.sampled_from(
    [
        "p",
        "q",
        "m",
        "m.k",
        "m.*",
        "m['a.b']",
        "m.*.k",
        "m.*.*",
        f"m.{LONG_KEY}",
        "tags[0]",
        "tags[*]",
        "tags",
        "*.k",
        "xid",
        "self",
    ]
)
operators = st.sampled_from(["", "=null", "!=null", "=", "!=", "<>", "<", "<=", ">", ">="])
texts = st.one_of(
    st.sampled_from(
        [*TEXTS, *map(str, NUMBERS), *TIMES, "false", "9007199254740993", "/dirs/x", "http://h/dirs/X"]
    ).map(lambda text: text.replace("*", "\\*")),
    st.sampled_from(["*", "a*", "*b", "*long x", "long *", "*s*", "*\\**", "/dirs/x*", "*k*", LONG + "*"]),
    st.sampled_from(["*Z", "*.50Z", "2025-*", "2025-01-01T00:00:00*", "2025-01-01T00:00:00.5*", "*0*", "*-01T*", "*!"]),
)
steps = st.sampled_from(["", "files.", "notes.", "files.versions.", "files.meta."])


@st.composite
def expressions(draw: st.DrawFn, hops: Any = steps) -> str:
    operator = draw(operators)
    value = "" if operator in ("", "=null", "!=null") else draw(texts)
    if operator[:1] in ("<", ">") and operator != "<>":
        value = value.replace("\\*", "").replace("*", "")
    return f"{draw(hops)}{draw(paths)}{operator}{value}"


filters = st.lists(st.lists(expressions(), min_size=1, max_size=3), min_size=1, max_size=2)


@pytest.fixture(params=[(MAX_LEAVES, False), (4, False), (MAX_LEAVES, True)], ids=["indexed", "omitted", "behind"])
def registry(request: pytest.FixtureRequest, store_url: str) -> Iterator[Registry]:
    """An empty registry, whose index takes every entity, or omits those with more than a few leaves, or is behind."""
    most, is_behind = request.param
    with Registry(store_url, most, is_behind=is_behind) as registry:
        yield registry


def tree(contents: dict[Any, Any]) -> dict[str, dict[str, Any]]:
    """Entities by xid, owners first. If an xid occurs more than once, its first attributes count."""
    found: dict[str, dict[str, Any]] = {}
    for (group, plural, resource, version), (first, second, third) in contents.items():
        parts = ["dirs", group, plural, resource, "versions", version]
        for length, own in ((2, first), (4, {**second, "meta": third}), (6, third)):
            found.setdefault(xids.join(*parts[:length]), own)
    return {xid: {"id": xids.entity_id(xid), **own} for xid, own in found.items()}


def all_rows(view: View) -> list[EntityRow]:
    return list(view.subtree("/"))


def picked(conjunction: Conjunction, rows: Sequence[EntityRow]) -> set[str]:
    """FLAG-16: the entities of the deepest type that meet their expressions, below owners that meet theirs."""
    by_xid = {row.xid: row for row in rows}

    def meets(row: EntityRow) -> bool:
        owner = by_xid.get(row.parent or "")
        return all(matches(each, row, BASE) for each in conjunction.for_type(row.type)) and (
            owner is None or meets(owner)
        )

    return {row.xid for row in rows if row.type == conjunction.type and meets(row)}


def expected(filter: EntityFilter, rows: Sequence[EntityRow]) -> list[str]:
    """FLAG-16: the picked entities of all conjunctions, with their descendants and ancestors."""
    chosen = set().union(*(picked(each, rows) for each in filter))
    return [
        row.xid
        for row in rows
        if row.xid in chosen or any(row.xid.startswith(f"{one}/") or one.startswith(f"{row.xid}/") for one in chosen)
    ]


@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents=entities, asked=filters, many_leaves=st.sampled_from([MANY_LEAVES, 0]))
def test_by_index_equals_by_document(
    registry: Registry, contents: dict[Any, Any], asked: list[list[str]], many_leaves: int
) -> None:
    # FLAG-10 to 16, P-10: operators, wildcards and levels select the same entities by index as by document
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_index, "MANY_LEAVES", many_leaves)  # 0: every registry counts as a large one
        _check_filter(registry, contents, asked)


def _check_filter(registry: Registry, contents: dict[Any, Any], asked: list[list[str]]) -> None:
    try:
        filter = parse_filter(asked, PathScope("dirs"), MODEL)
    except problems.BadFilter:
        return
    with with_contents(registry, tree(contents)) as view:
        rows = all_rows(view)
        selection = view.selection("/dirs", filter, BASE)
        types = ("dirs", "dirs.files", "dirs.notes", "dirs.files.versions", "dirs.notes.versions")
        found = selection.rows(selection.state, types, selection.low, selection.high)
        assert [row.xid for row in found] == expected(filter, rows)
        assert selection.count("dirs") == sum(1 for xid in expected(filter, rows) if xid.count("/") == 2)
        _counts_are_consistent(view, filter, rows)


@pytest.mark.parametrize("asked", ["p>5", "p>=5", "p<5", "p>=false", "p<true", "p<=true", "p<a", "p>a"])
def test_values_of_other_kinds_are_not_in_a_range(registry: Registry, asked: str) -> None:
    # FLAG-13: a number is neither below nor above a boolean
    values = (True, False, 4, 5, 7, "a", "b", "", "4", "true")
    filter = parse_filter([[asked]], PathScope("dirs"), MODEL)
    with with_contents(
        registry, {f"/dirs/d{n}": {"id": f"d{n}", "p": value} for n, value in enumerate(values)}
    ) as view:
        selection = view.selection("/dirs", filter, BASE)
        found = selection.rows(selection.state, ("dirs",), selection.low, selection.high)
        assert [row.xid for row in found] == expected(filter, all_rows(view))


DATED = (*TIMES, "2025-01-01T00:00:00.Z", "2025-01-01T00:00:00.100Z", "2025-01-01T00:00:00!", "2025-01-01T00:00:00z0")
PATTERNS = (
    *(
        "*Z",
        "*z",
        "*0Z",
        "*00Z",
        "*.5Z",
        "*.50Z",
        "*.Z",
        "*!",
        "*:00!",
        "*0",
        "*z*",
        "*.*",
        "*.5*",
        "*50*",
        "*0*",
        "*1*",
    ),
    *("2025*", "2025-01-01T00:00:00*", "2025-01-01T00:00:00Z*", "2025-01-01T00:00:00.*", "2025-01-01T00:00:00!*"),
    *("2025-01-01T00:00:00.50*", "2025-01-01T00:00:00.1*", "2025-01-01T00:00:00.10*", "*-01T*", "*:00.5*", "2*5*Z"),
    *("*T00*.50*", "*T00**", "2025-*-01T00:00:00Z", "*2025-01-01T00:00:00Z", "*:00.10*z", "*a*"),
)


@pytest.mark.parametrize("asked", PATTERNS)
def test_patterns_match_timestamps_as_they_are_written(registry: Registry, asked: str) -> None:
    # FLAG-14: although they compare by their instants, and the index has neither their Z nor zeros at their end
    pattern = re.compile(".*".join(map(re.escape, asked.casefold().split("*"))))
    wanted = [f"/dirs/d{n}" for n, text in enumerate(DATED) if pattern.fullmatch(text.casefold())]
    filter = parse_filter([[f"p={asked}"]], PathScope("dirs"), MODEL)
    with with_contents(registry, {f"/dirs/d{n}": {"id": f"d{n}", "p": text} for n, text in enumerate(DATED)}) as view:
        selection = view.selection("/dirs", filter, BASE)
        found = selection.rows(selection.state, ("dirs",), selection.low, selection.high)
        assert [row.xid for row in found] == wanted == expected(filter, all_rows(view))


@pytest.mark.parametrize("length", [1, 128, 129])
def test_the_last_character_of_all_begins_a_pattern(registry: Registry, length: int) -> None:
    # FLAG-14: the range of such a pattern has no upper bound, also if the index has only the beginning of a text
    asked = f"p={chr(0x10FFFF) * length}*"
    contents = {f"/dirs/d{n}": {"id": f"d{n}", "p": chr(0x10FFFF) * n} for n in range(127, 131)}
    filter = parse_filter([[asked]], PathScope("dirs"), MODEL)
    with with_contents(registry, contents) as view:
        selection = view.selection("/dirs", filter, BASE)
        found = selection.rows(selection.state, ("dirs",), selection.low, selection.high)
        assert [row.xid for row in found] == expected(filter, all_rows(view))


@pytest.mark.parametrize("asked", ["m.*=a", "m.*!=a", "m.*", "m=null", "m.b=a", "m.*.*=a"])
def test_keys_with_nul(registry: Registry, asked: str) -> None:
    # FLAG-10: a database cannot store NUL in a text; keys with NUL are found like others, also when written again
    members: tuple[dict[str, Any], ...] = (
        {"a\0b": "a"},
        {"\0": "a"},
        {'"\\\0': "b"},
        {"b": "a"},
        {"b": {"\0": "a"}},
        {},
    )
    filter = parse_filter([[asked]], PathScope("dirs"), MODEL)
    for _ in range(2):
        contents = {f"/dirs/d{n}": {"id": f"d{n}", "m": value} for n, value in enumerate(members)}
        with with_contents(registry, contents) as view:
            selection = view.selection("/dirs", filter, BASE)
            found = selection.rows(selection.state, ("dirs",), selection.low, selection.high)
            assert [row.xid for row in found] == expected(filter, all_rows(view))


# FLAG-10, FLAG-14: the index cuts long paths, so the JSON of entities decides; each entity is selected once
@pytest.mark.parametrize(
    "asked",
    [
        *(
            f"m.{'l' * length}{operator}"
            for length in (100, 188, 189, 190, 191, 254, 255)
            for operator in ("", "=null")
        ),
        *(f"m.{LONG_KEY}.{LONG_KEY}{operator}" for operator in ("", "=null", "=a", "!=a", "<b", ">a", "=*a*")),
        *(f"m.*{operator}" for operator in ("", "=null", "=a", "!=a", "=long *")),
        *(f"m.*.*{operator}" for operator in ("", "=null", "=a", "=A", "!=a", "<b", ">=5", "=a*", "=long *")),
        *(f"m.{LONG_KEY}{step}{operator}" for step in (".*", "[*]", "[*].k", ".*.*") for operator in ("", "=a", "!=a")),
        f"m.*.*={LONG}x",
        f"m.{LONG_KEY}.*={LONG}x",
        "*.*=a",
        "*=a",
    ],
)
def test_leaves_with_long_paths(registry: Registry, asked: str) -> None:
    leaf_values: tuple[Any, ...] = (
        "a",
        "b",
        5,
        True,
        LONG,
        LONG + "x",
        {},
        None,
        [],
        ["a", "b"],
        [{"k": "a"}],
        {"k": "a"},
        {LONG_KEY: "a"},
    )
    members = (
        *({"l" * length: {LONG_KEY: "a"}} for length in (100, 188, 189, 190, 191, 254, 255)),
        *({LONG_KEY: {LONG_KEY: value}} for value in leaf_values),
        *({LONG_KEY: value} for value in leaf_values),
        {LONG_KEY: {"x": "a", LONG_KEY: "a", "y": {"z": "a"}}, "k": {"k": "a"}},
        {"k": {"k": "a"}, LONG_KEY + "x": {LONG_KEY: "b"}},
        {LONG_KEY[:-1] + "#": {LONG_KEY: "a"}},
        {f"{LONG_KEY[:-1]}#{'0' * 64}": "a"},
        {f"{'l' * 189}#{'0' * 64}": {"k": "a"}},
        {},
    )
    filter = parse_filter([[asked]], PathScope("dirs"), MODEL)
    contents = {f"/dirs/d{n}": {"id": f"d{n}", "m": value} for n, value in enumerate(members)}
    with with_contents(registry, contents) as view:
        selection = view.selection("/dirs", filter, BASE)
        found = selection.rows(selection.state, ("dirs",), selection.low, selection.high)
        assert [row.xid for row in found] == expected(filter, all_rows(view))
        assert selection.count("dirs") == len(expected(filter, all_rows(view)))


def _counts_are_consistent(view: View, filter: EntityFilter, rows: Sequence[EntityRow]) -> None:
    """SER-15: the count of a collection is the number of its selected members."""
    left = set(expected(filter, rows))
    selection = view.selection("/dirs", filter, BASE)
    for type in ("dirs.files", "dirs.files.versions"):
        counted = selection.count_by_owner(type, selection.state, selection.low, selection.high)
        owners = [row.parent for row in rows if row.type == type and row.xid in left]
        assert counted == {xids.tree_key(owner): owners.count(owner) for owner in owners if owner}


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    contents=entities,
    key=st.sampled_from(["p", "q", "q.k", "m.k", "tags[0]", "xid", "dirid"]),
    word=st.sampled_from(["", "=asc", "=desc"]),
    size=st.integers(1, 3),
    asked=st.none() | filters,
    uses_index=st.booleans(),
)
def test_pages_are_the_whole_in_order(
    registry: Registry,
    contents: dict[Any, Any],
    key: str,
    word: str,
    size: int,
    asked: list[list[str]] | None,
    uses_index: bool,
) -> None:
    # FLAG-51, PAG-7, P-11: pages put together are the sorted collection, forwards and backwards
    try:
        filter = parse_filter(asked, PathScope("dirs"), MODEL) if asked else None
    except problems.BadFilter:
        return
    sort = parse_sort(f"{key}{word}", PathScope("dirs"), MODEL)
    with with_contents(registry, tree(contents)) as view:
        rows = all_rows(view)
        left = [row for row in rows if filter is None or row.xid in expected(filter, rows)]
        groups = [row for row in left if row.type == "dirs"]
        wanted = [row.xid for row in sorted(groups, key=lambda row: sort_key_of(row, sort), reverse=sort.descending)]
        with pytest.MonkeyPatch.context() as patch:
            if uses_index:
                patch.setattr(pages, "FEW_SORTED", -1)
                patch.setattr(pages, "MAX_SORTED", -1)
            members = sum(1 for row in rows if row.type == "dirs")
            assert _pages(view, filter, sort, size, backwards=False, members=members) == wanted
            assert _pages(view, filter, sort, size, backwards=True, members=members) == wanted[::-1]


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(entities, min_size=2, max_size=4),
    key=st.sampled_from(["p", "q.k", "p=desc"]),
    most=st.sampled_from([0, 1, 1000]),
    far=st.sampled_from([1, 1000]),
)
def test_large_collections_remember_what_lacks_a_value(
    registry: Registry, steps: list[dict[Any, Any]], key: str, most: int, far: int
) -> None:
    # FLAG-51: missing values are lowest, also if the members without a value are cached, and after later writes
    sort = parse_sort(key, PathScope("dirs"), MODEL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "FEW_SORTED", -1)
        patch.setattr(pages, "MAX_SORTED", -1)
        patch.setattr(missing_attributes, "MAX_KEYS", most)
        patch.setattr(pages, "MAX_KEYS", most)
        patch.setattr(missing_attributes, "MAX_NEW_EVENTS", far)
        for contents in steps:
            with with_contents(registry, tree(contents), keep=True) as view:
                groups = [row for row in all_rows(view) if row.type == "dirs"]
                ordered = sorted(groups, key=lambda row: sort_key_of(row, sort), reverse=sort.descending)
                wanted = [row.xid for row in ordered]
                assert _pages(view, None, sort, 2, backwards=False, members=len(groups)) == wanted
                assert _pages(view, None, sort, 2, backwards=True, members=len(groups)) == wanted[::-1]


def _pages(
    view: View, filter: EntityFilter | None, sort: Sort, size: int, backwards: bool, members: int = 0
) -> list[str]:
    collection = view.members(view.selection("/dirs", filter, BASE), "dirs", sort, members)
    found: list[str] = []
    after: PageKey | None = None
    while page := list(collection.page_keys(after, backwards, size))[:size]:
        found += [row.xid for row in collection.rows(page)]
        after = page[-1]
    return found


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=entities,
    after=entities,
    asked=st.none() | filters,
    sort=st.none() | st.sampled_from(["p", "p=desc", "q"]),
)
def test_a_moment_stays_as_it_was(
    registry: Registry, before: dict[Any, Any], after: dict[Any, Any], asked: Any, sort: str | None
) -> None:
    # PAG-7: a collection pinned at a position stays as it was, whatever is written later
    try:
        filter = parse_filter(asked, PathScope("dirs"), MODEL) if asked else None
    except problems.BadFilter:
        return
    order = parse_sort(sort, PathScope("dirs"), MODEL) if sort else None
    with with_contents(registry, tree(before)) as view:
        position = view.position()
        then = _listed(view, filter, order, None)
    with with_contents(registry, tree(after), keep=True) as view:
        moment = view.row_overrides("/dirs", position=position, uses_index=True)
        assert _listed(view, filter, order, moment) == then


def _listed(view: View, filter: EntityFilter | None, sort: Sort | None, moment: Any) -> list[tuple[str, str]]:
    selection = view.selection("/dirs", filter, BASE, moment)
    members = view.members(selection, "dirs", sort, 0)
    types = ("dirs.files", "dirs.notes", "dirs.files.versions", "dirs.notes.versions")
    return [(row.xid, row.attributes) for row in selection.with_descendants(members.rows(members.page_keys()), types)]


def with_contents(registry: Registry, contents: dict[str, dict[str, Any]], keep: bool = False) -> Any:
    """A view of a registry after its entities are replaced by these. keep: entities with the same xid are updated."""
    alive = {event.xid for event in registry.history.alive.values()}
    gone = [xid for xid in alive if not (keep and xid in contents)]
    lower = {xid.lower() for xid in alive - set(gone)}
    if gone:
        registry.record(*((xid, None) for xid in gone))
    fresh = [(xid, own) for xid, own in contents.items() if xid in alive - set(gone) or xid.lower() not in lower]
    if fresh:
        registry.record(*sorted(fresh, key=lambda pair: depth(xids.type_of(pair[0]))))
    return registry.readers.view()
