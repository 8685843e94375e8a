"""The registry does not follow external references: a listener to which all of them point gets no request."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from annals.domain.compat.legacy_apis import MESSAGECATALOG, SCHEMAREGISTRY
from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import create, serving

CE = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "t"}}}
XSD = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:include schemaLocation="{at}"/></xs:schema>'


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A non-blocking listening socket: `accept` fails as long as no client has connected."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        server.setblocking(False)
        yield server


def test_the_listener_detects_a_request(listener: socket.socket) -> None:
    with closing(socket.create_connection(listener.getsockname())):
        listener.accept()[0].close()


def test_no_reference_is_followed(listener: socket.socket, sqlite_url: str) -> None:
    # SC-12, MS-12, MS-18, EP-40: no write, check, comparison, resolution, match or finding follows a reference
    at = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
    schemas: dict[str, dict[str, Any]] = {
        "elsewhere": {"format": "Avro/1.11", "schemaurl": at},
        "json": {"format": "JsonSchema/draft-07", "schema": {"$schema": "http://json-schema.org/draft-07/schema#"}},
        "xsd": {"format": "XSD/1.0", "schema": XSD.format(at=at)},
    }
    schemas["json"]["schema"] |= {"properties": {"a": {"$ref": at}}}
    message = {**CE, "basemessageuri": at, "dataschemauri": at, "dataschemaformat": "Avro/1.11"}
    tree = {
        "schemagroups": {"g": {"schemas": schemas}},
        "messagegroups": {"g": {"messages": {"m": message}}},
        "endpoints": {"e": {"usage": ["producer"], "messagegroups": [at, "/messagegroups/g"]}},
    }
    create(sqlite_url, default_source())
    with serving(sqlite_url) as api:
        api.done("POST", "/", tree)
        for id, schema in schemas.items():
            api.done("PATCH", f"/schemagroups/g/schemas/{id}/meta", {"compatibility": "backward"})
            api.done("POST", f"/schemagroups/g/schemas/{id}$details", schema)
        assert api.get("/-/resolved/messagegroups/g/messages/m")["unresolved"] == {"uri": at, "reason": "external"}
        assert api.get("/-/resolved/endpoints/e")["unresolved"] == [{"uri": at, "reason": "external"}]
        api.get("/-/findings")
        event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "dataschema": at}
        assert len(api.done("POST", "/-/match/messagegroups/g", event).json()["matches"]) == 1
        api.send("POST", "/-/check/schemagroups/g/schemas/json", json.dumps({"$ref": at}).encode())
        assert api.get("/export")["messagegroups"]["g"]["messages"]["m"]["versions"]["1"]["basemessageuri"] == at
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_the_legacy_apis_fetch_nothing(listener: socket.socket, sqlite_url: str) -> None:
    # LEG-212, LEG-1107, LEG-1108: authorities, ids, URIs and references point to the listener, and are not followed
    at = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
    schemas, messages = f"{SCHEMAREGISTRY.base}/schemagroups", f"{MESSAGECATALOG.base}/messagecatalog"
    look_up = f"{SCHEMAREGISTRY.base}/schema?uri"
    create(sqlite_url, default_source())
    with serving(sqlite_url) as api:
        for group in (f"{schemas}/g", f"{messages}/g"):
            api.done("PUT", group, {"format": "CloudEvents"})
        for number, document in enumerate((json.dumps({"$ref": at}), XSD.format(at=at))):
            format, posted = ("json-schema", "xsd11")[number], f"{schemas}/f{number}/schemas/s"
            api.done("PUT", f"{schemas}/f{number}", {"format": format})
            api.done("POST", f"{posted}?authority={at}&id={at}/{number}", document.encode())
            assert api.send("GET", f"{look_up}={at}/{number}").content == document.encode()
        definition = {"attributes": {"type": "t", "dataschema": at}}
        api.done("POST", f"{messages}/g/messagedefinitions/m?authority={at}", json.dumps(definition).encode())
        assert api.send("GET", f"{look_up}={at}/unknown").status_code == 404
    with pytest.raises(BlockingIOError):
        listener.accept()
