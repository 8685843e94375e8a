"""docs/reference/events.md: the events of the log, and the CloudEvents that a registry derives from them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from annals.domain.compat.legacy_apis import LEGACY_APIS
from annals.domain.registry.events import TOPICS, EntityEvent
from annals.projections.compat.events import DELETED, UPDATED
from annals.projections.events.xregistry_events import PREFIX
from docs.generate.application import RunningRegistry, running_registry
from docs.generate.markdown import code, page, table

_INTRODUCTION: Final = """\
The log has one event for each entity that a request changed, with the complete entity after the change. From them the
registry derives CloudEvents: for `/-/events`, subscriptions, Kafka topics and Spark. The
[guide to history](../guides/history.md) shows how to read both."""
_CLOUDEVENTS: Final = """\
`source` is the URL of the registry, `subject` the xid of the entity. `id` is the same in every copy of an event.
`xregcorrelationid` is the id of the request. `changed` in the data lists the attributes that differ, those of a
Resource's meta as `meta.<name>`; `ANNALS_EVENT_CHANGES=false` leaves the data out. Changes that only the server makes,
such as a new value of `isdefault`, have no CloudEvent."""
_LEGACY: Final = """\
A subscription or a feed that selects one of these families gets an event for each change of an object of that API,
through any API. `source` is the base URL of that API, `subject` the path of the object."""
#: Why events have their types, without the prefix, in the order of the page.
_REASONS: Final[Mapping[str, str]] = {
    "registry.updated": "attributes of the registry, its model or its capabilities changed, or Groups came or went",
    "capabilities.updated": "the capabilities changed",
    "model.updated": "the full model changed",
    "modelsource.updated": "the model as a client sent it changed",
    "group.created": "a Group is new",
    "group.updated": "attributes of a Group changed, or Resources came or went",
    "group.deprecation": "`deprecated` of a Group was set, changed or removed",
    "group.deleted": "a Group is gone",
    "resource.created": "a Resource is new",
    "resource.updated": "a Resource's meta or default Version changed, or Versions came or went",
    "resource.deprecation": "`deprecated` in a Resource's meta was set, changed or removed",
    "resource.deleted": "a Resource is gone",
    "version.created": "a Version is new",
    "version.updated": "a Version changed",
    "version.deleted": "a Version is gone, by a request or because of `maxversions`",
}
_MEMBERS: Final[Mapping[str, str]] = {
    "xid": "the entity",
    "type": "its type, such as `schemagroups.schemas.versions`",
    "revision": "the number of the event in the stream of the entity; a deletion does not reset it",
    "epoch": "its epoch after the change; after a deletion the last one",
    "attributes": "all attributes as the API shows them, without what an answer adds; empty after a deletion",
    "private": "what only later decisions and the legacy APIs need, such as the counter of Version ids",
    "changed": "names of the attributes that differ",
    "deprecated_changed": "members of `deprecated` that differ",
    "born": "position of the event that created the entity",
    "xregcorrelationid": "the id of the request",
    "time": "the time of the request, in UTC",
}
_SCHEMA: Final = "/schemagroups/weather/schemas/report"
_RECORD: Final = {"type": "record", "name": "Report", "fields": [{"name": "city", "type": "string"}]}
_DEPRECATED: Final = {"deprecated": {"removal": "2027-01-31T00:00:00Z"}}
#: A history that has all types of events.
_HISTORY: Final[tuple[tuple[str, str, Any], ...]] = (
    ("PATCH", "/", {"name": "Weather schemas"}),
    ("PUT", "/modelsource", {"groups": {"dirs": {"singular": "dir"}}}),
    ("PATCH", "/capabilities", {"pagination": False}),
    ("PUT", "/modelsource", None),
    ("PUT", "/schemagroups/weather", {"name": "Weather"}),
    ("PUT", f"{_SCHEMA}$details", {"format": "Avro/1.11", "schema": _RECORD}),
    ("PATCH", f"{_SCHEMA}/versions/1$details", {"description": "What stations report"}),
    ("PATCH", f"{_SCHEMA}/meta", _DEPRECATED),
    ("PATCH", f"{_SCHEMA}/meta", {"deprecated": None}),
    ("PATCH", "/schemagroups/weather", _DEPRECATED),
    ("PATCH", "/schemagroups/weather", {"deprecated": None}),
    ("DELETE", "/schemagroups/weather", None),
)


def text() -> str:
    """The whole page. Raises: ValueError if the history has types without a reason, or reasons without an event."""
    with running_registry() as registry:
        events = _events_by_type(registry)
    if different := set(events) ^ {PREFIX + name for name in _REASONS}:
        raise ValueError(f"explain these types of events in {__file__}, or record them: {sorted(different)}")
    example = json.dumps(events[f"{PREFIX}version.updated"], indent=2)
    return page(
        "Events",
        _INTRODUCTION,
        "## xRegistry events",
        _CLOUDEVENTS,
        table(("Type", "When"), ((code(PREFIX + name), reason) for name, reason in _REASONS.items())),
        f"```json\n{example}\n```",
        "## Events of the legacy APIs",
        _LEGACY,
        table(("Family", "Types"), _legacy_rows()),
        "## Events of the log",
        "`topic` of a row names its kind and the version of its layout.",
        table(("Topic", "Meaning"), ((code(topic), _first_line(kind)) for topic, kind in TOPICS.items())),
        "An event has these members. A deletion also has `reason`: `deleted`, `pruned` by `maxversions`, or "
        "`forgotten` by a legacy API.",
        table(("Member", "Meaning"), ((code(name), _MEMBERS[name]) for name in EntityEvent.model_fields)),
    )


def _events_by_type(registry: RunningRegistry) -> dict[str, Any]:
    """The first event of each type."""
    default_model = registry.get("/modelsource")
    for method, path, body in _HISTORY:
        is_reset = (method, path, body) == ("PUT", "/modelsource", None)
        registry.write(method, path, default_model if is_reset else body)
    events: dict[str, Any] = {}
    for event in registry.get("/-/events"):
        events.setdefault(event["type"], event)
    return events


def _legacy_rows() -> Iterator[tuple[str, str]]:
    for api in LEGACY_APIS:
        yield code(api.name), ", ".join(code(f"{api.events}.{action}") for action in (UPDATED, DELETED))


def _first_line(kind: type[EntityEvent]) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0]
