from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.commands.store.hashes import extract_image
from annals.commands.store.mapper import EventMapper, UnknownTopic, after_image, assemble_after_image, stored_state
from annals.domain.registry.events import TOPICS, EntityCreated, EntityDeleted, EntityEvent, EntityUpdated
from annals.domain.values.json_text import dumps, loads
from annals.projections.entities.rows import entity_row

FACTS = {"xid": "/dirs/D1", "type": "dirs", "revision": 3, "epoch": 2, "xregcorrelationid": "01j"}
NOON = datetime(2026, 1, 1, 12, 0, 0, 120000, tzinfo=UTC)

texts = st.text(st.characters(codec="utf-8"), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
events = st.builds(
    lambda kind, attributes, private, changed, born: kind(
        **FACTS, attributes=attributes, private=private, changed=changed, born=born, time=NOON
    ),
    st.sampled_from(list(TOPICS.values())),
    st.dictionaries(texts, values, max_size=4),
    st.dictionaries(texts, values, max_size=2),
    st.lists(st.sampled_from(["epoch", "meta.epoch", "changed", "a_b"]), max_size=3).map(tuple),
    st.none() | st.integers(1, 2**53),
)


@given(events)
def test_an_event_comes_back_as_it_went(event: EntityEvent) -> None:
    mapper = EventMapper()
    stored = mapper.to_stored_event(event)
    assert (stored.originator_id, stored.originator_version, stored.topic) == ("/dirs/d1", 3, event.TOPIC)
    assert mapper.to_domain_event(stored) == event


@given(events)
def test_the_image_lies_in_the_state_and_in_the_row(event: EntityEvent) -> None:
    """An entity has one hash, whether it is computed from the event, from the log's bytes or from the read model."""
    assert extract_image(stored_state(event, after_image(event))) == after_image(event)
    row = entity_row(event, 1)
    assert after_image(event) == assemble_after_image(
        row.xid, row.type, row.epoch, row.attributes.encode(), row.private.encode()
    )


def test_the_state_is_plain_json() -> None:
    event = EntityDeleted(**FACTS, attributes={}, time=NOON.astimezone(timezone(timedelta(hours=2))), reason="pruned")
    assert loads(stored_state(event, after_image(event))) == {
        "xid": "/dirs/D1",
        "type": "dirs",
        "epoch": 2,
        "attributes": {},
        "private": {},
        "changed": [],
        "reason": "pruned",
        "xregcorrelationid": "01j",
        "time": "2026-01-01T12:00:00.120000Z",
    }


def test_the_birth_comes_behind_the_image() -> None:
    event = EntityUpdated(
        **FACTS, attributes={"name": "n"}, changed=("name",), deprecated_changed=(), born=7, time=NOON
    )
    state = loads(stored_state(event, after_image(event)))
    assert [*state][5:] == ["changed", "deprecated_changed", "born", "xregcorrelationid", "time"] and state["born"] == 7
    assert after_image(event) == after_image(event.model_copy(update={"born": 8}))
    assert (event.creation_position(9), EntityCreated(**FACTS, attributes={}, time=NOON).creation_position(9)) == (7, 9)


def test_an_old_topic_is_read_as_the_newest() -> None:
    """Stored bytes never change: an event of an old topic is upcast, step by step, to the current one."""
    upcasts = {
        "Renamed:1": ("Renamed:2", lambda old: old | {"epoch": old["epoch"] + 1}),
        "Renamed:2": (EntityUpdated.TOPIC, lambda old: old | {"changed": ["name"]}),
    }
    event = EntityCreated(**FACTS, attributes={"name": "n"}, time=NOON)
    upcast = EventMapper(upcasts).event("Renamed:1", 3, stored_state(event, after_image(event)))
    assert (type(upcast), upcast.epoch, upcast.changed) == (EntityUpdated, 3, ("name",))


def test_a_newer_topic_is_refused() -> None:
    with pytest.raises(UnknownTopic):
        EventMapper().event("EntityCreated:99", 1, dumps({}))
