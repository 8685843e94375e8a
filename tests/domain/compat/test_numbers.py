"""The numbers of the Versions of a definition (LEG-405 to 409, LEG-210)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.domain.compat.errors import Conflict
from annals.domain.compat.legacy_apis import FACADE, is_number, legacy_api_of, version_number
from annals.domain.compat.number_ranges import NumberRanges
from annals.domain.decisions.commands import DeleteEntities, ReplaceModel, Restore, WriteMethod, WriteTree
from annals.domain.errors.problems import Problem
from tests.support.compat_commands import C, G, M, S, delete, post, put_group, source
from tests.support.registries.memory import MemoryRegistry


@pytest.fixture
def registry() -> MemoryRegistry:
    found = MemoryRegistry(source())
    found.do(put_group(G, "Text/1"))
    found.do(put_group(C, "CloudEvents"))
    return found


def numbers(registry: MemoryRegistry, xid: str) -> dict[str, int]:
    """Returns the number of each live Version and each retained one."""
    retained = {one.xid.rpartition("/")[2]: one.number for one in registry.world.publications.retained_versions(xid)}
    return retained | {id: version_number(id, entity.private) for id, entity in registry.versions(xid).items()}


def versions(*ids: str, **more: Any) -> WriteTree:
    return WriteTree(f"{S}/versions", {id: {"format": "Text/1", **more} for id in ids}, WriteMethod.POST)


def oldest_first(maxversions: int) -> ReplaceModel:
    """Gives schemas a limit of Versions, and the order of their creation."""
    model = source(maxversions)
    model["groups"]["schemagroups"]["resources"]["schemas"]["versionmode"] = "createdat"
    return ReplaceModel(model)


LONG_AGO = "1990-01-01T00:00:00Z"
#: An id of digits that is too large to be used as a number.
LONG = str(10**15)
#: Sequences of commands, and the numbers of the schema's Versions after them.
GIVEN: list[tuple[str, list[Any], dict[str, int]]] = [
    ("ids are numbers", [versions("1", "3", "10")], {"1": 1, "3": 3, "10": 10}),
    ("names come after the highest", [versions("b", "7", "a")], {"7": 7, "a": 8, "b": 9}),
    ("no number is 0, has zeros before it or a sign", [versions("0", "02", "5")], {"5": 5, "0": 6, "02": 7}),
    ("a number may be a name's already", [versions("a"), versions("1")], {"a": 1, "1": 2}),
    ("names are in the order of their creation", [versions("z"), versions("a")], {"z": 1, "a": 2}),
    ("what was deleted is not given again", [versions("1", "2", "a"), delete(S, 3), versions("b")],
     {"1": 1, "2": 2, "b": 4}),
    ("nor to its own id", [versions("1", "2"), DeleteEntities(f"{S}/versions/2"), versions("2")], {"1": 1, "2": 3}),
    ("after all of them, it begins again", [versions("1", "2"), DeleteEntities(S), versions("2", "a")],
     {"2": 2, "a": 3}),
    ("so it does after the last", [versions("a"), DeleteEntities(f"{S}/versions/a"), versions("b")], {"b": 1}),
    ("a façade's version is above every id", [versions("3", "10"), post(S, b"1"), versions("b")],
     {"3": 3, "10": 10, "11": 11, "b": 12}),
    ("above what was deleted", [versions("1", "10"), DeleteEntities(f"{S}/versions/10"), post(S, b"1")],
     {"1": 1, "11": 11}),
    ("above what was pruned", [ReplaceModel(source(1)), versions("7"), versions("2"), post(S, b"1")],
     {"7": 7, "2": 2, "8": 8}),
    ("above ids that are no numbers and have none of their own", [versions("9", "a"), versions("10"), post(S, b"1")],
     {"9": 9, "a": 10, "10": 11, "12": 12}),
    ("its id is no version's, a name of many digits", [versions(LONG), versions("9" * 15), post(S, b"1")],
     {LONG: 1, "9" * 15: 10**15 - 1, str(10**15 + 1): 10**15 + 1}),
    ("nor a kept one's", [ReplaceModel(source(1)), versions(LONG), versions("9" * 15), post(S, b"1")],
     {LONG: 1, "9" * 15: 10**15 - 1, str(10**15 + 1): 10**15 + 1}),
    ("the registry's own ids go on behind it", [versions("10"), post(S, b"1"), WriteTree(S, {"format": "Text/1"},
     WriteMethod.POST)], {"10": 10, "11": 11, "12": 12}),
    ("a façade's id is its number", [post(S, b"1"), post(S, b"2")], {"1": 1, "2": 2}),
    ("and skips numbers of names", [versions("a", "b"), post(S, b"1")], {"a": 1, "b": 2, "3": 3}),
    ("and ids", [post(S, b"1"), versions("2"), post(S, b"2")], {"1": 1, "2": 2, "3": 3}),
    ("and numbers that are gone", [post(S, b"1"), post(S, b"2"), delete(S, 2), post(S, b"3")], {"1": 1, "3": 3}),
    ("pruned ones keep theirs", [ReplaceModel(source(1)), post(S, b"1"), post(S, b"2"), versions("a")],
     {"1": 1, "2": 2, "a": 3}),
    ("also when their id is written again", [ReplaceModel(source(1)), versions("a"), versions("b"), versions("a")],
     {"a": 1, "b": 2}),
    ("a restored counter is no highest number",
     [post(S, b"1"), post(S, b"2"), post(S, b"3"), DeleteEntities(S), versions("7", "8"), Restore(f"{S}/meta", 16),
      versions("9"), post(S, b"4"), versions("b")], {"7": 7, "8": 8, "9": 9, "10": 10, "b": 11}),
    ("nor one of a Version that was pruned at once",
     [oldest_first(2), post(S, b"1"), post(S, b"2"), WriteTree(S, {"format": "Text/1", "createdat": LONG_AGO},
      WriteMethod.POST), oldest_first(0), versions("9"), post(S, b"3"), versions("b")],
     {"1": 1, "2": 2, "9": 9, "10": 10, "b": 11}),
    ("created and pruned at once, there was none", [ReplaceModel(source(1)), versions("a", "b")], {"b": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("commands", "expected"), [row[1:] for row in GIVEN], ids=[row[0] for row in GIVEN])
def test_each_version_has_a_number(registry: MemoryRegistry, commands: list[Any], expected: dict[str, int]) -> None:
    # LEG-405, LEG-406, LEG-409, LEG-210: the id if it is an unused integer, else one more than the highest number ever
    for command in commands:
        registry.do(command)
    assert numbers(registry, S) == expected


def test_ordinary_versions_store_no_number(registry: MemoryRegistry) -> None:
    # LEG-405: a number that equals the id is not stored
    decision = registry.do(versions("1", "2", "30"))
    assert {event.xid for event in decision.events if FACADE in event.private} == {G}


def test_a_deletion_records_its_number(registry: MemoryRegistry) -> None:
    # LEG-405, LEG-1001: the event about a deleted Version is made from the deletion alone
    registry.do(versions("1", "a"))
    found = {event.xid: event.private for event in registry.do(DeleteEntities(G)).events if "versions" in event.xid}
    assert found == {f"{S}/versions/1": {}, f"{S}/versions/a": {"number": 2}}


def test_the_newest_semantic_version_is_the_latest() -> None:
    # LEG-407: Versions of one request are numbered in the order of the type, in which 1.10.0 is newer than 1.9.0
    model = source()
    model["groups"]["schemagroups"]["resources"]["schemas"] |= {"versionmode": "semver", "singleversionroot": True}
    registry = MemoryRegistry(model)
    registry.do(versions("1.9.0", "1.10.0", "1.0.0"))
    assert numbers(registry, S) == {"1.0.0": 1, "1.9.0": 2, "1.10.0": 3}


#: Commands after which a façade adds a Version without reading the others, and its number.
APPENDED: list[tuple[str, list[Any], str, int]] = [
    ("a schema", [post(S, b"1"), post(S, b"2")], S, 3),
    ("a message definition", [post(M, b"t 1"), post(M, b"t 2")], M, 3),
    ("ids that are no numbers", [versions("a", "b")], S, 3),
    ("a deleted one", [post(S, b"1"), post(S, b"2"), post(S, b"3"), delete(S, 2)], S, 4),
    ("pruned ones", [ReplaceModel(source(2)), *(post(S, b"%d" % number) for number in range(1, 6))], S, 6),
]


@pytest.mark.parametrize(("commands", "xid", "number"), [row[1:] for row in APPENDED], ids=[row[0] for row in APPENDED])
def test_adding_a_version_reads_no_others(
    registry: MemoryRegistry, monkeypatch: pytest.MonkeyPatch, commands: list[Any], xid: str, number: int
) -> None:
    # LEG-406, LEG-531: the next number and a repeated document are found without the list, so the 1,000th costs
    # what the first does
    for command in commands:
        registry.world.version_chains |= registry.do(command).version_chains
    monkeypatch.setattr(registry.world, "members", lambda collection: pytest.fail(f"{collection} was read"))
    assert registry.do(post(xid, b"t new")).number == number
    if xid == S:
        assert registry.do(post(xid, b"t new")).events == ()


def test_restored_versions_have_their_numbers_again(registry: MemoryRegistry) -> None:
    # LEG-210: a restored Version is the same Version, unless its schema was deleted in between
    registry.do(versions("1", "a", "b"))
    then = len(registry.log)
    registry.do(delete(S, 2))
    registry.do(versions("c"))
    registry.do(Restore(S, then))
    assert numbers(registry, S) == {"1": 1, "a": 2, "b": 3}
    registry.do(versions("d"))
    assert numbers(registry, S) == {"1": 1, "a": 2, "b": 3, "d": 5}


def test_a_schema_created_again_has_new_numbers(registry: MemoryRegistry) -> None:
    # LEG-409, LEG-210: in a schema that was created again, an old number may belong to another Version
    registry.do(versions("1", "a"))
    then = len(registry.log)
    registry.do(DeleteEntities(S))
    registry.do(versions("1", "x"))
    registry.do(Restore(f"{S}/versions/a", then))
    assert numbers(registry, S) == {"1": 1, "x": 2, "a": 3}
    registry.do(DeleteEntities(S))
    registry.do(Restore(S, then))
    assert numbers(registry, S) == {"1": 1, "a": 2}


def test_restoring_forgets_what_came_later() -> None:
    # LEG-707, FLAG-81: the latest Version is again the old one
    registry = MemoryRegistry(source(1))
    registry.do(put_group(C, "CloudEvents"))
    registry.do(post(M, b"t 1"))
    then = len(registry.log)
    registry.do(post(M, b"t 2"))
    registry.do(post(M, b"t 3"))
    decision = registry.do(Restore(M, then))
    gone = {event.xid: event.reason for event in decision.events if hasattr(event, "reason")}
    assert gone == {f"{M}/versions/2": "forgotten", f"{M}/versions/3": "deleted"}
    assert numbers(registry, M) == {"1": 1}


@given(st.sets(st.integers(1, 40)), st.sets(st.integers(1, 40)), st.sets(st.integers(1, 40)))
def test_number_ranges_are_sets(first: set[int], more: set[int], less: set[int]) -> None:
    # LEG-210: the same set of numbers always gives the same text, which is parsed back
    found = NumberRanges().with_numbers(first).with_numbers(more).without_numbers(less)
    expected = (first | more) - less
    assert {number for number in range(42) if found.contains(number)} == expected
    assert found.highest == max(expected, default=0)
    assert NumberRanges.parse(found.text) == found == NumberRanges().with_numbers(expected)


def test_number_ranges_are_short() -> None:
    assert NumberRanges().with_numbers((*range(1, 42), 44)).text == "1-41,44"


@pytest.mark.parametrize("text", ["0", "01", "", "-1", "+1", "1.0", "٣", "1 ", "²"])
def test_what_is_no_number(text: str) -> None:
    # LEG-209: decimal, from 1 on, without leading zeros
    assert not is_number(text)


@pytest.mark.parametrize(
    ("xid", "name"),
    [
        (G, "schemaregistry"),
        (S, "schemaregistry"),
        (f"{S}/versions/1", "schemaregistry"),
        (C, "messagecatalog"),
        (M, "messagecatalog"),
        ("/endpoints/e/messages/m", None),
        ("/schemagroups", None),
        (f"{G}/schemas", None),
        (f"{S}/versions", None),
        (f"{S}/meta", None),
        ("/schemagroups/g/messages/m", None),
        ("/", None),
    ],
)
def test_families(xid: str, name: str | None) -> None:
    # LEG-1205: messages of endpoints are not in the catalog
    family = legacy_api_of(xid)
    assert (family.name if family else None) == name


def test_versions_from_before_there_were_numbers(registry: MemoryRegistry) -> None:
    # LEG-405: they get numbers with the next change to the Versions of their schema, by `refreshed` events
    registry.do(versions("a", "b"))
    for entity in (registry.get(S), *registry.versions(S).values()):
        entity.private.pop(FACADE)
    decision = registry.do(versions("5"))
    assert numbers(registry, S) == {"a": 1, "b": 2, "5": 5}
    kinds = {event.xid.rpartition("/")[2]: type(event).__name__ for event in decision.events}
    assert (kinds["a"], kinds["b"]) == ("EntityRefreshed", "EntityRefreshed")


def test_they_come_before_what_a_facade_adds(registry: MemoryRegistry) -> None:
    # LEG-406, LEG-407: the added Version is the latest, also if the others have no number yet
    registry.do(versions("a", "b"))
    for entity in (registry.get(S), *registry.versions(S).values()):
        entity.private.pop(FACADE)
    assert registry.do(post(S, b"1")).number == 3
    assert numbers(registry, S) == {"a": 1, "b": 2, "3": 3}


@pytest.mark.parametrize("mode", ["manual", "createdat", "modifiedat"])
@pytest.mark.parametrize("sticky", [False, True])
def test_what_a_facade_adds_is_the_latest(mode: str, sticky: bool) -> None:
    # LEG-406, LEG-407: even if the xRegistry API has a newer or a default Version
    model = source()
    model["groups"]["schemagroups"]["resources"]["schemas"] |= {"versionmode": mode}
    registry = MemoryRegistry(model)
    registry.do(put_group(G, "Text/1"))
    registry.do(versions("3", "12", "a", createdat="2999-01-01T00:00:00Z"))
    if sticky:
        registry.patch(f"{S}/meta", {"defaultversionid": "3", "defaultversionsticky": True})
    assert registry.do(post(S, b"1")).number == 14
    assert numbers(registry, S) == {"3": 3, "12": 12, "a": 13, "14": 14}
    assert registry.do(post(S, b"2")).number == 15


def test_semantic_versions_leave_a_facade_no_id() -> None:
    # LEG-406: a number is not a semantic version
    model = source()
    model["groups"]["schemagroups"]["resources"]["schemas"] |= {"versionmode": "semver", "singleversionroot": True}
    registry = MemoryRegistry(model)
    registry.do(put_group(G, "Text/1"))
    registry.do(versions("1.0.0"))
    with pytest.raises(Conflict, match="semver"):
        registry.do(post(S, b"1"))


def test_a_stuck_number_is_refused(registry: MemoryRegistry) -> None:
    # LEG-606: under a foreign authority, the default URI of the next Version may already belong to another Version
    registry.do(post(S, b"1", authority="https://x.example", id="/schemagroups/g/schemas/s/versions/2"))
    with pytest.raises(Problem, match="has this URI"):
        registry.do(post(S, b"2"))
