"""A registry with content for all pages: schemas with Versions, messages, endpoints, and odd names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import httpx

_AVRO: Final = "Avro/1.12.0"
_FIELDS: Final[list[dict[str, Any]]] = [
    {"name": "id", "type": "string"},
    {"name": "temperature", "type": "double", "default": 0.0, "doc": "degrees Celsius"},
    {"name": "takenAt", "type": "long", "default": 0},
]
#: A name of an entity. Pages must escape it.
HOSTILE: Final = "<script>alert('x')</script>"


def _record(fields: int) -> dict[str, Any]:
    return {"type": "record", "name": "Reading", "namespace": "com.example", "fields": _FIELDS[:fields]}


def _version(number: int) -> dict[str, Any]:
    return {"versionid": str(number), "format": _AVRO, "contenttype": "application/json", "schema": _record(number)}


SCHEMAS: Final[dict[str, Any]] = {
    "sensors": {
        "name": "Sensors",
        "description": "Readings of all sensors.",
        "labels": {"team": "field", "stage": "prod"},
        "schemas": {
            "reading": {"versions": {str(number): _version(number) for number in (1, 2, 3)}},
            "alarm": {
                "name": HOSTILE,
                "format": "JsonSchema/draft-07",
                "contenttype": "application/schema+json",
                "schema": {"type": "object", "properties": {"level": {"type": "integer"}}},
            },
            "picture": {
                "format": "PNG",
                "contenttype": "image/png",
                "schemabase64": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB",
            },
            "odd:name@x~y.z": {"format": "JsonSchema/draft-07", "schema": {"type": "string"}, "name": "Größe Ω"},
        },
    },
    "empty": {"documentation": "javascript:alert(1)", "deprecated": {"effective": "2030-01-01T00:00:00Z"}},
}
MESSAGES: Final[dict[str, Any]] = {
    "sensors": {
        "messages": {
            "base": {
                "envelope": "CloudEvents/1.0",
                "envelopemetadata": {"type": {"value": "com.example.reading"}, "source": {"value": "/sensors"}},
            },
            "reading": {
                "basemessageuri": "/messagegroups/sensors/messages/base",
                "dataschemauri": "/schemagroups/sensors/schemas/reading",
                "dataschemaformat": _AVRO,
            },
        }
    }
}
ENDPOINTS: Final[dict[str, Any]] = {
    "telemetry": {"usage": ["producer"], "messagegroups": ["/messagegroups/sensors"], "envelope": "CloudEvents/1.0"}
}


def fill(url: str, schemas: int = 0, headers: Mapping[str, str] | None = None) -> None:
    """Writes the content into a registry with the default model. schemas: the number of further schemas."""
    with httpx.Client(base_url=url, timeout=60, headers=headers) as client:
        for path, body in (
            ("/schemagroups", SCHEMAS),
            ("/messagegroups", MESSAGES),
            ("/endpoints", ENDPOINTS),
        ):
            answer = client.post(path, json=body)
            assert answer.is_success, answer.text
        client.patch("/schemagroups/sensors", json={"description": "Readings of all sensors of the field."})
        if schemas:
            many = {f"schema{number:05}": _version(2) for number in range(schemas)}
            answer = client.post("/schemagroups/many/schemas", content=json.dumps(many))
            assert answer.is_success, answer.text
