"""Records as a function of the log: keys, numbers, headers and values."""

from __future__ import annotations

import json
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityEvent, EntityRefreshed, EntityUpdated
from annals.projections.compat.families import all_event_families
from annals.projections.kafka.event_topic import EVENTS
from annals.projections.kafka.log_topic import LOG, LogTopic
from annals.projections.kafka.records import GROUP_KEYS, PublishedRecord, WindowPart, partition_key
from annals.projections.kafka.topic_position import TopicPosition
from annals.projections.kafka.topics import topic_contents
from annals.projections.kafka.windows import numbered_records
from tests.projections.events.test_xregistry_events import CAUGHT_UP, NOON, event, row

#: Neither topic reads the log.
NO_LOG: Any = None
GIVEN = [
    event(EntityUpdated, "/", changed=("dirs",)),
    event(EntityCreated, "/dirs/D", deprecated_changed=()),
    event(EntityRefreshed, "/dirs/D/files/F"),
    event(EntityDeleted, "/dirs/D/files/F/versions/V", reason="deleted"),
]


def made(*events: EntityEvent, contentmode: str = "structured") -> list[PublishedRecord]:
    """The records of the log and of events, after four and seven earlier ones."""
    rows = [row(position, each) for position, each in enumerate(events, CAUGHT_UP.first)]
    return build([WindowPart(CAUGHT_UP, rows)], contentmode)


def build(
    parts: list[WindowPart], contentmode: str = "structured", log: int = 4, events: int = 7
) -> list[PublishedRecord]:
    contents = topic_contents((LOG, EVENTS), "p", all_event_families(), contentmode=contentmode)
    numbers = {LOG: log, EVENTS: events}
    return [record for topic in contents for record in numbered_records(topic, at(numbers[topic.name]), parts, NO_LOG)]


def at(number: int) -> TopicPosition:
    return TopicPosition(number, 4, "", (-1,), GROUP_KEYS)


def facts(number: int, position: int) -> dict[str, bytes]:
    """The headers of every record of the interaction."""
    shared = {"annals_first": b"5", "annals_last": b"9", "annals_interaction": b"c"}
    return {"annals_number": b"%d" % number, "annals_position": b"%d" % position, **shared}


@pytest.mark.parametrize(
    ("stream", "key"),
    [
        ("/", b"/"),
        ("/model", b"/"),
        ("/modelsource", b"/"),
        ("/capabilities", b"/"),
        ("/dirs/d", b"/dirs/d"),
        ("/dirs/d/files/f", b"/dirs/d"),
        ("/dirs/d/files/f/versions/v", b"/dirs/d"),
        ("/subscriptions/s", b"/"),
        ("/-/links/l", b"/"),
    ],
)
def test_keys(stream: str, key: bytes) -> None:  # EV-78: the Group of the subject, or the root
    assert partition_key(stream) == key


def test_a_record_of_the_log() -> None:  # EV-79: the unchanged row, with its interaction
    stored = row(5, GIVEN[0])
    (found,) = [each for each in made(GIVEN[0]) if each.topic == LOG]
    assert found.key == b"/"
    assert dict(found.headers) == {"content-type": b"application/json", "annals_schema": b"3", **facts(5, 5)}
    nothing = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    assert json.loads(found.value or b"") == {
        **{"position": 5, "stream": "/", "revision": 1, "topic": stored.topic, "state": stored.state.decode()},
        **{"first": 5, "last": 9, "xregcorrelationid": "c", "time": NOON, "caller": "", "command": ""},
        **{"registry_url": "https://registry.example", "chain": nothing, "statehash": nothing, "salt": ""},
        **{"authenticator": "", "keyid": ""},
    }


def test_an_event_in_both_modes() -> None:  # EV-78: the key is the Group in lower case; § 3 of the Kafka binding
    given = event(EntityUpdated, "/dirs/D/files/F", changed=("epoch",))
    attributes: dict[str, Any] = {
        "specversion": "1.0",
        "id": "c.0.xregistry.resource.updated",
        "source": "https://registry.example",
        "type": "io.xregistry.resource.updated",
        "subject": "/dirs/D/files/F",
        "time": NOON,
        "xregcorrelationid": "c",
    }
    _, structured = made(given)
    assert (structured.topic, structured.key) == (EVENTS, b"/dirs/d")
    assert dict(structured.headers) == {"content-type": b"application/cloudevents+json; charset=UTF-8", **facts(8, 5)}
    data = {"datacontenttype": "application/json", "data": {"changed": ["epoch"]}}
    assert json.loads(structured.value or b"") == attributes | data
    _, binary = made(given, contentmode="binary")
    named = {f"ce_{name}": value.encode() for name, value in attributes.items()}
    assert dict(binary.headers) == {"content-type": b"application/json", **named, **facts(8, 5)}
    assert (binary.key, binary.value) == (b"/dirs/d", b'{"changed":["epoch"]}')


@pytest.mark.parametrize(
    ("xid", "private", "documents", "header"),
    [
        ("/dirs/D/files/F/versions/V", {"document": "h"}, {"h": b"bytes"}, [("annals_document", b"bytes")]),
        ("/dirs/D/files/F/versions/V", {"document": "h"}, {"h": b""}, [("annals_document", b"")]),
        ("/dirs/D/files/F/versions/V", {"document": "lost"}, {"h": b"bytes"}, []),
        ("/dirs/D/files/F/versions/V", {}, {"h": b"bytes"}, []),
        ("/dirs/D/files/F/versions/V", {"document": "h"}, None, []),
        ("/dirs/D/files/F", {"document": "h"}, {"h": b"bytes"}, []),
    ],
)
def test_documents(
    xid: str, private: dict[str, Any], documents: dict[str, bytes] | None, header: list[tuple[str, bytes]]
) -> None:  # LEG-902: on request, a Version's record contains its document
    given = row(5, event(EntityUpdated, xid).model_copy(update={"private": private}))
    parts = [WindowPart(CAUGHT_UP, [given])]
    log: Any = SimpleNamespace(document=(documents or {}).get)
    [bare] = LogTopic().records(parts, log)
    [found] = LogTopic(documents=documents is not None).records(parts, log)
    assert found == bare._replace(headers=[*bare.headers, *header])


def test_numbers() -> None:  # EV-47, EV-72, EV-77: no event for a refresh, two for a deprecated entity
    found = [(each.topic, each.position, int(dict(each.headers)["annals_number"])) for each in made(*GIVEN)]
    assert found == [
        *((LOG, position, position) for position in (5, 6, 7, 8)),
        *((EVENTS, 5, 8), (EVENTS, 6, 9), (EVENTS, 6, 10), (EVENTS, 8, 11)),
    ]


def test_an_interaction_in_parts_comes_to_the_same() -> None:  # EV-79: the same records, wherever a window ends
    whole = made(*GIVEN)
    rows = [row(position, each) for position, each in enumerate(GIVEN, CAUGHT_UP.first)]
    for cut in range(len(rows) + 1):
        first = build([WindowPart(CAUGHT_UP, rows[:cut])])
        counts = Counter(each.topic for each in first)
        second = build([WindowPart(CAUGHT_UP, rows[cut:])], log=4 + counts[LOG], events=7 + counts[EVENTS])
        for topic in (LOG, EVENTS):
            assert [each for each in first + second if each.topic == topic] == [
                each for each in whole if each.topic == topic
            ]
