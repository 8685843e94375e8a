"""Sample documents, ours and the published ones, taken in by a new registry of the three built-in models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from annals.commands.store.log import Store
from annals.domain.model.builtin import default_source
from annals.domain.registry.explicit_values import DEFAULT_MARKS
from tests.data import HISTORIES, SCENARIOS, STORES, read, with_two_versions
from tests.support.event_messages import event_messages, last_position
from tests.support.registries.in_process import Api, create, serving

Json = dict[str, Any]
#: Endpoints, message groups, messages, schemas and Versions of schemas in each.
COUNTS = {
    "parcels-jsons07": (0, 1, 2, 2, 3),
    "lending-avro": (0, 1, 4, 4, 4),
    "ferries-proto3": (0, 1, 5, 5, 5),
    "glasshouse-mqtt5-jsons07": (2, 1, 2, 2, 2),
    "tidegauge-kafka-avro": (0, 1, 2, 2, 2),
    "museum-xsd": (0, 1, 5, 5, 5),
    "watchkam-jsons07": (0, 1, 2, 2, 3),
    "lightbulb-avro": (0, 1, 4, 4, 4),
    "inkjet-proto3": (0, 1, 5, 5, 5),
    "waterboiler-mqtt5-jsons07": (2, 1, 2, 2, 2),
    "windgenerator-kafka-avro": (0, 1, 2, 2, 2),
    "smartoven-xsd": (0, 1, 5, 5, 5),
    "vacuumcleaner-avro": (0, 1, 5, 5, 5),
    "mqtt-sparkplugB": (8, 5, 10, 2, 2),
    "contoso-erp-jsons07": (6, 7, 17, 16, 16),
}
PLURALS = ("endpoints", "messagegroups", "schemagroups")
MOVING = {"createdat", "modifiedat", "epoch", "self"}


@pytest.fixture(params=SCENARIOS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def document(name: str) -> Json:
    sample: Json = read(SCENARIOS[name])
    return sample


@pytest.fixture
def registry(sqlite_url: str) -> Iterator[Api]:
    """A registry of the built-in models, with nothing in it."""
    create(sqlite_url, default_source())
    with serving(sqlite_url) as served:
        yield served


def test_sample_counts_equal_the_table(name: str, document: Json) -> None:
    found = [len(list(documents)) for documents in (_of(document, "endpoints"), _of(document, "messagegroups"))]
    found += [len(list(_inside(document, "messagegroups", "messages")))]
    schemas = list(_inside(document, "schemagroups", "schemas"))
    assert (*found, len(schemas), sum(len(schema["versions"]) for _, schema in schemas)) == COUNTS[name]


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("validation", ["off", "warn"])
def test_samples_can_be_imported(document: Json, sqlite_url: str, method: str, validation: str) -> None:
    # SA-01: at both levels that refuse nothing; every inline document is checked, and right; others have a reason
    create(sqlite_url, default_source())
    with serving(sqlite_url, domain_validation=validation) as registry:
        registry.done(method, "/", document)
        _check_counts(document, registry.get("/"))
        for xid, given in _versions(document):
            version = registry.get(f"{xid}$details")
            assert given["format"] == version["format"]
            inline = "schema" in given
            assert version["formatvalidated"] is inline, (xid, version)
            assert ("formatvalidatedreason" in version) is not inline


def test_schemas_elsewhere_are_not_checked(registry: Api) -> None:
    # SA-01: a document that is stored elsewhere is not validated, and the reason is told
    document = {"format": "Avro/1.11", "schemaurl": "http://example.com/s.avsc"}
    registry.done("POST", "/", {"schemagroups": {"g": {"schemas": {"s": document}}}})
    version = registry.get("/schemagroups/g/schemas/s$details")
    assert version["formatvalidated"] is False
    assert version["formatvalidatedreason"]


def test_exports_are_stable(document: Json, registry: Api, tmp_path: Path) -> None:
    # SA-02: from one registry to an empty one, all but times, epochs and URLs is the same
    registry.done("PUT", "/", document)
    exported = registry.get("/export")
    second = f"sqlite:///{tmp_path / 'second.db'}"
    create(second, default_source())
    with serving(second) as other:
        other.done("PUT", "/?ignore=epoch", exported)
        assert _still(other.get("/export")) == _still(exported)


def test_exports_keep_defaults_as_defaults(document: Json, registry: Api, sqlite_url: str, tmp_path: Path) -> None:
    # MS-16: what nobody stated is as little stated where an export goes, however it is taken in
    registry.done("PUT", "/", document)
    exported, marked = registry.get("/export"), _marked(sqlite_url)
    collections = {plural: exported[plural] for plural in PLURALS if plural in exported}
    ways = [("PUT", "/?ignore=epoch", exported), ("PATCH", "/?ignore=id,epoch", exported)]
    # what is exported as stated is as much stated there, too
    stated = registry.get("/export?stated")
    other = f"sqlite:///{tmp_path / 'stated.db'}"
    create(other, default_source())
    with serving(other) as target:
        target.done("PUT", "/?ignore=epoch", stated)
        assert _marked(other) == marked
        assert _still(target.get("/export")) == _still(exported)
        assert target.get("/export?stated") | {"epoch": 0} == stated | {"epoch": 0}
    for number, (method, path, body) in enumerate([*ways, ("POST", "/?ignore=epoch", collections)]):
        other = f"sqlite:///{tmp_path / f'other{number}.db'}"
        create(other, default_source())
        with serving(other) as target:
            target.done(method, path, body)
            assert _within(marked, _marked(other))
            target.done(method, path, body)
            assert _within(marked, _marked(other))


def test_an_import_has_one_event_per_entity(document: Json, registry: Api, sqlite_url: str) -> None:
    # SA-03: one event for the registry, and one for each Group, Resource and Version, under one id
    before = last_position(sqlite_url)
    registry.done("PUT", "/", document)
    messages = event_messages(sqlite_url, before)
    kinds = Counter(message.type.removeprefix("io.xregistry.") for message in messages)
    resources = list(_inside(document, "messagegroups", "messages")) + list(_inside(document, "endpoints", "messages"))
    schemas = list(_inside(document, "schemagroups", "schemas"))
    groups = sum(len(list(_of(document, plural))) for plural in ("endpoints", "messagegroups", "schemagroups"))
    assert kinds == {
        "registry.updated": 1,
        "group.created": groups,
        "resource.created": len(resources) + len(schemas),
        "version.created": len(resources) + len(list(_versions(document))),
    }
    assert len({message.xregcorrelationid for message in messages}) == 1


def test_the_same_again_changes_epochs_and_times_only(document: Json, registry: Api, sqlite_url: str) -> None:
    # SA-04: nothing comes or goes, and nothing but what every update touches is listed
    registry.done("PUT", "/", document)
    before = last_position(sqlite_url)
    registry.done("PUT", "/", document)
    messages = event_messages(sqlite_url, before)
    assert messages
    for message in messages:
        assert message.type.endswith(".updated")
        assert {each.removeprefix("meta.") for each in message.changed or ()} == {"epoch", "modifiedat"}, message


def test_messages_lead_to_their_schemas(document: Json, registry: Api) -> None:
    # SA-06: each local reference resolves to a schema of the format that the message states, and no schema is left
    registry.done("PUT", "/", document)
    reached = set()
    for _, message in _inside(document, "messagegroups", "messages"):
        place, _, _ = message["dataschemauri"].partition(":")  # behind it is the name of a message
        schema = registry.get(f"{place}$details")
        assert schema["format"].lower() == message["dataschemaformat"].lower()
        reached.add(place.partition("/versions/")[0])
    assert reached == {xid for xid, _ in _inside(document, "schemagroups", "schemas")}


def test_documents_come_back(document: Json, registry: Api) -> None:
    # SA-07: JSON as the same JSON, text as the same text
    registry.done("PUT", "/", document)
    shown = registry.get("/?inline=*")
    given = {xid: version["schema"] for xid, version in _versions(document) if "schema" in version}
    assert {xid: version["schema"] for xid, version in _versions(shown) if xid in given} == given


@pytest.mark.parametrize("history", HISTORIES)
def test_compatibility_is_asked_of_what_is_there(history: str, registry: Api) -> None:
    # SA-08: a required property more is forward compatible; asking for more than that changes nothing
    document = read(SCENARIOS[history])
    registry.done("PUT", "/", document)
    meta = f"{with_two_versions(document)[0]}/meta"
    registry.done("PATCH", meta, {"compatibility": "forward"})
    refused = registry.send("PATCH", meta, {"compatibility": "backward"})
    assert (refused.status_code, refused.json()["type"].rpartition("#")[2]) == (400, "compatibility_violation")
    assert registry.get(meta)["compatibility"] == "forward"


@pytest.mark.parametrize("kind", STORES)
def test_document_stores_are_taken_in(kind: str, registry: Api) -> None:
    # SA-02, SA-07: documents in each form, given and generated Version ids, under models of their own
    model, data = map(read, STORES[kind])
    registry.done("PUT", "/modelsource", model)
    registry.done("PATCH", "/", data)
    exported = registry.get("/export")
    registry.done("PATCH", "/?ignore=epoch,modelsource,capabilities", exported)
    assert _still(registry.get("/export")) == _still(exported)


def _marked(url: str) -> dict[str, Any]:
    """Which values of each Version are defaults, as it is stored."""
    with closing(Store(url)) as store:
        found = {event.xid: event.private.get(DEFAULT_MARKS) for _, event in store.events(0, 10**6)}
    return {xid: marks for xid, marks in found.items() if marks}


def _within(marks: Json, others: Json) -> bool:
    """Whether all that the first marks is marked by the second."""
    return all(
        _within(mark, others.get(name, {})) if isinstance(mark, dict) else others.get(name) is mark
        for name, mark in marks.items()
    )


def _check_counts(document: Json, root: Json) -> None:
    for plural in ("endpoints", "messagegroups", "schemagroups"):
        assert root[f"{plural}count"] == len(document.get(plural, {}))


def _of(document: Json, plural: str) -> Iterator[tuple[str, Json]]:
    for id, group in document.get(plural, {}).items():
        yield f"/{plural}/{id}", group


def _inside(document: Json, groups: str, resources: str) -> Iterator[tuple[str, Json]]:
    for xid, group in _of(document, groups):
        for id, resource in group.get(resources, {}).items():
            yield f"{xid}/{resources}/{id}", resource


def _versions(document: Json) -> Iterator[tuple[str, Json]]:
    for xid, schema in _inside(document, "schemagroups", "schemas"):
        for id, version in schema["versions"].items():
            yield f"{xid}/versions/{id}", version


def _still(value: Any) -> Any:
    """What of an export does not depend on when and where it was made."""
    if isinstance(value, list):
        return [_still(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _still(each)
        for name, each in value.items()
        if name not in MOVING and not (name.endswith("url") and isinstance(each, str) and each.startswith("http://h/"))
    }
