"""Events of the legacy API after any history: one for each change that is visible in that API."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings

from annals.commands.store.hashes import NO_INTERACTION, Interaction, LogRow
from annals.commands.store.mapper import EventMapper
from annals.domain.compat.legacy_apis import SCHEMAREGISTRY
from annals.domain.errors.problems import Problem
from annals.domain.registry.events import EntityDeleted, EntityEvent
from annals.projections.compat.events import CompatEvents
from annals.projections.events.xregistry_events import ChangeEvent, XRegistryEvents
from tests.support.examples import examples
from tests.support.histories import Step, command, histories
from tests.support.registries.memory import MemoryRegistry

FEW = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
#: Names in generated histories, and the names that replace them. Two of four Versions have ids that are numbers.
NAMES = {
    **{"dirs": "schemagroups", "dir": "schemagroup", "files": "schemas", "file": "schema", "fileid": "schemaid"},
    **{"1.0.0": "2", "1.1.0": "10"},
}
EVENTS = CompatEvents(SCHEMAREGISTRY)
PREFIX = f"{SCHEMAREGISTRY.events}."

Logged = tuple[Interaction, list[LogRow], list[EntityEvent]]


def renamed(value: Any) -> Any:
    """A value with replaced names, in members, strings and segments of paths."""
    match value:
        case str():
            return "/".join(NAMES.get(part, part) for part in value.split("/"))
        case dict():
            return {renamed(name): renamed(each) for name, each in value.items()}
        case list() | tuple():
            return type(value)(renamed(each) for each in value)
        case _:
            return value


def logged(history: list[Step]) -> tuple[MemoryRegistry, list[Logged]]:
    """A registry after a history, and its interactions in the form of the log."""
    registry, found, mapper, position = MemoryRegistry({}), list[Logged](), EventMapper(), 0
    for step in history:
        try:
            renamed_step = Step(step.method, renamed(step.path), renamed(step.body), renamed(step.query))
            events = list(registry.do(command(renamed_step)).events)
        except Problem:
            continue
        rows = []
        for each in events:
            stored = mapper.to_stored_event(each)
            position += 1
            rows.append(LogRow(position, each.stream, each.revision, stored.topic, stored.state))
        if rows:
            time = json.loads(rows[0].state)["time"]
            facts: dict[str, Any] = {
                "first": rows[0].position,
                "last": position,
                "xregcorrelationid": events[0].xregcorrelationid,
            }
            found.append((NO_INTERACTION._replace(time=time, registry_url="https://r.example", **facts), rows, events))
    return registry, found


@FEW
@given(histories(documents=True))
def test_events_of_a_history(history: list[Step]) -> None:
    registry, interactions = logged(history)
    live: list[ChangeEvent] = []
    for interaction, rows, events in interactions:
        found = list(EVENTS.messages(interaction, rows))
        subjects_are_unique(found)
        each_visible_change_has_one_event(interaction, rows, events, found)
        # LEG-1006: equal messages if the rows are read one by one, or a second time
        assert [message for row in rows for message in EVENTS.messages(interaction, [row])] == found
        live += found
    again = [message.json() for interaction, rows, _ in interactions for message in EVENTS.messages(interaction, rows)]
    assert again == [message.json() for message in live]
    assert len({message.id for message in live}) == len(live)
    numbers_are_stable(live)
    events_fold_to_living_entities(registry, live, [event for _, _, events in interactions for event in events])


def subjects_are_unique(found: list[ChangeEvent]) -> None:
    # LEG-1003: at most one event for each subject in an interaction
    assert len({message.subject for message in found}) == len(found)


def each_visible_change_has_one_event(
    interaction: Interaction, rows: list[LogRow], events: list[EntityEvent], found: list[ChangeEvent]
) -> None:
    # LEG-1001, LEG-707, section 10: a creation or update is `updated`, a deletion `deleted`. A pruned Version stays
    # until it is forgotten, for which there is no xRegistry event
    reasons = {
        row.position: event.reason for row, event in zip(rows, events, strict=True) if isinstance(event, EntityDeleted)
    }
    visible = [
        (each.position, each.subject, "deleted" if each.type.endswith(".deleted") else "updated")
        for each in XRegistryEvents().messages(interaction, rows)
        if each.type.endswith((".created", ".updated", ".deleted"))
        and each.subject.startswith("/schemagroups/")
        and "/notes/" not in each.subject
        and reasons.get(each.position) != "pruned"
    ]
    forgotten = [
        (row.position, event.xid, "deleted")
        for row, event in zip(rows, events, strict=True)
        if reasons.get(row.position) == "forgotten" and "/schemas/" in event.xid
    ]
    reported = [(each.position, each.xid, each.type.removeprefix(PREFIX).removesuffix(".v1")) for each in found]
    assert reported == sorted(visible + forgotten)


def numbers_are_stable(live: list[ChangeEvent]) -> None:
    # LEG-210, LEG-405: as long as a definition exists, a number belongs to one Version, and a Version has one number
    owners: dict[str, str] = {}
    for message in live:
        if message.subject.count("/") == 4 and message.type.endswith(".deleted.v1"):
            # its Versions are deleted with it, and their events follow
            owners = {each: xid for each, xid in owners.items() if not each.startswith(f"{message.subject}/")}
        elif message.subject.count("/") == 6 and message.type.endswith(".updated.v1"):
            assert owners.setdefault(message.subject, message.xid) == message.xid


def events_fold_to_living_entities(
    registry: MemoryRegistry, live: list[ChangeEvent], events: list[EntityEvent]
) -> None:
    # LEG-1208: folding the events gives the living entities, and pruned ones that are not forgotten
    folded: dict[str, str] = {}
    for message in live:
        if message.type.endswith(".deleted.v1"):
            assert folded.pop(message.subject, None) is not None, message  # a deletion has an earlier event
        else:
            folded[message.subject] = message.xid
    xids = [
        each for each in {event.xid for event in events} if each.startswith("/schemagroups/") and "/notes/" not in each
    ]
    living = {each for each in xids if registry.find(each) is not None}
    pruned = {event.xid for event in events if isinstance(event, EntityDeleted) and event.reason == "pruned"}
    assert living <= set(folded.values())
    assert set(folded.values()) - living <= pruned
