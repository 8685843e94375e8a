"""Pieces that descriptions of paths are made of."""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]

STRING_SCHEMA: Final[Schema] = {"type": "string"}
UINTEGER_SCHEMA: Final[Schema] = {"type": "integer", "minimum": 0}
#: The header that counts findings.
FINDINGS_NAME: Final = "Annals-Findings"
#: The header that names how an answer is compressed, and what its description says.
CONTENT_ENCODING_NAME: Final = "Content-Encoding"
CONTENT_ENCODING_DESCRIPTION: Final = "`zstd` or `gzip`, as the client accepts; absent where the body goes as it is."
#: Headers of the answers to writes; both are absent where there is nothing to say.
WRITE_HEADERS: Final = ("xRegistry-xregcorrelationid", FINDINGS_NAME)


def response_headers(*names: str) -> Schema:
    """The headers of an answer with those that all answers have; all are components."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in (*names, "X-Content-Type-Options")}


def json_content(schema: Schema) -> Schema:
    """A body in JSON."""
    return {"content": {"application/json": {"schema": schema}}}


def json_result(says: str, schema: Schema, *names: str) -> Schema:
    """An answer in JSON, with a Link and further headers."""
    return {"description": says, "headers": response_headers("Link", *names), **json_content(schema)}


def parameter(name: str, says: str, schema: Schema = STRING_SCHEMA, place: str = "query", **more: Any) -> Schema:
    """A parameter; one of the path is required."""
    required = {"required": True} if place == "path" else {}
    return {"name": name, "in": place, **required, "description": says, "schema": schema, **more}


def own_operation(name: str, summary: str, **more: Any) -> Schema:
    """What an operation of the paths of our own is called, and what else is said of it."""
    return {"operationId": f"own.{name}", "summary": summary, "tags": ["server"], **more}
