"""Validation of documents against OpenAPI meta-schemas, with the most specific error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import jsonschema_rs
from openapi_spec_validator import (
    OpenAPIV2SpecValidator,
    OpenAPIV30SpecValidator,
    OpenAPIV31SpecValidator,
    OpenAPIV32SpecValidator,
)

from annals.domain.formats.jsonschema.values import supported_spelling

VALIDATORS: Final[Mapping[str, Any]] = {
    "2.0": OpenAPIV2SpecValidator,
    "3.0": OpenAPIV30SpecValidator,
    "3.1": OpenAPIV31SpecValidator,
    "3.2": OpenAPIV32SpecValidator,
}


#: From this version on, schemas are JSON Schema of this draft, unless a document names another dialect.
_JSON_SCHEMA_VERSIONS: Final = ("3.1", "3.2")
_JSON_SCHEMA: Final = "https://json-schema.org/draft/2020-12/schema"
_DIALECT: Final = re.compile(rf"{re.escape(_JSON_SCHEMA)}#?|https://spec\.openapis\.org/oas/3\.[12]/dialect/.*")


def metaschema_error(version: str, document: Any) -> Any:
    """The first error of a document against the meta-schema of a version; None where it is valid."""
    checks_schemas = version in _JSON_SCHEMA_VERSIONS and not _names_other_dialect(document)
    error = next(_schema_validator(version, checks_schemas).iter_errors(document), None)
    return None if error is None else _innermost_error(error)


def with_supported_patterns(value: Any) -> Any:
    """A document whose regular expressions have a spelling that the library supports; itself if nothing changes.

    It also changes members named `pattern` in examples, so use the result for validation only.
    """
    if isinstance(value, list):
        rewritten: Any = [with_supported_patterns(member) for member in value]
        return rewritten if any(new is not old for new, old in zip(rewritten, value, strict=True)) else value
    if not isinstance(value, dict):
        return value
    rewritten = {name: with_supported_patterns(member) for name, member in value.items()}
    if isinstance(value.get("pattern"), str):
        rewritten["pattern"] = supported_spelling(value["pattern"]) or value["pattern"]
    return rewritten if any(rewritten[name] is not member for name, member in value.items()) else value


def _innermost_error(error: Any) -> Any:
    """The error from the alternative that matches deepest into the document, which most likely is the intended one.

    Most parts may be references instead; a part without `$ref` was not meant to be one.
    """
    branches = getattr(error.kind, "context", None)
    if not branches:
        return error
    return max(
        (_innermost_error(nested_error) for branch in branches for nested_error in branch),
        key=lambda one: (len(one.instance_path), getattr(one.kind, "property", None) != "$ref"),
        default=error,
    )


def _names_other_dialect(document: Any) -> bool:
    """Whether a document or a part of it names a dialect of JSON Schema that is not the usual one."""
    pending = [document]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            dialects = (value.get("jsonSchemaDialect"), value.get("$schema"))
            if any(isinstance(dialect, str) and not _DIALECT.fullmatch(dialect) for dialect in dialects):
                return True
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return False


@lru_cache(maxsize=8)
def _schema_validator(version: str, checks_schemas: bool) -> Any:
    """checks_schemas: whether the schemas in a document are checked by their own meta-schema as well."""
    schema = VALIDATORS[version].schema_validator.schema
    if checks_schemas:
        # The meta-schema leaves the dialect open: any object is a schema to it. All schemas refer to this anchor.
        schema_object = {"$dynamicAnchor": "meta", "$ref": _JSON_SCHEMA}
        schema = {**schema, "$defs": {**schema["$defs"], "schema": schema_object}}
    return jsonschema_rs.validator_cls_for(schema)(schema)
