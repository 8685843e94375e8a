"""What holds of the older API's events of any history, whoever wrote it: one for each change that it shows."""

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
#: Names of the histories, and the registry's own in their place. Two of four Versions have ids that are numbers.
NAMES = {
    **{"dirs": "schemagroups", "dir": "schemagroup", "files": "schemas", "file": "schema", "fileid": "schemaid"},
    **{"1.0.0": "2", "1.1.0": "10"},
}
EVENTS = CompatEvents(SCHEMAREGISTRY)
PREFIX = f"{SCHEMAREGISTRY.events}."

Logged = tuple[Interaction, list[LogRow], list[EntityEvent]]


def renamed(value: Any) -> Any:
    """The same with other names, as members, as texts and as segments of paths."""
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
    """A registry after a history, and its interactions as a log has them."""
    registry, found, mapper, position = MemoryRegistry({}), list[Logged](), EventMapper(), 0
    for step in history:
        try:
            moved = Step(step.method, renamed(step.path), renamed(step.body), renamed(step.query))
            events = list(registry.do(command(moved)).events)
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
        nothing_is_told_twice(found)
        each_change_that_is_shown_is_told(interaction, rows, events, found)
        # LEG-1006: read event by event, in other pieces or once more
        assert [message for row in rows for message in EVENTS.messages(interaction, [row])] == found
        live += found
    again = [message.json() for interaction, rows, _ in interactions for message in EVENTS.messages(interaction, rows)]
    assert again == [message.json() for message in live]
    assert len({message.id for message in live}) == len(live)
    numbers_are_for_life(live)
    what_is_told_and_not_deleted_is_there(registry, live, [event for _, _, events in interactions for event in events])


def nothing_is_told_twice(found: list[ChangeEvent]) -> None:
    # LEG-1003: one event of a type and subject, and of what is deleted that alone
    assert len({message.subject for message in found}) == len(found)


def each_change_that_is_shown_is_told(
    interaction: Interaction, rows: list[LogRow], events: list[EntityEvent], found: list[ChangeEvent]
) -> None:
    # LEG-1001, LEG-707, section 10: created and updated as `updated`, deleted as `deleted`; what is pruned stays, and
    # goes when it is forgotten, of which the registry itself says nothing
    reasons = {
        row.position: event.reason for row, event in zip(rows, events, strict=True) if isinstance(event, EntityDeleted)
    }
    shown = [
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
    told = [(each.position, each.xid, each.type.removeprefix(PREFIX).removesuffix(".v1")) for each in found]
    assert told == sorted(shown + forgotten)


def numbers_are_for_life(live: list[ChangeEvent]) -> None:
    # LEG-210, LEG-405: while a definition is there, one number is one Version, and a living Version has one number
    owners: dict[str, str] = {}
    for message in live:
        if message.subject.count("/") == 4 and message.type.endswith(".deleted.v1"):
            # what is below it goes with it and is told behind it
            owners = {each: xid for each, xid in owners.items() if not each.startswith(f"{message.subject}/")}
        elif message.subject.count("/") == 6 and message.type.endswith(".updated.v1"):
            assert owners.setdefault(message.subject, message.xid) == message.xid


def what_is_told_and_not_deleted_is_there(
    registry: MemoryRegistry, live: list[ChangeEvent], events: list[EntityEvent]
) -> None:
    # LEG-1208: folding the events gives what lives, and what was pruned and not forgotten since
    there: dict[str, str] = {}
    for message in live:
        if message.type.endswith(".deleted.v1"):
            assert there.pop(message.subject, None) is not None, message  # what nobody heard of is not deleted
        else:
            there[message.subject] = message.xid
    shown = [
        each for each in {event.xid for event in events} if each.startswith("/schemagroups/") and "/notes/" not in each
    ]
    living = {each for each in shown if registry.find(each) is not None}
    pruned = {event.xid for event in events if isinstance(event, EntityDeleted) and event.reason == "pruned"}
    assert living <= set(there.values())
    assert set(there.values()) - living <= pruned
