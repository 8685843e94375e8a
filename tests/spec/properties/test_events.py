"""Properties of the xRegistry events of any history, on both databases (EV-130 to EV-137).

The oracle compares the responses of the API before and after each request. It shares no code with the product.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings

from annals.domain.values import xid as xids
from annals.projections.events.xregistry_events import PREFIX, ChangeEvent
from tests.spec.properties.test_http import entities
from tests.spec.test_changes import significant
from tests.spec.test_events import Description, description_of, entity_of, place
from tests.support.event_messages import event_messages
from tests.support.examples import examples
from tests.support.histories import UNHURRIED, Step, as_request, database, histories
from tests.support.registries.requests import BASE, Registry, Request, serving

__all__ = ["database"]

Json = Any
#: The entities as returned by the API, by xid; `/r/meta` is part of its Resource `/r`.
Snapshot = dict[str, dict[str, Json]]

EXAMPLES = {"sqlite": 15, "postgresql": 3}
EVERYTHING = "/?binary&inline=*,model,modelsource,capabilities"
CONFIGURATION = ("model", "modelsource", "capabilities")
TOUCH, META_TOUCH = {"epoch", "modifiedat"}, {"meta.epoch", "meta.modifiedat"}
LEGAL = {
    *("registry.updated", "model.updated", "modelsource.updated", "capabilities.updated"),
    *("group.created", "group.updated", "group.deprecation", "group.deleted"),
    *("resource.created", "resource.updated", "resource.deprecation", "resource.deleted"),
    *("version.created", "version.updated", "version.deleted"),
}


@dataclass(frozen=True)
class Moment:
    """A request of a history, its events, and the registry before and after it."""

    step: Step
    before: Snapshot
    events: list[ChangeEvent]
    after: Snapshot


def events_are_the_difference_of_two_snapshots(moment: Moment) -> None:
    # EV-133, EV-134: exactly the changed entities have events, with the names that differ, in the order of EV-77
    visible = [event for event in moment.events if not pruned_at_once(event, moment)]
    passed = {str(xids.parent(event.subject)) for event in moment.events if event not in visible}
    assert [description_of(event) for event in visible] == differences(moment.before, moment.after, passed), moment.step


def events_are_unique(moment: Moment) -> None:
    # EV-70, EV-72, EV-130: one event for a type and subject, and only one of created, updated and deleted
    reported = [(event.type, event.subject) for event in moment.events]
    assert len(reported) == len(set(reported))
    subjects = [event.subject for event in moment.events if not event.type.endswith(".deprecation")]
    assert len(subjects) == len(set(subjects))


def parents_are_updated_with_their_members(moment: Moment) -> None:
    # EV-66, EV-75, EV-132: a creation or deletion below an existing parent is also an update of that parent
    updated = {event.subject for event in moment.events if event.type.endswith(".updated")}
    for event in moment.events:
        parent = xids.parent(event.subject)
        stayed = parent in moment.before and parent in moment.after
        if event.type.endswith((".created", ".deleted")) and stayed and not pruned_at_once(event, moment):
            assert parent in updated, event


def names_and_subjects_are_legal(moment: Moment) -> None:
    # EV-1, EV-2, EV-4, EV-5, EV-14, EV-137: each event has one of fifteen types, and a subject that fits the type
    groups = types(moment.before) | types(moment.after)
    for event in moment.events:
        assert event.type.startswith("io.xregistry.") and event.type.removeprefix(PREFIX) in LEGAL
        assert entity_of(event.subject) == event.type.split(".")[2]
        assert re.fullmatch(r"/|/\w+|(/\w+/[\w.~:@-]+){1,2}(/versions/[\w.~:@-]+)?", event.subject)
        parts = xids.segments(event.subject)
        assert len(parts) < 2 or parts[::2][:2] in groups


def context_attributes_are_those_of_cloudevents(moment: Moment) -> None:
    # EV-10 to EV-13, EV-15, EV-17 to EV-22, EV-35, EV-38 to EV-41: the JSON form of each event
    for event in moment.events:
        whole = json.loads(event.json())
        lists = event.type.endswith((".updated", ".deprecation")) and "/model" not in event.subject
        data = {"data": whole.pop("data"), "datacontenttype": whole.pop("datacontenttype")} if lists else {}
        assert whole == {
            "specversion": "1.0",
            "id": event.id,
            "source": BASE,
            "type": event.type,
            "subject": event.subject,
            "time": moment.events[0].time,
            "xregcorrelationid": moment.events[0].xregcorrelationid,
        }
        assert all(isinstance(value, str) and value for value in whole.values())
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", event.time)
        if lists:
            assert data == {"data": {"changed": list(event.changed or ())}, "datacontenttype": "application/json"}
            assert len(set(event.changed or ())) == len(event.changed or ())


INVARIANTS: list[Callable[[Moment], None]] = [
    events_are_the_difference_of_two_snapshots,
    events_are_unique,
    parents_are_updated_with_their_members,
    names_and_subjects_are_legal,
    context_attributes_are_those_of_cloudevents,
]


def test_events_of_a_history(database: tuple[str, Callable[[], Any]]) -> None:
    kind, empty = database

    @settings(max_examples=examples(EXAMPLES[kind]), **UNHURRIED)
    @given(histories(documents=True, most=15))
    def run(history: list[Step]) -> None:
        with empty() as url:
            asyncio.run(follow(url, history))

    run()


async def follow(url: str, history: list[Step]) -> None:
    live: list[ChangeEvent] = []
    last: Snapshot = {}
    async for moment in moments(url, history):
        for holds in INVARIANTS:
            holds(moment)
        live += moment.events
        last = moment.after
    # EV-136, EV-16: reading again from position 0 gives the same events, ids and times, in the same order
    assert event_messages(url) == live
    # EV-15: ids are unique; EV-78, EV-135: times never decrease, and events of one interaction are together
    assert len({event.id for event in live}) == len(live)
    assert [event.time for event in live] == sorted(event.time for event in live)
    assert len({event.xregcorrelationid for event in live}) == len({event.time for event in live})
    # EV-131: the existing entities are those created and not deleted
    assert fold(live) == {xid for xid in last if entity_of(xid) in ("group", "resource", "version")}


async def moments(url: str, history: list[Step]) -> AsyncIterator[Moment]:
    """Each request of a history. The creation of the registry itself has no events (EV-3)."""
    async with serving(url) as registry:
        assert event_messages(url) == []
        before, count = await snapshot(registry), 0
        for step in history:
            await registry.ask(as_request(step))
            events = event_messages(url)[count:]
            after = await snapshot(registry)
            assert event_messages(url)[count:] == events  # EV-7: a read has no events
            yield Moment(step, before, events, after)
            before, count = after, count + len(events)


async def snapshot(registry: Registry) -> Snapshot:
    answer = await registry.send(Request("GET", EVERYTHING))
    assert answer.status == 200, answer
    root = json.loads(answer.content)
    of_root = {"/": root} | {f"/{name}": root[name] for name in CONFIGURATION}
    tree = {name: value for name, value in root.items() if name not in CONFIGURATION}
    return {entity["xid"]: entity for entity in entities(tree) if not entity["xid"].endswith("/meta")} | of_root


def differences(before: Snapshot, after: Snapshot, passed: set[str]) -> list[Description]:
    """The events that two snapshots imply. passed: Resources with a Version created and pruned in between (EV-65)."""
    return [
        event
        for subject in sorted(before.keys() | after.keys(), key=place)
        for event in expected_events(subject, before.get(subject), after.get(subject), subject in passed)
    ]


def expected_events(subject: str, was: Json, now: Json, passed: bool) -> Iterator[Description]:
    entity = entity_of(subject)
    if was is None or now is None:
        yield f"{entity}.{'created' if was is None else 'deleted'}", subject, None
    elif entity in CONFIGURATION:
        if was != now:
            listed = differing(was, now) if entity == "capabilities" else None
            yield f"{entity}.updated", subject, listed
    elif names := changed(entity, was, now):
        yield f"{entity}.updated", subject, significant(names | ({"versions", "versionscount"} if passed else set()))
    if now is not None and entity in ("group", "resource"):
        old, new = deprecated(was), deprecated(now)
        if old != new:
            yield f"{entity}.deprecation", subject, differing(old or {}, new or {})


def changed(entity: str, was: Json, now: Json) -> set[str]:
    """The names that an `updated` has to list; no name if there is no such event (EV-50 to EV-63)."""
    names = changed_in_resource(was, now) if entity == "resource" else differing(own(was), own(now))
    names |= TOUCH if "epoch" in names else set()
    for plural in collections(was) & collections(now):
        if was[plural].keys() != now[plural].keys():
            names |= {plural, f"{plural}count"}
    return names - {"isdefault"}


def changed_in_resource(was: Json, now: Json) -> set[str]:
    """The changed names of a Resource: of its meta, and all of both default Versions if the default changed (EV-60)."""
    old, new = own(was), own(now)
    names = differing(old, new) if was["versionid"] == now["versionid"] else old.keys() | new.keys()
    meta = {f"meta.{name}" for name in differing(was["meta"], now["meta"])}
    return names | meta | (META_TOUCH if "meta.epoch" in meta else set())


def own(entity: Json) -> Json:
    """An entity's attributes without its collections, its URLs, and an empty document."""
    below = {f"{plural}{end}" for plural in collections(entity) for end in ("", "url", "count")}
    plain = {name.removesuffix("base64"): value for name, value in entity.items() if value != "" and name not in below}
    return {name: value for name, value in plain.items() if name not in ("meta", "metaurl", "self")}


