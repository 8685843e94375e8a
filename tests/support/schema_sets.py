"""Registries with generated schemas of the three types, as Confluent's clients register them, for tests of copies."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx

from annals.domain.confluent.subjects import Subject
from annals.projections.confluent_copy.rest_api import HttpApi
from annals.projections.confluent_copy.rest_reader import RestReader
from annals.projections.confluent_copy.subject_copy import SubjectCopy
from annals.projections.outgoing.destination_guard import DestinationGuard

_BASES = {
    "AVRO": '{"type": "record", "name": "Base", "namespace": "shop", "fields": []}',
    "JSON": '{"title": "base", "type": "object"}',
    "PROTOBUF": 'syntax = "proto3";\npackage shop;\n\nmessage Base {\n  string a = 1;\n}\n',
}
_NAMES = {"AVRO": "shop.Base", "JSON": "base.json", "PROTOBUF": "base.proto"}


def fill(url: str, count: int) -> None:
    """Registers schemas with all kinds of names, contexts, references, several versions, deletions and settings."""
    with httpx.Client(base_url=url, timeout=60) as client:
        done(client, "PUT", "/config/:.__GLOBAL:", {"compatibility": "NONE"})
        for type, text in _BASES.items():
            register(client, f"base-{type}", {"schema": text, "schemaType": type})
        for number in range(count):
            subject = _subject(number)
            register(client, subject, _schema(number, 1))
            if number % 3 == 0:
                register(client, subject, _schema(number, 2))
            if number % 9 == 0:
                done(client, "DELETE", f"/subjects/{quote(subject, safe='')}/versions/1")
            if number % 25 == 7:
                done(client, "DELETE", f"/subjects/{quote(subject, safe='')}")
            if number % 10 == 0:
                done(client, "PUT", f"/config/{quote(subject, safe='')}", {"compatibility": "FULL", "normalize": True})
        done(client, "PUT", "/mode/Sub1", {"mode": "READONLY"})


def register(client: httpx.Client, subject: str, body: dict[str, Any]) -> int:
    """Registers a schema, and returns its id."""
    return int(done(client, "POST", f"/subjects/{quote(subject, safe='')}/versions", body)["id"])


def done(client: httpx.Client, method: str, path: str, body: Any = None) -> Any:
    """The JSON of the response to a request, which must succeed."""
    answer = client.request(method, path, json=body)
    assert answer.status_code == 200, f"{method} {path}: {answer.text}"
    return answer.json()


def _subject(number: int) -> str:
    kinds = ("sub{}", "Sub{}", "topic/{}-value", ":.west:sub{}", "ä {}:x", ":.east:Sub{}")
    return kinds[number % len(kinds)].format(number)


def _schema(number: int, version: int) -> dict[str, Any]:
    type = ("AVRO", "JSON", "PROTOBUF")[number % 3]
    field = f"f{version}"
    text = {
        "AVRO": json.dumps(
            {"type": "record", "name": f"R{number}", "fields": [{"name": field, "type": "shop.Base", "doc": "é"}]}
        ),
        "JSON": json.dumps({"title": f"J{number}", "properties": {field: {"$ref": "base.json"}}}, indent=1),
        "PROTOBUF": f'syntax = "proto3";\nimport "base.proto";\nmessage M{number} {{\n  shop.Base {field} = 1;\n}}\n',
    }[type]
    reference = {"name": _NAMES[type], "subject": f":.:base-{type}", "version": 1}
    metadata = {"properties": {"owner": f"team {number}"}} if number % 4 == 0 else None
    return {"schema": text, "schemaType": type, "references": [reference], "metadata": metadata}


def contents(url: str) -> dict[Subject, SubjectCopy]:
    """Everything that a copy has to preserve, by subject."""
    api = HttpApi(url, DestinationGuard("127.0.0.1"))
    reader = RestReader(api)
    copies = {subject: reader.read(subject) for subject in reader.subjects()}
    api.close()
    return copies
