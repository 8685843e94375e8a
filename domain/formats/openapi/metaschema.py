"""Validation of documents against OpenAPI meta-schemas, with the most specific error."""

from __future__ import annotations

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


def metaschema_error(version: str, document: Any) -> Any:
    """The first error of a document against the meta-schema of a version; None where it is valid."""
    error = next(_schema_validator(version).iter_errors(document), None)
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


@lru_cache(maxsize=8)
def _schema_validator(version: str) -> Any:
    schema = VALIDATORS[version].schema_validator.schema
    return jsonschema_rs.validator_cls_for(schema)(schema)
