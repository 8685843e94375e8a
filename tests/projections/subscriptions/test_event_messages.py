"""The messages for subscribers, made from the log, and which of them a subscription wants."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from cloudevents.core.formats.json import JSONFormat

from annals.commands.store.hashes import Interaction, LogRow
from annals.domain.subscriptions.subscription import Subscription
from annals.projections.database.connections import connect
from annals.projections.events.xregistry_events import ChangeEvent
from annals.projections.log.reader import Log
from annals.projections.subscriptions.event_messages import (
    MAX_EVENT_BYTES,
    EventMessage,
    EventMessageReader,
    SubscriptionFilter,
)
from tests.support.delivery_rig import FAMILIES, Rig, attributes


@pytest.fixture
def rig(store_url: str) -> Iterator[Rig]:
    rig = Rig(store_url)
    yield rig
    rig.close()


class Legacy:
    """Another event family: one message for each event of a Group or an entity in it."""

    name = "schemaregistry"
    prefix = "io.cloudevents.schemaregistry."

    def messages(self, interaction: Interaction, rows: Iterable[LogRow]) -> Iterator[ChangeEvent]:
        for row in rows:
            if row.stream.startswith("/dirs/"):
                type, source = f"{self.prefix}updated.v1", "https://h/compat"
                yield ChangeEvent(
                    row.position, f"l{row.position}", type, source, row.stream, interaction.time, "c", None
                )


def read_messages(rig: Rig, *families: Any) -> list[EventMessage]:
    reader = connect(rig.url)
    try:
        feed, after, found = EventMessageReader(lambda: Log(reader), families or FAMILIES), 0, []
        while after < rig.position:
            after, some = feed.read_chunk(after, rig.position)
            found += some
        again = feed.read_again([each.sequence for each in found])
        assert list(again.values()) == found  # SUB-114: read again, they are the same
        sequences = [each.sequence for each in found[::3]]
        assert list(feed.read_again([*sequences, 1 << 40]).values()) == found[::3]
        return found
    finally:
        reader.close()


def wants(message: EventMessage, **members: Any) -> bool:
    subscription = Subscription("s", "o", 1, 1, 1, 1, False, attributes(**members))
    return SubscriptionFilter(subscription, (*FAMILIES, Legacy())).matches(message)


def test_messages_are_numbered_over_all_families(rig: Rig) -> None:
    # SUB-113, 112: by position and index, in the order of families; events of subscriptions have no message
    rig.groups("a")
    rig.subscribe()
    rig.groups("b")
    found = read_messages(rig, *FAMILIES, Legacy())
    assert [(each.attributes["sequence"], each.family) for each in found] == [
        (f"{1:020}.00", "xregistry"),
        (f"{1:020}.01", "schemaregistry"),
        (f"{3:020}.00", "xregistry"),
        (f"{3:020}.01", "schemaregistry"),
    ]
    event = found[0].cloudevent()
    assert event.get_extension("sequence") == f"{1:020}.00"
    assert event.get_extension("xregcorrelationid") == found[0].message.xregcorrelationid


def test_a_large_import_is_read_in_pieces(rig: Rig) -> None:
    # SUB-803, 113: an interaction that is read in several chunks has all its messages, once
    rig.record(*((f"/dirs/g{number}", {"n": 1}) for number in range(650)))
    found = read_messages(rig)
    assert [each.sequence // 100 for each in found] == list(range(1, 651))
    assert len({each.message.id for each in found}) == 650


@pytest.mark.parametrize(("count", "has_data"), [(3_000, True), (12_000, False)])
def test_what_is_too_large_goes_without_data(sqlite_url: str, count: int, has_data: bool) -> None:
    # SUB-707: measured as it is sent
    rig = Rig(sqlite_url)
    rig.groups("a")
    before = rig._events["/dirs/a"]
    names = tuple(f"n{number:05}" for number in range(count))
    rig._append(
        [rig._event("/dirs/a", {"n": 2}).model_copy(update={"changed": names, "revision": before.revision + 1})]
    )
    found = read_messages(rig)[-1]
    written = JSONFormat().write(found.cloudevent())
    assert len(written) <= MAX_EVENT_BYTES
    assert ("data" in json.loads(written)) is has_data
    assert ("datacontenttype" in json.loads(written)) is has_data
    rig.close()


@pytest.mark.parametrize(
    ("members", "wanted"),
    [
        ({}, True),
        ({"source": "http://127.0.0.1:8080"}, True),
        ({"source": "http://127.0.0.1:8080/"}, True),  # SUB-103: one of the server's own URLs
        ({"source": "http://127.0.0.1:808"}, False),
        ({"types": ["io.xregistry.group.created"]}, True),
        ({"types": ["io.xregistry.group.*"]}, False),
        ({"types": ["IO.xregistry.group.created"]}, False),
        ({"filters": [{"prefix": {"subject": "/dirs/a"}}]}, True),
        ({"filters": [{"sql": "type LIKE '%.deleted' AND EXISTS subject"}]}, False),
        ({"filters": [{"sql": "nope = 1"}]}, False),  # an error at run time matches nothing
        ({"config": {"families": ["schemaregistry"]}}, False),
        ({"config": {"families": "xregistry,schemaregistry"}}, True),
        ({"config": {"starttime": "2000-01-01T00:00:00+01:00"}}, True),
        ({"config": {"starttime": "2999-01-01T00:00:00Z"}}, False),
    ],
)
def test_what_a_subscription_wants(sqlite_url: str, members: dict[str, Any], wanted: bool) -> None:
    # SUB-103, 105, 421 and `config` of 1.1
    rig = Rig(sqlite_url)
    rig.groups("a")
    assert wants(read_messages(rig)[0], **members) is wanted
    rig.close()


@pytest.mark.parametrize(
    ("members", "families"),
    [
        ({}, {"xregistry"}),
        ({"source": "https://h/compat"}, {"schemaregistry"}),
        ({"types": ["io.cloudevents.schemaregistry.updated.v1"]}, {"schemaregistry"}),
        (
            {"types": ["io.xregistry.group.created", "io.cloudevents.schemaregistry.updated.v1"]},
            {"xregistry", "schemaregistry"},
        ),
    ],
)
def test_families_chosen_by_source_and_types(sqlite_url: str, members: dict[str, Any], families: set[str]) -> None:
    # SUB-111: by source, else by types, else only the registry's own family
    rig = Rig(sqlite_url)
    rig.groups("a")
    found = read_messages(rig, *FAMILIES, Legacy())
    config = {"startposition": "latest"}
    subscription = Subscription("s", "o", 1, 1, 1, 1, False, attributes(**members) | {"config": config})
    wanted = SubscriptionFilter(subscription, (*FAMILIES, Legacy()))
    assert {each.family for each in found if wanted.matches(each)} == families
    rig.close()
