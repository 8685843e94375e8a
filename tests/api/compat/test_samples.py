"""Sample documents, own and published, written through one API and read through the other, in both directions."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from annals.domain.compat.ids import encode_segment
from annals.domain.compat.legacy_apis import MESSAGECATALOG, SCHEMAREGISTRY
from annals.domain.model.builtin import default_source
from tests.data import SCENARIOS, read
from tests.support.registries.in_process import Api, create, serving

SR, MC = SCHEMAREGISTRY.base, MESSAGECATALOG.base
Json = dict[str, Any]


class Sample(NamedTuple):
    """A Version of a schema: the path of its schema in the legacy API, its xid, and its document."""

    older: str
    xid: str
    format: str
    content: bytes
    contenttype: str


@pytest.fixture(params=SCENARIOS)
def document(request: pytest.FixtureRequest) -> Json:
    found: Json = read(SCENARIOS[str(request.param)])
    return found


@pytest.fixture
def api(sqlite_url: str) -> Iterator[Api]:
    create(sqlite_url, default_source())
    with serving(sqlite_url) as served:
        yield served


def samples(document: Json) -> Iterator[Sample]:
    """The Versions in a sample that have an inline document, in the order of their ids."""
    for group, members in document.get("schemagroups", {}).items():
        for id, schema in members.get("schemas", {}).items():
            older = f"/schemagroups/{encode_segment(group)}/schemas/{encode_segment(id)}"
            for versionid, version in sorted(schema["versions"].items()):
                content, contenttype = _document(version)
                if content is not None:
                    xid = f"/schemagroups/{group}/schemas/{id}/versions/{versionid}"
                    yield Sample(older, xid, version["format"], content, contenttype)


def _document(version: Json) -> tuple[bytes | None, str]:
    if "schemabase64" in version:
        return b64decode(version["schemabase64"]), "application/octet-stream"
    inline = version.get("schema")
    if isinstance(inline, str):
        return inline.encode(), "text/plain"
    return (json.dumps(inline).encode(), "application/json") if inline is not None else (None, "")


def test_schemas_by_the_older_api_are_those_of_the_registry(api: Api, document: Json) -> None:
    # SA-07, LEG-1201, LEG-511: both APIs return the same bytes, media type, format and times
    for group in document.get("schemagroups", {}):
        api.done("PUT", f"{SR}/schemagroups/{encode_segment(group)}")
    for number, sample in enumerate(samples(document)):
        answer = api.done(
            "POST",
            f"{SR}{sample.older}?format={sample.format}&description=d{number}",
            sample.content,
            content_type=sample.contenttype,
        )
        version = int(answer.headers["schema-version"])
        xid = f"{sample.xid.rpartition('/')[0]}/{version}"
        shown = api.send("GET", xid)
        assert (shown.content, shown.headers["content-type"]) == (sample.content, sample.contenttype)
        details = api.get(f"{xid}$details")
        assert (details["format"], details["description"]) == (sample.format, f"d{number}")
        older = api.send("GET", f"{SR}{sample.older}/versions/{version}")
        assert older.content == sample.content
        assert older.headers["schema-version-createdtimeutc"] == details["createdat"]
        assert (
            api.send("GET", answer.headers["schema-id-location"].removeprefix("http://h/r")).content == sample.content
        )


def test_schemas_of_the_registry_are_those_of_the_older_api(api: Api, document: Json) -> None:
    # LEG-1201, LEG-405, LEG-610: all imported schemas are listed, returned and found by lookup
    api.done("PUT", "/", document)
    assert api.get(f"{SR}/schemagroups") == sorted(encode_segment(group) for group in document.get("schemagroups", {}))
    for group, members in document.get("schemagroups", {}).items():
        listed = api.get(f"{SR}/schemagroups/{encode_segment(group)}/schemas")
        assert listed == sorted(encode_segment(id) for id in members.get("schemas", {}))
    for sample in samples(document):
        numbers = api.get(f"{SR}{sample.older}/versions")
        found = [api.send("GET", f"{SR}{sample.older}/versions/{number}") for number in numbers]
        assert api.send("GET", sample.xid).content in [answer.content for answer in found]
        assert api.send("GET", f"{SR}/schema?uri={sample.xid}").content == api.send("GET", sample.xid).content


def test_messages_of_the_registry_are_definitions_that_can_be_sent_back(
    api: Api, document: Json, tmp_path: Path
) -> None:
    # LEG-1203, § 12: another registry returns the same document for a definition that is posted to it
    api.done("PUT", "/", document)
    other = f"sqlite:///{tmp_path / 'other.db'}"
    create(other, default_source())
    with serving(other) as target:
        for schemas in document.get("schemagroups", {}):
            body = {"schemagroups": {schemas: document["schemagroups"][schemas]}}
            target.done("POST", "/", body)
        for group in api.get(f"{MC}/messagecatalog"):
            shown = api.get(f"{MC}/messagecatalog/{group}")
            target.done("PUT", f"{MC}/messagecatalog/{group}", shown)
            assert target.get(f"{MC}/messagecatalog/{group}")["format"] == shown["format"]
            for id in api.get(f"{MC}/messagecatalog/{group}/messagedefinitions"):
                path = f"{MC}/messagecatalog/{group}/messagedefinitions/{id}"
                definition = api.send("GET", path)
                target.done("POST", path, definition.content, content_type=definition.headers["content-type"])
                assert target.send("GET", path).content == definition.content
                assert target.get(f"{path}/versions") == [1]
