"""Groups and schemas to measure with: eight attributes and a document of some 500 bytes each."""

from __future__ import annotations

from typing import Any

from annals.domain.values.json_text import dumps


def schema(number: int) -> dict[str, Any]:
    """One schema with its document."""
    fields = [{"name": f"field{index}", "type": "string", "doc": f"part {index} of {number}"} for index in range(8)]
    return {
        "name": f"Schema {number}",
        "description": f"What a message of kind {number} carries",
        "documentation": f"https://example.com/docs/{number}",
        "labels": {"team": f"team{number % 17}", "stage": "test"},
        "format": "Avro/1.11",
        "contenttype": "application/json",
        "schema": {"type": "record", "name": f"Record{number}", "fields": fields},
    }


def groups(count: int, each: int, start: int = 0) -> dict[str, Any]:
    """`count` schema groups of `each` schemas, numbered from `start`: a body for `POST /schemagroups`."""
    return {
        f"group{group}": {"name": f"Group {group}", "schemas": {f"schema{n}": schema(n) for n in range(each)}}
        for group in range(start, start + count)
    }


def body(count: int, each: int, start: int = 0) -> bytes:
    """The same as JSON text."""
    return dumps(groups(count, each, start))
