"""Sample documents, our own and published ones, imported into a new registry with the three built-in models."""

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
#: Numbers of endpoints, message groups, messages, schemas and Versions of schemas in each document.
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
    """An empty registry with the built-in models."""
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
    # SA-01: with `off` and `warn` nothing is refused; every inline document is valid; others have a reason
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
    # SA-01: a document that is stored elsewhere is not validated, and the Version has the reason
    document = {"format": "Avro/1.11", "schemaurl": "http://example.com/s.avsc"}
    registry.done("POST", "/", {"schemagroups": {"g": {"schemas": {"s": document}}}})
    version = registry.get("/schemagroups/g/schemas/s$details")
    assert version["formatvalidated"] is False
    assert version["formatvalidatedreason"]


def test_exports_are_stable(document: Json, registry: Api, tmp_path: Path) -> None:
    # SA-02: an export imported into an empty registry gives the same export, except for times, epochs and URLs
    registry.done("PUT", "/", document)
    exported = registry.get("/export")
    second = f"sqlite:///{tmp_path / 'second.db'}"
    create(second, default_source())
    with serving(second) as other:
        other.done("PUT", "/?ignore=epoch", exported)
        assert _stable(other.get("/export")) == _stable(exported)


def test_exports_keep_defaults_as_defaults(document: Json, registry: Api, sqlite_url: str, tmp_path: Path) -> None:
    # MS-16: values that are defaults at the source are defaults in the target, however the export is imported
    registry.done("PUT", "/", document)
    exported, marked = registry.get("/export"), _default_marks(sqlite_url)
    collections = {plural: exported[plural] for plural in PLURALS if plural in exported}
    ways = [("PUT", "/?ignore=epoch", exported), ("PATCH", "/?ignore=id,epoch", exported)]
    # after an import of an export with `?stated`, exactly the same values are defaults
    stated = registry.get("/export?stated")
    other = f"sqlite:///{tmp_path / 'stated.db'}"
    create(other, default_source())
    with serving(other) as target:
        target.done("PUT", "/?ignore=epoch", stated)
        assert _default_marks(other) == marked
        assert _stable(target.get("/export")) == _stable(exported)
        assert target.get("/export?stated") | {"epoch": 0} == stated | {"epoch": 0}
    for number, (method, path, body) in enumerate([*ways, ("POST", "/?ignore=epoch", collections)]):
        other = f"sqlite:///{tmp_path / f'other{number}.db'}"
        create(other, default_source())
        with serving(other) as target:
            target.done(method, path, body)
            assert _contains_marks(marked, _default_marks(other))
            target.done(method, path, body)
            assert _contains_marks(marked, _default_marks(other))


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
    # SA-04: nothing is created or deleted, and events list only `epoch` and `modifiedat`
    registry.done("PUT", "/", document)
    before = last_position(sqlite_url)
    registry.done("PUT", "/", document)
    messages = event_messages(sqlite_url, before)
    assert messages
    for message in messages:
        assert message.type.endswith(".updated")
        assert {each.removeprefix("meta.") for each in message.changed or ()} == {"epoch", "modifiedat"}, message


def test_messages_lead_to_their_schemas(document: Json, registry: Api) -> None:
    # SA-06: each local reference resolves to a schema with the format in the message, and every schema is referred to
    registry.done("PUT", "/", document)
    reached = set()
    for _, message in _inside(document, "messagegroups", "messages"):
        place, _, _ = message["dataschemauri"].partition(":")  # after the colon is the name of a message
        schema = registry.get(f"{place}$details")
        assert schema["format"].lower() == message["dataschemaformat"].lower()
        reached.add(place.partition("/versions/")[0])
    assert reached == {xid for xid, _ in _inside(document, "schemagroups", "schemas")}


def test_documents_come_back(document: Json, registry: Api) -> None:
    # SA-07: documents are returned unchanged, JSON as JSON and text as text
    registry.done("PUT", "/", document)
    stored = registry.get("/?inline=*")
    given = {xid: version["schema"] for xid, version in _versions(document) if "schema" in version}
    assert {xid: version["schema"] for xid, version in _versions(stored) if xid in given} == given


@pytest.mark.parametrize("history", HISTORIES)
def test_compatibility_is_asked_of_what_is_there(history: str, registry: Api) -> None:
    # SA-08: an additional required property is forward compatible; a refused change of the level changes nothing
    document = read(SCENARIOS[history])
    registry.done("PUT", "/", document)
    meta = f"{with_two_versions(document)[0]}/meta"
    registry.done("PATCH", meta, {"compatibility": "forward"})
    refused = registry.send("PATCH", meta, {"compatibility": "backward"})
    assert (refused.status_code, refused.json()["type"].rpartition("#")[2]) == (400, "compatibility_violation")
    assert registry.get(meta)["compatibility"] == "forward"


@pytest.mark.parametrize("kind", STORES)
def test_document_stores_are_taken_in(kind: str, registry: Api) -> None:
    # SA-02, SA-07: documents in each form, given and generated Version ids, with other models
    model, data = map(read, STORES[kind])
    registry.done("PUT", "/modelsource", model)
    registry.done("PATCH", "/", data)
    exported = registry.get("/export")
    registry.done("PATCH", "/?ignore=epoch,modelsource,capabilities", exported)
    assert _stable(registry.get("/export")) == _stable(exported)


def _default_marks(url: str) -> dict[str, Any]:
    """The stored marks of each Version for values that are defaults."""
    with closing(Store(url)) as store:
        found = {event.xid: event.private.get(DEFAULT_MARKS) for _, event in store.events(0, 10**6)}
    return {xid: marks for xid, marks in found.items() if marks}


def _contains_marks(marks: Json, others: Json) -> bool:
    """Whether the second marks contain all of the first."""
    return all(
        _contains_marks(mark, others.get(name, {})) if isinstance(mark, dict) else others.get(name) is mark
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


def _stable(value: Any) -> Any:
    """An export without the values that depend on its time and registry."""
    if isinstance(value, list):
        return [_stable(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _stable(each)
        for name, each in value.items()
        if name not in MOVING and not (name.endswith("url") and isinstance(each, str) and each.startswith("http://h/"))
    }