def collections(entity: Json) -> set[str]:
    return {name.removesuffix("count") for name in entity if name.endswith("count") and f"{name[:-5]}url" in entity}


def differing(one: Json, other: Json) -> set[str]:
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


def deprecated(entity: Json) -> Json:
    return None if entity is None else entity.get("meta", entity).get("deprecated")


def pruned_at_once(event: ChangeEvent, moment: Moment) -> bool:
    # EV-73: a Version created and pruned in one request has one event, and is in no snapshot
    gone = event.subject not in moment.before and event.subject not in moment.after
    assert not gone or event.type == "io.xregistry.version.deleted"
    return gone


def types(snapshot: Snapshot) -> set[tuple[str, ...]]:
    """The Group types of the present model, and their Resource types: `("dirs",)`, `("dirs", "files")`."""
    groups = snapshot["/model"]["groups"]
    return {(group,) for group in groups} | {
        (group, resource) for group in groups for resource in groups[group].get("resources", {})
    }


def fold(events: list[ChangeEvent]) -> set[str]:
    """The entities that exist after a stream of events, derived only from `created` and `deleted`."""
    living: set[str] = set()
    for event in events:
        if event.type.endswith(".created"):
            living.add(event.subject)
        elif event.type.endswith(".deleted"):
            living.discard(event.subject)
    return living
