"""Messages are resolved along their chain of bases, here with definitions in memory."""

from __future__ import annotations

from typing import Any

import pytest

from annals.domain.messaging.effective_messages import effective_messages, group_references
from annals.domain.messaging.implied_values import add_implied_values
from annals.domain.messaging.resolve import (
    MAX_BASES,
    MessageDefinition,
    UnresolvedReason,
    UnresolvedReference,
    resolve_message,
)

CE = "CloudEvents/1.0"
G = "/messagegroups/g/messages/"


class Definitions:
    """Definitions by the ids of their messages, with one Version each."""

    def __init__(self, **definitions: dict[str, Any]) -> None:
        self.found = {
            id: MessageDefinition(
                f"{G}{id}/versions/1",
                {name: value for name, value in given.items() if name != "marks"},
                given.get("marks", {}),
            )
            for id, given in definitions.items()
        }

    def definition(self, xid: str) -> MessageDefinition | None:
        id = xid.removeprefix(G).removesuffix("/versions/1")
        return self.found.get(id) if xid.startswith(G) else None

    def messages(self, group: str) -> list[str] | None:
        return [G + id for id in sorted(self.found)] if group in ("/messagegroups/g", "/endpoints/e") else None


def resolve(memory: Definitions, id: str = "m") -> Any:
    return resolve_message(memory.found[id], memory)


def based_on(id: str = "b") -> dict[str, str]:
    return {"basemessageuri": G + id}


def test_a_message_without_a_base_is_itself() -> None:
    found = resolve(Definitions(m={"messageid": "m", "envelope": CE}))
    assert (found.attributes, found.bases, found.unresolved) == ({"messageid": "m", "envelope": CE}, (), None)


def test_what_is_nearer_wins_at_every_depth() -> None:
    # MS-15: along the whole chain, objects and maps are merged by member, arrays and scalars are replaced
    memory = Definitions(
        a={
            "protocol": "HTTP",
            "protocoloptions": {"headers": [1, 2], "path": "/a", "method": "PUT"},
            "datacontenttype": "x/a",
        },
        b={**based_on("a"), "protocoloptions": {"path": "/b", "query": {"deep": {"a": 1}}}},
        m={**based_on(), "protocoloptions": {"headers": [3], "query": {"deep": {"b": 2}}}},
    )
    found = resolve(memory)
    assert found.attributes == {
        **based_on(),
        "protocol": "HTTP",
        "protocoloptions": {"headers": [3], "path": "/b", "method": "PUT", "query": {"deep": {"a": 1, "b": 2}}},
        "datacontenttype": "x/a",
    }
    assert found.bases == (f"{G}b/versions/1", f"{G}a/versions/1")


@pytest.mark.parametrize(("below", "above"), [({"a": 1}, "text"), ("text", {"a": 1}), ([1], {"a": 1}), ({"a": 1}, [1])])
def test_values_of_another_kind_replace(below: Any, above: Any) -> None:
    # MS-15: a value of another kind replaces the whole value of the base
    memory = Definitions(b={"protocoloptions": {"x": below}}, m={**based_on(), "protocoloptions": {"x": above}})
    assert resolve(memory).attributes["protocoloptions"] == {"x": above}


def test_an_inline_schema_is_one_value() -> None:
    # MS-15: two documents are not merged
    memory = Definitions(
        b={"dataschema": {"type": "object", "title": "b"}}, m={**based_on(), "dataschema": {"type": "array"}}
    )
    assert resolve(memory).attributes["dataschema"] == {"type": "array"}


def test_only_what_describes_messages_is_inherited() -> None:
    # MS-15: ids, times, names and labels are not inherited
    own = {"messageid": "m", "versionid": "1", "ancestorid": "1", "epoch": 3, "createdat": "x"}
    other = {"messageid": "b", "epoch": 9, "name": "b", "description": "b", "documentation": "b", "labels": {"a": "b"}}
    found = resolve(
        Definitions(b={**other, "versionid": "7", "ancestorid": "7", "envelope": CE}, m={**own, **based_on()})
    )
    assert found.attributes == {**own, **based_on(), "envelope": CE}


def test_defaults_do_not_hide_what_a_base_states() -> None:
    # MS-16: a default of the message yields to an explicit value of any base, and wins over a default of a base
    declared = {"type": "uritemplate", "required": False}
    marks = {"envelopemetadata": {"subject": {"type": True, "required": True}}}
    memory = Definitions(
        b={"envelopemetadata": {"subject": {"type": "string", "required": True}}},
        m={**based_on(), "envelopemetadata": {"subject": {**declared, "value": "s"}}, "marks": marks},
    )
    subject = resolve(memory).attributes["envelopemetadata"]["subject"]
    assert subject == {"type": "string", "required": True, "value": "s"}


def test_what_is_stated_hides_it_though_it_equals_a_default() -> None:
    # MS-16: the clients sent both values
    memory = Definitions(
        b={"envelopemetadata": {"subject": {"required": True}}},
        m={**based_on(), "envelopemetadata": {"subject": {"required": False}}},
    )
    assert resolve(memory).attributes["envelopemetadata"] == {"subject": {"required": False}}


