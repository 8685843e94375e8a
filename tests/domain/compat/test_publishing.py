"""Groups and documents written by the legacy APIs (LEG-205 to 208, 402, 502, 521 to 534, 601 to 606, 701 to 705)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from annals.domain.compat.errors import Conflict, InvalidDefinition
from annals.domain.compat.legacy_apis import FACADE
from annals.domain.decisions.commands import Command, DeleteEntities, ReplaceModel, WriteMethod, WriteTree
from annals.domain.decisions.compat.version_numbers import LIFETIME_MEMBERS
from annals.domain.decisions.world import Decision
from annals.domain.errors.problems import NotFound
from annals.domain.registry.events import EntityUpdated
from tests.support.compat_commands import URL, C, G, M, S, delete, post, put_group, source
from tests.support.registries.memory import MemoryRegistry

#: A Group without a format, so each schema has its own.
OPEN = "/schemagroups/open"
OF = f"{OPEN}/schemas/o"


@pytest.fixture
def registry() -> MemoryRegistry:
    found = MemoryRegistry(source())
    for group in (put_group(G, "Text/1"), put_group(OPEN), put_group(C, "CloudEvents")):
        found.do(group)
    return found


def facade(registry: MemoryRegistry, xid: str) -> dict[str, Any]:
    """The legacy data of an entity, without those of numbers."""
    found: dict[str, Any] = registry.get(xid).private.get(FACADE, {})
    return {name: value for name, value in found.items() if name not in LIFETIME_MEMBERS}


def outcome(decision: Decision) -> tuple[str, int | None, bool]:
    """Returns the Version in the response, its number, and whether there are events."""
    [xid] = decision.processed
    return xid.rpartition("/")[2], decision.number, bool(decision.events)


# --- Groups ----------------------------------------------------------------------------------------------------------


def test_a_group_is_put(registry: MemoryRegistry) -> None:
    # LEG-205, LEG-701: the registry stores its own name of the format, the legacy data has the client's name
    registry.do(put_group("/schemagroups/n", "xsd", description="d", labels={"a": "b"}))
    attributes = registry.get("/schemagroups/n").attributes
    assert {name: attributes[name] for name in ("format", "description", "labels")} == {
        "format": "XSD/1.1",
        "description": "d",
        "labels": {"a": "b"},
    }
    assert facade(registry, "/schemagroups/n") == {"format": "xsd"}


def test_an_unchanged_group_is_not_written(registry: MemoryRegistry) -> None:
    # LEG-206, LEG-1007
    registry.do(put_group(G, "Text/1", description="d"))
    assert not registry.do(put_group(G, "Text/1", description="d")).events


def test_what_a_group_has_beyond_the_older_api_stays(registry: MemoryRegistry) -> None:
    # LEG-205: attributes of the legacy API that the request leaves out are removed
    registry.patch(G, {"name": "n", "description": "d", "documentation": "https://d.example"})
    registry.do(put_group(G, "Text/1"))
    attributes = registry.get(G).attributes
    assert (attributes["name"], attributes["documentation"], attributes.get("description")) == (
        "n",
        "https://d.example",
        None,
    )


FORMATS: list[tuple[str, list[Command], Command, bool]] = [
    ("of an empty group, changes", [], put_group(G, "avro"), True),
    ("of an empty group, goes", [], put_group(G), True),
    ("of a group with schemas, stays", [post(S, b"1")], put_group(G, "avro"), False),
    ("and does not go", [post(S, b"1")], put_group(G), False),
    ("nor come", [post(OF, b"1", format="Text/1")], put_group(OPEN, "Text/1"), False),
    ("in other letters, is the same", [post(S, b"1")], put_group(G, "text/1"), True),
    ("of an emptied group, changes", [post(S, b"1"), delete(S)], put_group(G, "avro"), True),
    ("of an empty catalog, changes", [], put_group(C, "custom"), True),
    ("of a catalog with definitions, stays", [post(M, b"t")], put_group(C, "custom"), False),
    ("of a catalog, has letters", [post(M, b"t")], put_group(C, "cloudevents"), False),
]


@pytest.mark.parametrize(
    ("before", "command", "accepted"), [row[1:] for row in FORMATS], ids=[row[0] for row in FORMATS]
)
def test_the_format_of_a_group(
    registry: MemoryRegistry, before: list[Command], command: WriteTree, accepted: bool
) -> None:
    # LEG-303, LEG-304
    for each in before:
        registry.do(each)
    if not accepted:
        with pytest.raises(Conflict, match="LEG-303"):
            registry.do(command)
        return
    registry.do(command)
    assert command.facade is not None
    assert facade(registry, command.xid).get("format") == command.facade.format


def test_a_format_that_the_registry_changes_is_its_own(registry: MemoryRegistry) -> None:
    # LEG-701: the spelling of the client is stored as long as the format stays
    registry.do(put_group(G, "xsd11"))
    registry.patch(G, {"description": "d"})
    assert facade(registry, G) == {"format": "xsd11"}
    registry.patch(G, {"format": "Avro/1.11.0"})
    assert facade(registry, G) == {}


# --- documents -------------------------------------------------------------------------------------------------------


def test_a_document_becomes_a_version(registry: MemoryRegistry) -> None:
    # LEG-521, LEG-1208: also in the xRegistry API
    decision = registry.do(post(S, b"one", "text/plain; x=1", description="first"))
    assert outcome(decision) == ("1", 1, True)
    entity = registry.get(f"{S}/versions/1")
    attributes = {name: entity.attributes[name] for name in ("format", "contenttype", "description")}
    assert attributes == {"format": "Text/1", "contenttype": "text/plain; x=1", "description": "first"}
    assert registry.world.document(str(entity.document)) == b"one"
    assert facade(registry, entity.xid) == {}


def test_the_first_description_is_the_schema_s(registry: MemoryRegistry) -> None:
    # LEG-502
    registry.do(post(S, b"one", description="first"))
    assert facade(registry, S) == {"description": "first"}
    registry.do(post(S, b"two", description="second"))
    assert facade(registry, S) == {"description": "first"}
    decision = registry.do(replace(post(S, b"three"), facade=replace(legacy_data(post(S, b"")), description="all")))
    assert facade(registry, S) == {"description": "all"}
    assert isinstance(next(event for event in decision.events if event.xid == S), EntityUpdated)


def legacy_data(command: WriteTree) -> Any:
    return command.facade


#: The commands before, the request, and the Version in the response, its number, and whether it is new.
SENT: list[tuple[str, list[Command], Command, tuple[str, int, bool]]] = [
    ("known bytes", [post(S, b"a"), post(S, b"b")], post(S, b"a", description="other"), ("1", 1, False)),
    ("known bytes of another media type", [post(S, b"a", "text/a")], post(S, b"a", "text/b"), ("2", 2, True)),
    ("no media type is another one", [post(S, b"a", "text/a")], post(S, b"a"), ("2", 2, True)),
    ("the latest of those that match", [post(S, b"a"), post(S, b"a", id="i"), post(S, b"b")], post(S, b"a"),
     ("2", 2, False)),
    ("those that the registry wrote count", [WriteTree(f"{S}/versions/x", {"format": "Text/1", "schemabase64": "YQ==",
     "contenttype": "text/a"}, WriteMethod.PUT)], post(S, b"a", "text/a"), ("x", 1, False)),
    ("kept ones as well", [ReplaceModel(source(1)), post(S, b"a"), post(S, b"b")], post(S, b"a"), ("1", 1, False)),
    ("deleted ones do not", [post(S, b"a"), post(S, b"b"), delete(S, 1)], post(S, b"a"), ("3", 3, True)),
    ("a catalog has every document", [post(M, b"t")], post(M, b"t"), ("2", 2, True)),
    ("a new id makes a version", [post(S, b"a")], post(S, b"a", id="i"), ("2", 2, True)),
    ("a known id with its bytes", [post(S, b"a", id="i"), post(S, b"b")], post(S, b"a", id="i"), ("1", 1, False)),
    ("in the catalog too", [post(M, b"t", id="t")], post(M, b"t", id="t"), ("1", 1, False)),
    ("an id that is a path", [post(S, b"a")], post(S, b"a", id="/schemagroups/g/schemas/s/versions/1"),
     ("1", 1, False)),
    ("an id of the other façade", [post(S, b"a", id="t")], post(M, b"t", id="t"), ("1", 1, True)),
    ("one that was deleted", [post(S, b"a", id="i"), post(S, b"b"), delete(S, 1)], post(S, b"c", id="i"),
     ("3", 3, True)),
]  # fmt: skip


@pytest.mark.parametrize(("before", "command", "expected"), [row[1:] for row in SENT], ids=[row[0] for row in SENT])
def test_sent_documents_give_a_known_or_a_new_version(
    registry: MemoryRegistry, before: list[Command], command: WriteTree, expected: tuple[str, int, bool]
) -> None:
    # LEG-531 to 533, LEG-606, LEG-1007
    for each in before:
        registry.do(each)
    assert outcome(registry.do(command)) == expected


#: The commands before, the request, and its error.
REFUSED: list[tuple[str, list[Command], Command, type[Exception], str]] = [
    ("no group", [], post("/schemagroups/x/schemas/s", b"a"), NotFound, "cannot be found"),
    ("a group in other letters", [], post("/schemagroups/G/schemas/s", b"a"), NotFound, "cannot be found"),
    ("an id in other letters", [post(S, b"a")], post(f"{G}/schemas/S", b"a"), Conflict, "LEG-402"),
    ("a group's id in other letters", [], put_group("/schemagroups/G"), Conflict, "LEG-402"),
    ("a known id, other bytes", [post(S, b"a", id="i")], post(S, b"b", id="i"), Conflict, "LEG-606"),
    ("another schema's id", [post(S, b"a", id="i")], post(f"{S}2", b"a", id="i"), Conflict, "LEG-606"),
    ("of another authority", [post(S, b"a", id="i")], post(f"{S}2", b"a", id="i", authority="urn:x"), Conflict, "606"),
    ("a known URI", [post(S, b"a", id="i", authority="https://x.example/")],
     post(f"{S}2", b"b", id="HTTPS://X.example/%69"), Conflict, "LEG-606"),
    ("a kept one's id", [ReplaceModel(source(1)), post(S, b"a", id="i"), post(S, b"b")], post(f"{S}2", b"a", id="i"),
     Conflict, "LEG-606"),
    ("a path that is another's", [post(S, b"a")], post(f"{S}2", b"a", id="/schemagroups/g/schemas/s/versions/1"),
     Conflict, "LEG-606"),
    ("another authority", [post(S, b"a", authority="urn:x")], post(S, b"b", authority="urn:y"), Conflict, "LEG-605"),
    ("a first one later", [post(S, b"a")], post(S, b"b", authority="urn:y"), Conflict, "LEG-605"),
    ("a format that is not the group's", [], post(S, b"a", format="avro"), InvalidDefinition, "LEG-702"),
    ("no format at all", [], post(OF, b"a"), InvalidDefinition, "LEG-702"),
    ("another format than before", [post(OF, b"a", format="Text/1")], post(OF, b"b", format="Text/2"), Conflict,
     "LEG-702"),
    ("a catalog's other format", [], post(M, b"t", format="MQTT"), InvalidDefinition, "LEG-702"),
    ("an id that is no type", [], post(M, b"t", id="i"), InvalidDefinition, "LEG-804"),
    ("an absolute one without an authority", [], post(M, b"t", id="urn:i"), InvalidDefinition, "LEG-804"),
    ("another type", [post(M, b"t")], post(M, b"u"), Conflict, "LEG-805"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "command", "problem", "rule"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_is_refused(
    registry: MemoryRegistry, before: list[Command], command: WriteTree, problem: type[Exception], rule: str
) -> None:
    # LEG-208, 402, 533, 605, 606, 702, 804, 805
    for each in before:
        registry.do(each)
    with pytest.raises(problem, match=rule):
        registry.do(command)


#: The request, and the legacy data of its Version and its definition.
KNOWN: list[tuple[str, Command, dict[str, Any], dict[str, Any]]] = [
    ("an id", post(S, b"a", id="i"), {"id": "i", "uri": f"{URL}/compat/schemaregistry/v0.2/i"}, {}),
    ("an authority", post(S, b"a", authority="urn:x"), {"uri": "urn:x:schemagroups/g/schemas/s/versions/1"},
     {"authority": "urn:x"}),
    ("both", post(S, b"a", authority="https://x.example/", id="i"), {"id": "i", "uri": "https://x.example/i"},
     {"authority": "https://x.example/"}),
    ("a format", post(OF, b"a", format="TEXT/1"), {}, {"format": "TEXT/1"}),
    ("one that the group has", post(S, b"a", format="TEXT/1"), {}, {}),
    ("an imported type", post(M, b"t", authority="urn:x", id="urn:i"), {"id": "urn:i", "uri": "urn:i"},
     {"authority": "urn:x"}),
    ("media type and rest", post(M, b"t", "text/x", leftovers={"a": 1}), {"contenttype": "text/x", "left": {"a": 1}},
     {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "version", "definition"), [row[1:] for row in KNOWN], ids=[row[0] for row in KNOWN]
)
def test_what_the_facade_knows(
    registry: MemoryRegistry, command: WriteTree, version: dict[str, Any], definition: dict[str, Any]
) -> None:
    # LEG-601, LEG-604, LEG-701, LEG-703, LEG-1202: only data that the attributes do not have
    registry.do(command)
    stored = facade(registry, f"{command.xid}/versions/1")
    assert {name: value for name, value in stored.items() if name != "document"} == version
    assert facade(registry, command.xid) == definition


def test_a_document_of_the_catalog_is_served_until_its_attributes_change(registry: MemoryRegistry) -> None:
    # LEG-1203: attributes to which the document does not map may change
    registry.do(post(M, b"t bytes", "application/json"))
    version = f"{M}/versions/1"
    assert registry.world.document(facade(registry, version)["document"]) == b"t bytes"
    registry.patch(version, {"description": "d", "name": "n"})
    assert facade(registry, version).keys() == {"document", "contenttype"}
    registry.patch(version, {"envelopemetadata": {"type": {"value": "u"}}})
    assert facade(registry, version) == {}


def test_a_spelling_goes_with_its_format(registry: MemoryRegistry) -> None:
    # LEG-701
    registry.do(post(OF, b"a", format="TEXT/1"))
    registry.patch(f"{OF}/versions/1", {"description": "d"})
    assert facade(registry, OF) == {"format": "TEXT/1"}
    registry.patch(f"{OF}/versions/1", {"format": "Text/2"})
    assert facade(registry, OF) == {}


def test_models_may_show_what_the_facade_knows() -> None:
    # LEG-1202: in read-only attributes with these names only
    model = source()
    declared = {name: {"type": "uri", "readonly": True} for name in ("authority", "versionuri")}
    model["groups"]["schemagroups"]["resources"]["schemas"]["attributes"] |= declared
    registry = MemoryRegistry(model)
    registry.do(put_group(G, "Text/1"))
    registry.do(post(S, b"a", authority="https://x.example", id="i"))
    registry.patch(f"{S}/versions/1", {"description": "d"})
    registry.put(f"{S}/versions/1", {"format": "Text/1"})
    found = registry.get(S).attributes
    assert (found["authority"], found["versionuri"]) == ("https://x.example", "https://x.example/i")


def test_the_same_change_by_the_registry_is_the_same_event(registry: MemoryRegistry) -> None:
    # LEG-1202: except for the legacy data
    other = MemoryRegistry(source())
    for group in (put_group(G, "Text/1"), put_group(OPEN), put_group(C, "CloudEvents")):
        other.do(group)
    one = registry.do(post(S, b"a", "text/a", id="i", description="d")).events
    tree = {"format": "Text/1", "contenttype": "text/a", "description": "d"}
    two = other.do(WriteTree(S, tree, WriteMethod.POST, document=b"a")).events

    def plain(events: Any) -> list[Any]:
        return [
            event.model_dump() | {"private": {n: v for n, v in event.private.items() if n != FACADE}}
            for event in events
        ]

    assert plain(one) == plain(two)


@pytest.mark.parametrize("place", [f"{S}/versions/9", f"{S}2/versions/2", "/schemagroups/none/schemas/s/versions/1"])
def test_an_id_that_is_the_path_of_nothing_yet(registry: MemoryRegistry, place: str) -> None:
    # LEG-606, LEG-608: an id cannot be the path of another Version that may exist later
    registry.do(post(S, b"a"))
    with pytest.raises(Conflict, match="path of another"):
        registry.do(post(f"{S}2", b"a", id=place))
    registry.do(post(f"{S}2", b"a", id=f"{S}2/versions/1"))


X = "https://x.example/r"
#: The commands before, and an authority and an id that claim the future default URI of another Version.
CLAIMS: list[tuple[str, list[Command], str, str, str]] = [
    ("by a path", [post(S, b"a", authority=X)], S, X, "/schemagroups/g/schemas/s/versions/2"),
    ("by a URI", [post(S, b"a", authority=X)], S, X, f"{X}/schemagroups/g/schemas/s/versions/2"),
    ("in other letters", [post(S, b"a", authority=X)], S, X, "HTTPS://X.example/r/schemagroups/%67/schemas/s/versions/2"),
    ("later ones too", [post(S, b"a", authority=X)], S, X, "schemagroups/g/schemas/s/versions/99"),
    ("by another authority", [post(S, b"a", authority=X)], S, "urn:y", f"{X}/schemagroups/g/schemas/s/versions/2"),
    ("by a part of the path", [post(S, b"a", authority=X)], S, f"{X}/schemagroups/g/schemas", "s/versions/2"),
    ("of a name", [post(S, b"a", authority="urn:x:")], S, "urn:x", "schemagroups/g/schemas/s/versions/2"),
    ("behind numbers that are gone", [post(S, b"a", authority=X), post(S, b"b"), delete(S, 2)], S, X,
     "/schemagroups/g/schemas/s/versions/3"),
    ("in the catalog", [post(M, b"t", authority=X)], M, X, f"{X}/messagecatalog/c/messagedefinitions/m/versions/2"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "xid", "authority", "id"), [row[1:] for row in CLAIMS], ids=[row[0] for row in CLAIMS]
)
def test_the_future_uri_of_another_version_is_refused(
    registry: MemoryRegistry, before: list[Command], xid: str, authority: str, id: str
) -> None:
    # LEG-606: under a foreign authority as under the registry's own
    for each in before:
        registry.do(each)
    with pytest.raises(Conflict, match=r'"id" .*\(LEG-606\)'):
        registry.do(post(f"{xid}2", b"t", authority=authority, id=id))
    assert registry.find(f"{xid}2") is None
    registry.do(post(xid, b"t 2"))


@pytest.mark.parametrize(
    ("before", "id"),
    [
        ([], "/schemagroups/g/schemas/s/versions/2"),
        ([post(S, b"a", authority="urn:y")], "/schemagroups/g/schemas/s/versions/2"),
        ([post(S, b"a")], "/schemagroups/g/schemas/s/versions/2"),
        ([post(S, b"a", authority=X, id="i")], "/schemagroups/g/schemas/s/versions/1"),
        ([post(S, b"a", authority=X)], "/schemagroups/g/schemas/S/versions/2"),
        ([post(S, b"a", authority=X)], "/schemagroups/g/schemas/s/versions/02"),
        ([post(S, b"a", authority=X)], "/schemagroups/g/schemas/s2/versions/7"),
        ([post(S, b"a", authority=X), delete(S)], "/schemagroups/g/schemas/s/versions/2"),
    ],
)
def test_what_imports_may_be_named(registry: MemoryRegistry, before: list[Command], id: str) -> None:
    # LEG-903 to 905: a copy keeps the URI and the number of its source, whatever its id is here
    for each in before:
        registry.do(each)
    assert registry.do(post(f"{S}2", b"b", authority=X, id=f"{X}{id}")).number == 1


def test_a_uri_that_another_has_already(registry: MemoryRegistry) -> None:
    # LEG-606: the error of the later request says how to resolve the conflict
    registry.do(post(f"{S}2", b"a", authority=X, id="/schemagroups/g/schemas/s/versions/1"))
    with pytest.raises(Conflict, match=r'has this URI; give this one an "id" of its own \(LEG-606\)'):
        registry.do(post(S, b"a", authority=X))
    registry.do(post(S, b"a", authority=X, id="s-1"))


def test_a_version_that_would_not_last_is_refused() -> None:
    # LEG-521, LEG-707: the Version in the response has to exist
    model = source(1)
    model["groups"]["schemagroups"]["resources"]["schemas"] |= {"versionmode": "createdat", "singleversionroot": True}
    registry = MemoryRegistry(model)
    registry.do(put_group(G, "Text/1"))
    registry.put(f"{S}/versions/x", {"format": "Text/1", "createdat": "2999-01-01T00:00:00Z"})
    with pytest.raises(Conflict, match="older than every"):
        registry.do(post(S, b"a"))


def test_a_deleted_group_takes_all(registry: MemoryRegistry) -> None:
    # LEG-200 (S4, S6), LEG-1208
    registry.do(post(S, b"a"))
    registry.do(delete(f"{G}/schemas"))
    assert (registry.find(S), registry.find(G) is not None) == (None, True)
    registry.do(post(S, b"a"))
    assert not registry.do(delete(f"{C}/messages")).events
    registry.do(delete(G))
    assert registry.find(G) is None
    with pytest.raises(NotFound):
        registry.do(DeleteEntities(f"{G}/schemas", facade=delete(G).facade))
