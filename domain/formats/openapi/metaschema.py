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

from domain.formats.jsonschema.values import supported_spelling

VALIDATORS: Final[Mapping[str, Any]] = {
    "2.0": OpenAPIV2SpecValidator,
    "3.0": OpenAPIV30SpecValidator,
    "3.1": OpenAPIV31SpecValidator,
    "3.2": OpenAPIV32SpecValidator,
}


def metaschema_error(version: str, document: Any) -> Any:
    """The first error of a document against the meta-schema of a version; None where it is valid."""
    found = next(_validator(version).iter_errors(document), None)
    return None if found is None else _innermost(found)


def with_supported_patterns(value: Any) -> Any:
    """A document whose regular expressions have a spelling that the library supports; itself if nothing changes.

    It also changes members named `pattern` in examples, so use the result for validation only.
    """
    if isinstance(value, list):
        made: Any = [with_supported_patterns(each) for each in value]
        return made if any(new is not old for new, old in zip(made, value, strict=True)) else value
    if not isinstance(value, dict):
        return value
    made = {name: with_supported_patterns(each) for name, each in value.items()}
    if isinstance(value.get("pattern"), str):
        made["pattern"] = supported_spelling(value["pattern"]) or value["pattern"]
    return made if any(made[name] is not each for name, each in value.items()) else value


def _innermost(error: Any) -> Any:
    """The error from the alternative that matches deepest into the document, which most likely is the intended one.

    Most parts may be references instead; a part without `$ref` was not meant to be one.
    """
    branches = getattr(error.kind, "context", None)
    if not branches:
        return error
    return max(
        (_innermost(one) for branch in branches for one in branch),
        key=lambda one: (len(one.instance_path), getattr(one.kind, "property", None) != "$ref"),
        default=error,
    )


@lru_cache(maxsize=8)
def _validator(version: str) -> Any:
    schema = VALIDATORS[version].schema_validator.schema
    return jsonschema_rs.validator_cls_for(schema)(schema)