def test_defaults_apply_without_explicit_values() -> None:
    marks = {"envelopemetadata": {"subject": {"required": True}}}
    memory = Definitions(
        b={"envelopemetadata": {"subject": {"required": False}}, "marks": marks},
        m={**based_on(), "envelopemetadata": {"id": {}}},
    )
    assert resolve(memory).attributes["envelopemetadata"] == {"subject": {"required": False}, "id": {}}


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        (f"{G}none", UnresolvedReason.DANGLING),
        ("/messagegroups/none/messages/m", UnresolvedReason.DANGLING),
        ("https://elsewhere/messagegroups/g/messages/b", UnresolvedReason.EXTERNAL),
        ("#/messagegroups/g/messages/m", UnresolvedReason.EXTERNAL),
    ],
)
def test_an_end_that_cannot_be_followed_is_marked(uri: str, reason: UnresolvedReason) -> None:
    # MS-18: the bases that were found are merged, and `unresolved` has the reference that cannot be followed
    found = resolve(Definitions(b={"basemessageuri": uri, "envelope": CE}, m=based_on()))
    assert found.attributes["envelope"] == CE
    assert found.bases == (f"{G}b/versions/1",)
    assert found.unresolved == UnresolvedReference(uri, reason)


@pytest.mark.parametrize("length", [1, 2, 3, 10])
def test_cycles_end(length: int) -> None:
    # MS-14: cycles of any length, including a message that is its own base
    ids = [f"m{number}" for number in range(length)]
    links = {id: based_on(following) for id, following in zip(ids, [*ids[1:], ids[0]], strict=True)}
    found = resolve(Definitions(**links), "m0")
    assert found.unresolved == UnresolvedReference(f"{G}m0", UnresolvedReason.CYCLE)
    assert len(found.bases) == length - 1


def test_a_cycle_through_a_version_is_one() -> None:
    # MS-14, MS-17: a reference to a Version of the message counts as one to the message
    found = resolve(Definitions(m={"basemessageuri": f"{G}m/versions/1"}))
    assert found.unresolved == UnresolvedReference(f"{G}m/versions/1", UnresolvedReason.CYCLE)


def test_chains_have_a_bound() -> None:
    links = {f"m{number}": based_on(f"m{number + 1}") for number in range(MAX_BASES + 5)}
    found = resolve(Definitions(**links), "m0")
    assert len(found.bases) == MAX_BASES
    assert found.unresolved == UnresolvedReference(f"{G}m{MAX_BASES + 1}", UnresolvedReason.LONG)


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("JsonSchema/draft-07", "application/json"),
        ("JSONSCHEMA/draft/2020-12", "application/json"),
        ("JsonStructure/draft-04", "application/json"),
        ("Avro/1.11", "application/avro"),
        ("Protobuf/3", "application/protobuf"),
        ("XSD/1.1", "application/xml"),
        ("XMLSchema/1.1", "application/xml"),
        ("Other/1", None),
    ],
)
def test_the_type_of_data_follows_from_its_schema(format: str, expected: str | None) -> None:
    # MS-37: if the message does not state it
    found, implied = add_implied_values({"envelope": "cloudevents/1.0", "dataschemaformat": format})
    declared = {"type": "string", "required": False, "value": expected}
    assert found.get("envelopemetadata") == ({"datacontenttype": declared} if expected else None)
    assert implied == (("/envelopemetadata/datacontenttype/value",) if expected else ())


def test_the_schema_follows_from_its_uri() -> None:
    # MS-37: a declared property keeps its other members, and an explicit value stays
    given = {"envelope": CE, "dataschemauri": "http://s", "envelopemetadata": {"dataschema": {"required": True}}}
    found, implied = add_implied_values(given)
    assert found["envelopemetadata"] == {"dataschema": {"type": "uritemplate", "required": True, "value": "http://s"}}
    assert implied == ("/envelopemetadata/dataschema/value",)
    stated = {**given, "envelopemetadata": {"dataschema": {"value": "http://other"}}}
    assert add_implied_values(stated) == (stated, ())


def test_nothing_follows_without_cloudevents_or_within_another_envelope() -> None:
    # MS-37, MS-38: in structured mode `datacontenttype` of the message is the type of the envelope, not of the data
    assert add_implied_values({"dataschemaformat": "Avro/1"}) == ({"dataschemaformat": "Avro/1"}, ())
    given = {"envelope": CE, "datacontenttype": "application/cloudevents+json"}
    found, _ = add_implied_values({**given, "envelopeoptions": {"mode": "structured"}, "dataschemaformat": "Avro/1"})
    assert found["envelopemetadata"]["datacontenttype"]["value"] == "application/avro"
    found, _ = add_implied_values({**given, "datacontenttype": "text/plain", "dataschemaformat": "Avro/1"})
    assert found["envelopemetadata"]["datacontenttype"]["value"] == "text/plain"


def test_references_of_an_endpoint() -> None:
    # EP-43: each group of this registry once, in order; other references are unresolved
    memory = Definitions(m={}, n=based_on("m"))
    listed = ["/messagegroups/g", "http://x/y", "/messagegroups/none", "#/messagegroups/g", "/messagegroups/g", 5]
    found = group_references("/endpoints/e", listed, memory)
    assert found.groups == ("/endpoints/e", "/messagegroups/g")
    assert found.unresolved == (
        UnresolvedReference("http://x/y", UnresolvedReason.EXTERNAL),
        UnresolvedReference("/messagegroups/none", UnresolvedReason.DANGLING),
        UnresolvedReference("#/messagegroups/g", UnresolvedReason.EXTERNAL),
    )
    assert [each.xid for each in effective_messages(["/messagegroups/g"], memory)] == [f"{G}m", f"{G}n"]
