"""Builders for OpenAPI path descriptions."""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]

STRING_SCHEMA: Final[Schema] = {"type": "string"}
UINTEGER_SCHEMA: Final[Schema] = {"type": "integer", "minimum": 0}
#: The header with the number of findings.
FINDINGS_NAME: Final = "Annals-Findings"
#: The header with the compression of a response, and its description.
CONTENT_ENCODING_NAME: Final = "Content-Encoding"
CONTENT_ENCODING_DESCRIPTION: Final = "`zstd` or `gzip`, as the client accepts; absent where the body goes as it is."
#: Headers of responses to writes. Each is absent if it has no value.
WRITE_HEADERS: Final = ("xRegistry-xregcorrelationid", FINDINGS_NAME)


def response_headers(*names: str) -> Schema:
    """The headers of a response, including those of every response, as references to components."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in (*names, "X-Content-Type-Options")}


def json_content(schema: Schema) -> Schema:
    """A JSON body."""
    return {"content": {"application/json": {"schema": schema}}}


def json_result(says: str, schema: Schema, *names: str) -> Schema:
    """A JSON response with a Link header and additional headers."""
    return {"description": says, "headers": response_headers("Link", *names), **json_content(schema)}


def parameter(name: str, says: str, schema: Schema = STRING_SCHEMA, place: str = "query", **more: Any) -> Schema:
    """A parameter. A path parameter is always required."""
    required = {"required": True} if place == "path" else {}
    return {"name": name, "in": place, **required, "description": says, "schema": schema, **more}


def own_operation(name: str, summary: str, **more: Any) -> Schema:
    """An operation of a path that is not from the spec."""
    return {"operationId": f"own.{name}", "summary": summary, "tags": ["server"], **more}
