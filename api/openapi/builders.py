"""Builders for the parts of OpenAPI documents that depend on the model."""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]

STRING_SCHEMA: Final[Schema] = {"type": "string"}
#: Members of any type beyond the described ones. The generators of openapi-generator refuse members that a schema does
#: not allow in words, and they confuse `{}` with the `false` of another schema.
OTHER_MEMBERS: Final[Schema] = {"description": "Other members."}
#: The bytes of a document. OpenAPI 3.1 needs no schema for them, but client generators do.
BINARY_SCHEMA: Final[Schema] = {"type": "string", "format": "binary"}
#: The schema name of a page of the log, which is also the response to a dry run.
LOG_LINES: Final = "LogLines"
#: An extension of a response: by query parameter, the schema of the JSON that a request with it returns instead; the
#: last one applies. Most client generators cannot read a response that is a choice of schemas.
JSON_WITH: Final = "x-json-with"
#: The header with the number of findings.
FINDINGS_NAME: Final = "Annals-Findings"
#: Headers of responses to writes. Each is absent if it has no value.
WRITE_HEADERS: Final = ("xRegistry-xregcorrelationid", FINDINGS_NAME)
#: The header with the compression of a response.
CONTENT_ENCODING_NAME: Final = "Content-Encoding"


def response_headers(*names: str) -> Schema:
    """The headers of a response, including those of every response, as references to components."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in (*names, "X-Content-Type-Options")}


def json_content(schema: Schema) -> Schema:
    """A JSON body."""
    return {"content": {"application/json": {"schema": schema}}}


def or_dry_run(response: Schema | None) -> Schema:
    """The 200 response of a write that may also be a dry run.

    response: the response of the write itself; None or empty if it has no 200 response.
    """
    described_response = response or {
        "description": "The events that the request would append.",
        "headers": response_headers("Link", FINDINGS_NAME),
    }
    own_content = described_response.get("content", {}).get("application/json")
    lines = {"$ref": f"#/components/schemas/{LOG_LINES}"}
    content = {"application/json": own_content or {"schema": lines}, "application/x-ndjson": {"schema": STRING_SCHEMA}}
    return {
        **(json_with(described_response, "dryrun", lines) if own_content else described_response),
        "content": content,
    }


def json_with(response: Schema, parameter: str, schema: Schema) -> Schema:
    """The same response, with the schema of its JSON if the request has a query parameter."""
    return {**response, JSON_WITH: {**response.get(JSON_WITH, {}), parameter: schema}}
