"""Events of the legacy APIs as a function of the log: which ones a stored event results in, and their form."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from cloudevents.core.bindings import http
from cloudevents.core.formats.json import JSONFormat

from annals.commands.store.database.registry_url import UNCONFIGURED_URL
from annals.commands.store.hashes import Interaction
from annals.commands.store.mapper import UnknownTopic
from annals.domain.compat.legacy_apis import LEGACY_APIS, MESSAGECATALOG, SCHEMAREGISTRY, LegacyApi
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityEvent, EntityRefreshed, EntityUpdated
from annals.projections.compat.events import CompatEvents
from annals.projections.events.event_families import EventFamily as Kind
from annals.projections.events.event_families import XRegistryFamily, published_events
from annals.projections.events.xregistry_events import ChangeEvent, XRegistryEvents
from tests.projections.events.test_xregistry_events import CAUGHT_UP, NOON, event, row

BORN, CHANGED = "2020-02-02T02:02:02Z", "2021-03-03T03:03:03.123456789Z"
TIMES = {"createdat": BORN, "modifiedat": CHANGED}
BASE = "https://registry.example/compat/schemaregistry/v0.2"


def messages(family: LegacyApi, *events: EntityEvent, of: Interaction = CAUGHT_UP) -> list[ChangeEvent]:
    rows = [row(position, each) for position, each in enumerate(events, of.first)]
    return list(CompatEvents(family).messages(of, rows))


def describe(*events: EntityEvent) -> list[str]:
    """The events of both legacy APIs that stored events result in: action, subject and time."""
    found = [(family, message) for family in LEGACY_APIS for message in messages(family, *events)]
    prefixes = {family: f"{family.events}." for family in LEGACY_APIS}
    return [
        f"{message.type.removeprefix(prefixes[family])} {message.subject} {message.time}" for family, message in found
    ]


def group(kind: type[EntityEvent] = EntityCreated, xid: str = "/schemagroups/g", **facts: Any) -> EntityEvent:
    return event(kind, xid, **{"attributes": {"description": "d", **TIMES}} | facts)


def definition(kind: type[EntityEvent] = EntityCreated, xid: str = "/schemagroups/g/schemas/s") -> EntityEvent:
    meta = {"createdat": BORN, "modifiedat": CHANGED}
    return event(kind, xid, attributes={"modifiedat": BORN, "createdat": BORN, "meta": meta})


def version(kind: type[EntityEvent] = EntityCreated, id: str = "1", number: int | None = None) -> EntityEvent:
    private = {"facade": {"number": number}} if number else {}
    return event(kind, f"/schemagroups/g/schemas/s/versions/{id}", attributes=TIMES, private=private)


def gone(xid: str, reason: Any = "deleted", **private: Any) -> EntityEvent:
    return event(EntityDeleted, xid, attributes={}, private=private, reason=reason)


VERSION = "/schemagroups/g/schemas/s/versions"


def test_an_event_whole() -> None:
    # LEG-1002, LEG-1005, EV-16: type, source and subject are those of the legacy API; no data; the id has the family
    [message] = messages(SCHEMAREGISTRY, version())
    assert message.xid == f"{VERSION}/1"
    assert json.loads(message.json()) == {
        "specversion": "1.0",
        "id": "c.0.cloudevents.schemaregistry.updated.v1",
        "source": BASE,
        "type": "io.cloudevents.schemaregistry.updated.v1",
        "subject": f"{VERSION}/1",
        "time": BORN,
        "xregcorrelationid": "c",
    }
    [message] = messages(MESSAGECATALOG, gone("/messagegroups/g/messages/m", "deleted"))
    assert message.xid == "/messagegroups/g/messages/m"
    assert json.loads(message.json()) == {
        "specversion": "1.0",
        "id": "c.0.cloudevents.messagecatalog.deleted.v1",
        "source": "https://registry.example/compat/messagecatalog/v0.1",
        "type": "io.cloudevents.messagecatalog.deleted.v1",
        "subject": "/messagecatalog/g/messagedefinitions/m",
        "time": NOON,
        "xregcorrelationid": "c",
    }


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        # LEG-1001: creations and updates are both `updated`, with the stored time of the object's last change
        (group(), f"updated.v1 /schemagroups/g {CHANGED}"),
        (group(EntityUpdated), f"updated.v1 /schemagroups/g {CHANGED}"),
        (group(xid="/messagegroups/g"), f"updated.v1 /messagecatalog/g {CHANGED}"),
        (definition(), f"updated.v1 /schemagroups/g/schemas/s {CHANGED}"),
        (definition(EntityUpdated), f"updated.v1 /schemagroups/g/schemas/s {CHANGED}"),
        (
            definition(xid="/messagegroups/g/messages/m"),
            f"updated.v1 /messagecatalog/g/messagedefinitions/m {CHANGED}",
        ),
        # Section 10: versions have the time of their creation, updated or not
        (version(), f"updated.v1 {VERSION}/1 {BORN}"),
        (version(EntityUpdated), f"updated.v1 {VERSION}/1 {BORN}"),
        # Section 10: of deletions the time of the deletion
        (gone("/schemagroups/g"), f"deleted.v1 /schemagroups/g {NOON}"),
        (gone("/schemagroups/g/schemas/s"), f"deleted.v1 /schemagroups/g/schemas/s {NOON}"),
        (gone(f"{VERSION}/7"), f"deleted.v1 {VERSION}/7 {NOON}"),
        # LEG-405: a number that is not the id
        (version(id="v1", number=3), f"updated.v1 {VERSION}/3 {BORN}"),
        (version(EntityUpdated, id="2", number=12), f"updated.v1 {VERSION}/12 {BORN}"),
        (gone(f"{VERSION}/v1", number=3), f"deleted.v1 {VERSION}/3 {NOON}"),
        (gone(f"{VERSION}/2", number=12), f"deleted.v1 {VERSION}/12 {NOON}"),
        # LEG-707: a pruned Version is retained; it has an event when it is forgotten
        (gone(f"{VERSION}/2", "pruned"), None),
        (gone(f"{VERSION}/2", "pruned", number=12), None),
        (gone(f"{VERSION}/2", "forgotten", number=2), f"deleted.v1 {VERSION}/2 {NOON}"),
        (gone(f"{VERSION}/2", "forgotten", number=12), f"deleted.v1 {VERSION}/12 {NOON}"),
        # a Version without a number, which predates numbers, is not in the legacy API
        (version(id="v1"), None),
        (version(id="01"), None),
        (gone(f"{VERSION}/v1"), None),
        # EV-47: a refresh is no update
        (event(EntityRefreshed, f"{VERSION}/1", attributes=TIMES), None),
        # LEG-401, LEG-404, LEG-1005: ids as path segments of the legacy APIs, without a colon
        (group(xid="/schemagroups/a:B~c"), f"updated.v1 /schemagroups/a%3AB~c {CHANGED}"),
        (group(xid="/schemagroups/_~my~20msg~21"), f"updated.v1 /schemagroups/my%20msg! {CHANGED}"),
        (
            definition(xid="/messagegroups/a:b/messages/_~a~2Fb~3Ac~E2~82~AC"),
            f"updated.v1 /messagecatalog/a%3Ab/messagedefinitions/a%2Fb%3Ac%E2%82%AC {CHANGED}",
        ),
        (gone("/schemagroups/_~a~2Fb/schemas/x:y"), f"deleted.v1 /schemagroups/a%2Fb/schemas/x%3Ay {NOON}"),
        # LEG-1205 and the last row of section 10: no events of endpoints, their messages, the registry and other types
        (event(EntityUpdated, "/"), None),
        (event(EntityUpdated, "/model", changed=("model",)), None),
        (event(EntityUpdated, "/capabilities"), None),
        (event(EntityCreated, "/endpoints/e", attributes=TIMES), None),
        (definition(xid="/endpoints/e/messages/m"), None),
        (definition(xid="/schemagroups/g/notes/n"), None),
        (gone("/schemagroups/g/notes/n/versions/1"), None),
        (group(xid="/schemagroupsall/g"), None),
        # a change of `deprecated` has no second event
        (group(EntityUpdated, deprecated_changed=("removal",)), f"updated.v1 /schemagroups/g {CHANGED}"),
        # SUB-112: subscriptions have no events
        (event(EntityCreated, "/subscriptions/s"), None),
        # attributes with such names do not mislead, nor do numbers beyond those of the fast reader
        (group(attributes={**TIMES, "reason": "pruned", "number": 3}), f"updated.v1 /schemagroups/g {CHANGED}"),
        (group(attributes={**TIMES, "n": Decimal("1e400")}), f"updated.v1 /schemagroups/g {CHANGED}"),
    ],
)
def test_messages_of_a_stored_event(given: EntityEvent, wanted: str | None) -> None:
    assert describe(given) == ([wanted] if wanted else [])


@pytest.mark.parametrize("kind", [EntityCreated, EntityUpdated])
def test_a_pointer_has_its_own_time(kind: type[EntityEvent]) -> None:
    # LEG-1207, LEG-1001: the event of a definition with an xref has the time of its own change
    given = event(
        kind,
        "/schemagroups/g/schemas/s",
        attributes={"schemaid": "s", "meta": {"schemaid": "s", "xref": "/schemagroups/g/schemas/t"}},
        private={"own": TIMES},
    )
    assert describe(given) == [f"updated.v1 /schemagroups/g/schemas/s {CHANGED}"]


DELETION = (
    gone("/schemagroups/g"),
    gone("/schemagroups/g/schemas/a"),
    gone("/schemagroups/g/schemas/a/versions/10"),
    gone("/schemagroups/g/schemas/a/versions/9", "forgotten", number=9),
    gone("/schemagroups/g/schemas/b"),
    gone("/schemagroups/g/schemas/b/versions/v1", number=1),
)


def test_each_object_of_a_deleted_group_has_an_event() -> None:
    # LEG-1004: Group, definitions and numbers have events, in log order, so a reader of one definition gets its own;
    # EV-16: ids
    found = messages(SCHEMAREGISTRY, *DELETION)
    assert [(each.id, each.subject) for each in found] == [
        ("c.0.cloudevents.schemaregistry.deleted.v1", "/schemagroups/g"),
        ("c.1.cloudevents.schemaregistry.deleted.v1", "/schemagroups/g/schemas/a"),
        ("c.2.cloudevents.schemaregistry.deleted.v1", "/schemagroups/g/schemas/a/versions/10"),
        ("c.3.cloudevents.schemaregistry.deleted.v1", "/schemagroups/g/schemas/a/versions/9"),
        ("c.4.cloudevents.schemaregistry.deleted.v1", "/schemagroups/g/schemas/b"),
        ("c.5.cloudevents.schemaregistry.deleted.v1", "/schemagroups/g/schemas/b/versions/1"),
    ]


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_part_of_an_interaction_results_in_a_part_of_its_events(size: int) -> None:
    # LEG-1006, SUB-114: an interaction that is read in pieces has the same events as one that is read at once
    rows = [row(position, each) for position, each in enumerate(DELETION, CAUGHT_UP.first)]
    pieces = [rows[start : start + size] for start in range(0, len(rows), size)]
    found = [message for piece in pieces for message in CompatEvents(SCHEMAREGISTRY).messages(CAUGHT_UP, piece)]
    assert found == messages(SCHEMAREGISTRY, *DELETION)


def test_no_registry_event_for_objects_of_the_legacy_apis_only() -> None:
    # LEG-707: no xRegistry event of a forgotten Version; one of all others, whatever their attributes look like
    rows = [row(position, each) for position, each in enumerate(DELETION, CAUGHT_UP.first)]
    assert [each.position for each in XRegistryEvents().messages(CAUGHT_UP, rows)] == [5, 6, 7, 9, 10]
    lookalike = group(EntityUpdated, attributes={"a": ',"reason":"forgotten",', "reason": "forgotten", "z": 1})
    assert len(list(XRegistryEvents().messages(CAUGHT_UP, [row(5, lookalike)]))) == 1


def test_families_side_by_side() -> None:
    # SUB-113: in the order of the log; of each stored event, the registry's own event is first
    families: list[Kind] = [XRegistryFamily(XRegistryEvents()), *map(CompatEvents, LEGACY_APIS)]
    events = [group(), group(xid="/messagegroups/g"), event(EntityUpdated), gone(f"{VERSION}/2", "forgotten", number=2)]
    rows = [row(position, each) for position, each in enumerate(events, CAUGHT_UP.first)]
    found = list(published_events(families, CAUGHT_UP, iter(rows)))
    assert [(family.name, message.position) for family, message in found] == [
        *(("xregistry", 5), ("schemaregistry", 5), ("xregistry", 6), ("messagecatalog", 6), ("xregistry", 7)),
        ("schemaregistry", 8),
    ]
    assert len({message.id for _, message in found}) == len(found)
    for family in families:
        alone = list(published_events([family], CAUGHT_UP, iter(rows)))
        assert alone == [each for each in found if each[0] is family]


@pytest.mark.parametrize(
    ("recorded", "root"),
    [("https://x.example/registry", "https://x.example/registry"), ("https://x.example/", "https://x.example")],
)
def test_the_source_is_the_base_of_its_day(recorded: str, root: str) -> None:
    # LEG-101, LEG-106: the source is below the public URL that is stored with the interaction
    [message] = messages(SCHEMAREGISTRY, group(), of=CAUGHT_UP._replace(registry_url=recorded))
    assert message.source == f"{root}/compat/schemaregistry/v0.2"


def test_a_registry_without_a_public_url() -> None:
    # LEG-101: the source has the same default URL as the registry's own events
    [message] = messages(SCHEMAREGISTRY, group(), of=CAUGHT_UP._replace(registry_url=""))
    assert message.source == f"{UNCONFIGURED_URL}/compat/schemaregistry/v0.2"


@pytest.mark.parametrize("time", [BORN, CHANGED, NOON, "2020-02-02T02:02:02.5Z", "0001-01-01T00:00:00Z"])
def test_a_time_is_sent_as_it_is_stored(time: str) -> None:
    # Section 10, SUB-114: with the digits that a client gave, in the feed and in each form of the library
    [message] = messages(SCHEMAREGISTRY, group(attributes={"modifiedat": time}))
    whole = json.loads(message.json())
    assert whole["time"] == time
    sent = message.cloudevent(sequence="1")
    assert json.loads(JSONFormat().write(sent)) == whole | {"sequence": "1"}
    assert http.to_binary_event(sent).headers["ce-time"] == time


def test_an_event_of_a_newer_program_is_not_passed_over() -> None:
    # LEG-1006: an unknown event is an error, because a reader would not notice a gap
    unknown = row(5, group())._replace(topic="EntityMoved:1")
    with pytest.raises(UnknownTopic):
        list(CompatEvents(SCHEMAREGISTRY).messages(CAUGHT_UP, [unknown]))
