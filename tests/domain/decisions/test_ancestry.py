"""Pure functions for the newest, the oldest and the ancestors of Versions, by `versionmode`."""

from __future__ import annotations

from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.domain.decisions.rules.ancestry import (
    MODES,
    VersionLineage,
    assign_ancestors,
    earlier_ordering_times,
    find_cycle,
    newest_version,
    oldest_versions,
    root_ids,
)


def line(id: str, ancestor: str | None = None, year: int = 2020, ordered: int = 2020) -> VersionLineage:
    return VersionLineage(id, ancestor, f"{year}-01-01T00:00:00Z", f"{ordered}-01-01T00:00:00Z")


def test_newest_in_manual_mode_is_a_leaf() -> None:
    # ENT-80, versionmode manual: v1 was created later than v2, but v2 descends from it
    assert newest_version("manual", [line("v1", "v1", 2030), line("v2", "v1", 2021)]).id == "v2"
    assert (
        newest_version("manual", [line("v1", "v1"), line("b", "v1"), line("C", "v1")]).id == "C"
    )  # ties: highest id, any case


def test_oldest_in_manual_mode_is_a_root() -> None:
    # ENT-104: a Version whose ancestor is the excluded one counts as a root
    lines = [line("v1", "v1", 2025), line("v2", "v1", 2020), line("v3", "v3", 2030)]
    assert [one.id for one in oldest_versions("manual", lines, 3)] == ["v1", "v2", "v3"]
    assert [one.id for one in oldest_versions("manual", lines, 1, excluded_id="v1")] == ["v2"]


IDS = st.sampled_from("abcdefg")


@pytest.mark.parametrize("mode", MODES)
@given(
    st.lists(st.tuples(IDS, IDS, st.integers(2020, 2023)), unique_by=lambda one: one[0], min_size=2), st.integers(1, 6)
)
def test_many_go_as_one_after_the_other(mode: str, made: list[tuple[str, str, int]], limit: int) -> None:
    # ENT-104: the same as removing the oldest one by one until the limit is met, for any ancestors, cycles included
    lines = assign_ancestors(mode, [line(id, ancestor, year, year) for id, ancestor, year in made], [])
    skipped, left, gone = lines[-1].id, lines, list[str]()
    while len(left) > limit:
        [first] = oldest_versions(mode, left, 1, skipped)
        gone.append(first.id)
        left = assign_ancestors(mode, [one for one in left if one is not first], [])
    assert [one.id for one in oldest_versions(mode, lines, len(lines) - len(left), skipped)] == gone


@given(st.lists(st.tuples(IDS, IDS, st.integers(2020, 2023), st.booleans()), unique_by=lambda one: one[0]))
def test_copies_come_before_their_descendants(made: list[tuple[str, str, int, bool]]) -> None:
    # ENT-101: with the new times, a copied Version is older than each stated child; others keep theirs, cycles included
    lines = [line(id, ancestor, ordered=year) for id, ancestor, year, _ in made]
    copied = {id for id, _, _, is_copied in made if is_copied}
    times = earlier_ordering_times(lines, copied)
    assert times.keys() <= copied
    moved = {one.id: one._replace(ordering_time=times.get(one.id, one.ordering_time)) for one in lines}
    assert all(moved[one.id].ordering_time <= one.ordering_time for one in lines)
    if find_cycle(lines) is None:
        for one in lines:
            if one.ancestor in copied and not one.is_root:
                pair = [moved[one.ancestor], moved[one.id]]
                assert newest_version("modifiedat", pair).id == one.id


def test_thousands_go_at_once() -> None:
    # ENT-104: after `maxversions` is lowered; if each step read all remaining Versions, it would take too long
    lines = [line(f"v{n:05}", f"v{max(n - 1, 0):05}") for n in range(20_000)]
    assert len(oldest_versions("manual", lines, 19_995, excluded_id="v19999")) == 19_995
    assert find_cycle(lines[::-1]) is None


