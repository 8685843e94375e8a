"""The OpenAPI documents of the two legacy APIs."""

from __future__ import annotations

import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from annals.api.compat.paths import CompatPathKind, resolve_path
from annals.domain.compat.document_attributes import request_names
from annals.domain.compat.legacy_apis import LEGACY_APIS, SCHEMAREGISTRY, LegacyApi
from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import BASE, Api, create, serving


@pytest.fixture
def api(sqlite_url: str) -> Any:
    create(sqlite_url, default_source())
    with serving(sqlite_url) as served:
        yield served


@pytest.fixture(params=LEGACY_APIS, ids=lambda family: family.name)
def family(request: pytest.FixtureRequest) -> LegacyApi:
    found: LegacyApi = request.param
    return found


def test_it_is_openapi(api: Api, family: LegacyApi) -> None:
    # a valid OpenAPI 3.1 document, below the base path and in /-/openapi, to which the registry's document links
    found = api.get(f"{family.base}/openapi.json")
    assert list(OpenAPIV31SpecValidator(found).iter_errors()) == []
    assert found["servers"] == [{"url": BASE + family.base}]
    assert api.get(f"/-/openapi/{family.name}.json") == found
    assert f"/-/openapi/{family.name}.json" in api.get("/-/openapi.json")["info"]["description"]
    assert api.send("GET", "/-/openapi/other.json").status_code == 404
    assert api.send("POST", f"/-/openapi/{family.name}.json").status_code == 405


def test_it_has_every_path_and_method(api: Api, family: LegacyApi) -> None:
    # LEG-200: the document has all operations, and OPTIONS lists the same methods
    found = api.get(f"{family.base}/openapi.json")["paths"]
    kinds = set()
    for path, item in found.items():
        concrete_path = family.base + re.sub(r"{\w+}", "1", path)
        target = resolve_path(concrete_path)
        kinds.add(target.kind)
        methods = {method.upper() for method in item if method != "parameters"}
        assert methods == set(target.methods)
        allow = set(api.send("OPTIONS", concrete_path).headers["allow"].split(", "))
        assert allow == methods | {"HEAD", "OPTIONS"}
    assert kinds == set(CompatPathKind)
    names = [row["operationId"] for item in found.values() for key, row in item.items() if key != "parameters"]
    assert len(names) == len(set(names))


def test_attributes_of_a_document_are_described(api: Api, family: LegacyApi) -> None:
    # LEG-501: each attribute is described as a query parameter and as a header
    path = f"/{family.path}/{{group}}/{family.children}/{{id}}"
    described = api.get(f"{family.base}/openapi.json")["paths"][path]["post"]["parameters"]
    assert [row["name"] for row in described] == [
        *(parameter for parameter, _ in request_names(family).values()),
        *(header for _, header in request_names(family).values()),
        "dryrun",
    ]


def test_answers_fit_their_schemas(api: Api, family: LegacyApi) -> None:
    # Groups and errors; errors are problem documents (LEG-211)
    found = api.get(f"{family.base}/openapi.json")

    def errors(name: str, value: Any) -> list[str]:
        schema = {"$ref": f"#/components/schemas/{name}", "components": found["components"]}
        return [error.message for error in Draft202012Validator(schema).iter_errors(value)]

    path = f"{family.base}/{family.path}/g"
    body = {"format": "own", "description": "a"}
    assert errors("GroupWrite", body) == []
    assert errors("Group", api.done("PUT", path, body).json()) == []
    assert errors("Refusal", api.send("GET", f"{path}x").json()) == []
    assert errors("Refusal", api.send("PUT", path, {"nope": 1}).json()) == []
    assert errors("GroupWrite", {"nope": 1}) != []
    assert (errors("GroupWrite", {}) == []) == (family is SCHEMAREGISTRY)
