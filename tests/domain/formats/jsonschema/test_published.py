"""JSON Schemas of real projects, from installed packages: each is parsed, changed and compared.

SC-10, SC-36. A document of a package that is not installed is skipped, with the package to install.
"""

from __future__ import annotations

import copy
import importlib.util
import json
import time
from pathlib import Path
from typing import Any, Final

import pytest

from annals.domain.formats import jsonschema
from annals.domain.formats.contract import InvalidDocument

#: Package, path in the package, and release of JSON Schema.
DOCUMENTS: Final = (
    ("jsonschema_specifications", "schemas/draft4/metaschema.json", "draft-04"),
    ("jsonschema_specifications", "schemas/draft6/metaschema.json", "draft-06"),
    ("jsonschema_specifications", "schemas/draft7/metaschema.json", "draft-07"),
    ("jsonschema_specifications", "schemas/draft201909/metaschema.json", "draft/2019-09"),
    ("jsonschema_specifications", "schemas/draft202012/metaschema.json", "draft/2020-12"),
    ("openapi_schema_validator", "schemas/oas3.1/metaschema.json", "draft/2020-12"),
    ("openapi_schema_validator", "schemas/oas3.2/meta/2025-09-17.json", "draft/2020-12"),
    ("openapi_schema_validator", "schemas/oas3.2/dialect/2025-09-17.json", "draft/2020-12"),
    ("openapi_spec_validator", "resources/schemas/v2.0/schema.json", "draft-04"),
    ("openapi_spec_validator", "resources/schemas/v3.0/schema.json", "draft-04"),
    ("openapi_spec_validator", "resources/schemas/v3.0.0/schema.json", "draft-04"),
    ("openapi_spec_validator", "resources/schemas/v3.1/schema.json", "draft/2020-12"),
    ("openapi_spec_validator", "resources/schemas/v3.2/schema.json", "draft/2020-12"),
    ("schemathesis", "wfc/schema.json", "draft-07"),
    ("setuptools", "config/setuptools.schema.json", "draft-07"),
    ("setuptools", "config/distutils.schema.json", "draft-07"),
)


def text(package: str, path: str) -> bytes:
    found = importlib.util.find_spec(package)
    places = [Path(place) / path for place in (found.submodule_search_locations or [])] if found else []
    for place in places:
        if place.exists():
            return place.read_bytes()
    pytest.skip(f"no {path} in {package}: pip install {package.replace('_', '-')}")


@pytest.mark.parametrize(("package", "path", "name"), DOCUMENTS, ids=[f"{each[0]}/{each[1]}" for each in DOCUMENTS])
def test_real_documents(package: str, path: str, name: str) -> None:
    # SC-10: it is accepted. SC-36: it is compatible with itself; an additional optional member is compatible both ways
    # unless the content is closed, and an additional required member is not backward compatible.
    document = text(package, path)
    start = time.process_time()
    one = jsonschema.parse(document, f"jsonschema/{name}")
    other = jsonschema.parse(jsonschema.canonical_form(one), f"jsonschema/{name}")
    if "$dynamicRef" not in document.decode() and "$recursiveRef" not in document.decode():
        assert not jsonschema.incompatibilities(one, other)
    wider, stricter = evolved(one.document, False), evolved(one.document, True)
    parsed = [jsonschema.parse(json.dumps(each).encode(), f"jsonschema/{name}") for each in (wider, stricter)]
    assert not jsonschema.incompatibilities(parsed[0], one)
    assert bool(jsonschema.incompatibilities(one, parsed[0])) == closed(one.document)
    assert "reader-required" in {each.rule for each in jsonschema.incompatibilities(parsed[1], one)}
    assert bool(jsonschema.incompatibilities(one, parsed[1])) == closed(one.document)
    assert time.process_time() - start < 10


def test_a_real_document_with_an_expression_of_another_language() -> None:
    # SC-10: `(?i)` is an expression of Python and not of ECMA-262, so not all readers can use the schema.
    with pytest.raises(InvalidDocument, match="not a regular expression"):
        jsonschema.parse(text("schemathesis", "config/schema.json"), "jsonschema/draft/2020-12")


def evolved(document: Any, required: bool) -> Any:
    found = copy.deepcopy(document)
    found["properties"] = found.get("properties", {}) | {"x_new": {}}
    if required:
        found["required"] = [*found.get("required", []), "x_new"]
    return found


def closed(document: Any) -> bool:
    """Whether a document refuses members that it does not declare, `x_new` among them."""
    refusing = False in (document.get("additionalProperties"), document.get("unevaluatedProperties"))
    specified = "$ref" in document.get("unevaluatedProperties", {}) if not refusing else False
    return refusing or specified