@pytest.mark.parametrize(
    ("mode", "newer"),
    [("createdat", line("a", year=2021)), ("modifiedat", line("a", ordered=2021)), ("semver", line("1.10.0"))],
)
def test_computed_modes_order_all_versions(mode: str, newer: VersionLineage) -> None:
    # ENT-100: newest, oldest and ancestors follow one order
    older = line("1.9.0-rc.1") if mode == "semver" else line("b")
    assert newest_version(mode, [newer, older]) is newer
    assert oldest_versions(mode, [newer, older], 1) == [older]
    assert [(one.id, one.ancestor) for one in assign_ancestors(mode, [], [newer, older])] == [
        (older.id, older.id),
        (newer.id, older.id),
    ]


def test_semantic_precedence() -> None:
    # ENT-102: numeric parts compare as numbers, a release follows its candidates, build metadata counts by id only
    ids = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-2", "1.0.0", "1.0.0+b", "1.2.0", "1.10.0"]
    assert [one.id for one in assign_ancestors("semver", [], [line(id) for id in reversed(ids)])] == [
        "1.0.0-2",
        *(id for id in ids if id != "1.0.0-2"),
    ]


def test_new_versions_in_manual_mode_form_a_line() -> None:
    # ENT-100: Versions without an ancestor are added in order of id, each after the newest; a stated ancestor stays
    settled = assign_ancestors("manual", [line("v1", "v1")], [line("v3"), line("v2"), line("x", "v1")])
    assert {one.id: one.ancestor for one in settled} == {"v1": "v1", "v2": "v1", "v3": "v2", "x": "v1"}


def test_a_new_version_never_follows_one_that_descends_from_it() -> None:
    # ENT-100: a default ancestor never closes a cycle, whatever the order of keys
    settled = assign_ancestors("manual", [], [line("a", "b"), line("b")])
    assert {one.id: one.ancestor for one in settled} == {"a": "b", "b": "b"}
    assert find_cycle(settled) is None


def test_a_version_that_loses_its_ancestor_becomes_a_root() -> None:
    # ENT-107
    assert root_ids(assign_ancestors("manual", [line("v2", "v1"), line("v3", "v2")], [])) == ["v2"]


def test_circles_are_found() -> None:
    # ancestor_circular_reference: also a cycle that a line leads into
    assert set(find_cycle([line("a", "b"), line("b", "c"), line("c", "b")]) or ()) == {"b", "c"}
    assert find_cycle([line("a", "a"), line("b", "a")]) is None


MIXED = st.lists(st.tuples(IDS, st.none() | IDS, st.integers(2020, 2023)), unique_by=lambda one: one[0], min_size=1)


@given(MIXED, st.integers(0, 3))
def test_stated_and_unstated_ancestors_at_once(made: list[tuple[str, str | None, int]], stored: int) -> None:
    # ENT-100: an unstated ancestor is the newest Version that does not descend from the new one
    before = assign_ancestors("manual", [line(id, ancestor or id, year) for id, ancestor, year in made[:stored]], [])
    added = [line(id, ancestor, year) for id, ancestor, year in made[stored:]]
    assigned = assign_ancestors("manual", before, added)
    known = {one.id: one.ancestor for one in (*before, *added) if one.ancestor is not None}
    candidates, latest = list(before), None
    for one in sorted(added, key=lambda one: one.id):
        if one.ancestor is None:
            left = [other for other in candidates if not descends(other.id, one.id, known)]
            newest = latest if latest and latest in left else newest_version("manual", left) if left else one
            known[one.id] = newest.id
            latest = one = one._replace(ancestor=newest.id)
        else:
            latest = None
        candidates.append(one)
    assert assigned == candidates or find_cycle(candidates)


def descends(id: str, ancestor: str, known: dict[str, str]) -> bool:
    """Whether a Version descends from another one, by the known ancestors."""
    for _ in known:
        id = known.get(id, id)
    return id == ancestor


@pytest.mark.parametrize("step", [-7, 1])
def test_thousands_come_at_once(step: int) -> None:
    # ENT-100: if each step read all Versions before it, 20,000 would take minutes
    ids = [f"v{n:05}" for n in range(20_000)]
    lines = [
        line(id, ids[min(max(n + step, 0), len(ids) - 1)] if n % 2 else None, 2020 + n % 9) for n, id in enumerate(ids)
    ]
    started = thread_time()
    assert len(assign_ancestors("manual", [], lines)) == len(ids)
    assert thread_time() - started < 5
