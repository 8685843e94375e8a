"""Rules for every OpenAPI document that the registry serves, so that generators of clients can use it.

`test_clients.py` runs two of these generators. Each rule here excludes something that one of them, or another common
one, cannot read, or turns into code that does not compile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest

from annals.api.compat.openapi import compat_openapi_document
from annals.api.ops.own_paths import OWN_PATHS
from annals.api.registry.capabilities import Capabilities
from annals.api.xregistry.openapi.document import openapi_document
from annals.api.xregistry.openapi.names import fold
from annals.domain.compat.legacy_apis import LEGACY_APIS
from annals.domain.decisions.capabilities import INITIAL
from annals.domain.model import compile_model
from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import BASE, MODEL

Json = Any
#: Types that share names with each other across levels, and with schemas that every registry has.
ODD_MODEL: Json = {
    "groups": {
        "problem": {"singular": "version", "resources": {"model": {"singular": "version_"}}},
        "registries": {"singular": "registry", "resources": {"inputs": {"singular": "input"}}},
        "big_boxes": {"singular": "big_box"},
        "bigboxes": {"singular": "bigbox", "resources": {"inputs": {"singular": "input"}}},
    }
}
METHODS = ("get", "put", "patch", "post", "delete", "options")


def registry_document(source: Json) -> Json:
    return openapi_document(compile_model(source), Capabilities.from_document(INITIAL), BASE, OWN_PATHS)


DOCUMENTS: dict[str, Json] = {
    "default model": registry_document(default_source()),
    "small model": registry_document(MODEL),
    "odd model": registry_document(ODD_MODEL),
    **{api.name: compat_openapi_document(api, BASE) for api in LEGACY_APIS},
}


@pytest.fixture(params=DOCUMENTS)
def document(request: pytest.FixtureRequest) -> Json:
    return DOCUMENTS[request.param]


def operations(document: Json) -> Iterator[tuple[str, Json]]:
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                shared = item.get("parameters", [])
                yield f"{method} {path}", {**item[method], "parameters": [*shared, *item[method].get("parameters", [])]}


def resolved(document: Json, value: Json) -> Json:
    """The target of a reference, or the value itself."""
    while "$ref" in value:
        _, _, kind, name = value["$ref"].split("/")
        value = document["components"][kind][name]
    return value


def repeated(names: Iterable[str], key: Callable[[str], str] = fold) -> list[str]:
    """Names that are equal to others except for case and punctuation, or except for what a key ignores."""
    found = list(names)
    counts = Counter(map(key, found))
    return [name for name in found if counts[key(name)] > 1]


def member_name(name: str) -> str:
    """The part of the name of a member or a parameter that generators use."""
    return name.lower().strip("$")


def schemas(value: Json, place: str) -> Iterator[tuple[str, Json]]:
    """Every schema in a part of a document, with its place."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from schemas(each, f"{place}/{index}")
    elif isinstance(value, dict):
        yield place, value
        for name, each in value.items():
            yield from schemas(each, f"{place}/{name}")


def test_no_two_names_differ_only_in_case(document: Json) -> None:
    components = document["components"]
    assert repeated(name for kind, found in components.items() if kind != "parameters" for name in found) == []
    assert repeated(row["operationId"] for _, row in operations(document)) == []
    for place, schema in schemas(components["schemas"], ""):
        if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
            assert repeated(schema["properties"], member_name) == [], place
    for place, row in operations(document):
        parameters = [resolved(document, each) for each in row["parameters"]]
        assert repeated((f"{each['in']}.{each['name']}" for each in parameters), member_name) == [], place


def test_a_class_of_a_property_has_a_name_of_its_own(document: Json) -> None:
    """Generators name the class of an inline object after the schema and the property."""
    names = {fold(name) for name in document["components"]["schemas"]}
    for name, schema in document["components"]["schemas"].items():
        for key, each in schema.get("properties", {}).items():
            if each.get("type") == "object":
                assert fold(name + key) not in names, (name, key)


def test_each_operation_says_what_it_returns(document: Json) -> None:
    for place, row in operations(document):
        assert row["operationId"].isidentifier(), place
        assert row["summary"], place
        for status, reference in row["responses"].items():
            response = resolved(document, reference)
            for media_type, each in response.get("content", {}).items():
                assert media_type == "*/*" or "schema" in each, (place, status)
            if status >= "400" and status not in ("429", "503"):
                [problem] = response["content"].values()
                assert {"type", "title"} <= resolved(document, problem["schema"])["properties"].keys(), (place, status)


def test_bodies_are_named(document: Json) -> None:
    """A body is a named schema, a list of one, or of a simple type; a choice is between named schemas."""
    for place, row in operations(document):
        bodies = [row["requestBody"]] if "requestBody" in row else []
        for body in (*bodies, *(resolved(document, each) for each in row["responses"].values())):
            for each in body.get("content", {}).values():
                assert is_named(each.get("schema", {})), place


def is_named(schema: Mapping[str, Json]) -> bool:
    if "anyOf" in schema:
        return all("$ref" in each for each in schema["anyOf"])
    if schema.get("type") == "array":
        return is_named(schema["items"])
    return "properties" not in schema and not isinstance(schema.get("additionalProperties"), dict)


def test_a_choice_is_one_of_named_objects(document: Json) -> None:
    # Java cannot have a class that is either an object or a list.
    for place, schema in schemas(document["components"]["schemas"], ""):
        if place.endswith("/dependentSchemas"):
            continue
        assert "oneOf" not in schema, place
        for each in schema.get("anyOf", ()) if isinstance(schema.get("anyOf"), list) else ():
            assert resolved(document, each).get("type") == "object", place


def test_a_schema_says_its_type(document: Json) -> None:
    for place, schema in schemas([document["components"]["schemas"], document["components"].get("parameters")], ""):
        if "/dependentSchemas" in place:
            continue  # generators leave it out
        for key in ("enum", "const"):
            if isinstance(schema.get(key), list if key == "enum" else str) and not place.endswith("/properties"):
                assert "type" in schema, place
        kinds = schema.get("type")
        if isinstance(kinds, list) and "null" in kinds:
            assert len(kinds) == 2, place
        if kinds == "object" and "properties" in schema:
            assert "additionalProperties" in schema, place


def test_headers_of_requests_are_texts(document: Json) -> None:
    for place, row in operations(document):
        for each in (resolved(document, each) for each in row["parameters"]):
            assert each["in"] != "header" or each["schema"].get("format") != "date-time", place
