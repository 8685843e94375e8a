"""Pieces that descriptions of paths are made of."""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
WHOLE: Final[Schema] = {"type": "integer", "minimum": 0}
#: The header that counts findings.
FOUND: Final = "Annals-Findings"
#: The header that names how an answer is compressed, and what its description says.
ENCODED: Final = "Content-Encoding"
ENCODES: Final = "`zstd` or `gzip`, as the client accepts; absent where the body goes as it is."
#: Headers of the answers to writes; both are absent where there is nothing to say.
RECORDED: Final = ("xRegistry-xregcorrelationid", FOUND)


def headers(*names: str) -> Schema:
    """The headers of an answer with those that all answers have; all are components."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in (*names, "X-Content-Type-Options")}


def content(schema: Schema) -> Schema:
    """A body in JSON."""
    return {"content": {"application/json": {"schema": schema}}}


def gives(says: str, schema: Schema, *names: str) -> Schema:
    """An answer in JSON, with a Link and further headers."""
    return {"description": says, "headers": headers("Link", *names), **content(schema)}


def parameter(name: str, says: str, schema: Schema = TEXT, place: str = "query", **more: Any) -> Schema:
    """A parameter; one of the path is required."""
    required = {"required": True} if place == "path" else {}
    return {"name": name, "in": place, **required, "description": says, "schema": schema, **more}


def own(name: str, summary: str, **more: Any) -> Schema:
    """What an operation of the paths of our own is called, and what else is said of it."""
    return {"operationId": f"own.{name}", "summary": summary, "tags": ["server"], **more}
