"""Builders for the parts of OpenAPI documents that depend on the model."""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]

STRING_SCHEMA: Final[Schema] = {"type": "string"}
#: The schema name of a dry run's response.
DRY_RUN: Final = "DryRun"
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
    json_content = described_response.get("content", {}).get("application/json")
    lines_reference = {"$ref": f"#/components/schemas/{DRY_RUN}"}
    schema = {"anyOf": [json_content["schema"], lines_reference]} if json_content else lines_reference
    content = {"application/json": {"schema": schema}, "application/x-ndjson": {"schema": STRING_SCHEMA}}
    return {**described_response, "content": content}
