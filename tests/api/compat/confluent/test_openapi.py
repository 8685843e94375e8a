"""The OpenAPI document of Confluent's API describes every path, and the responses to random requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import given

from annals.api.compat.confluent.paths import BASE
from tests.conformance.test_fuzzing import CHECKS
from tests.support.generated_requests import cases, repeatable, validate
from tests.support.serving import serving

EXAMPLES = 15


@pytest.fixture(scope="module")
def client(shared_store_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    place: Path = tmp_path_factory.mktemp("fuzzing")
    with serving(shared_store_url, place) as served, httpx.Client(base_url=served.url) as client:
        yield client


def test_the_document_has_every_path(client: httpx.Client) -> None:
    # CSR-115, CSR-1003
    document = client.get("/-/openapi/confluent.json").json()
    assert "/subjects/{subject}/versions/{version}/referencedby" in document["paths"]
    operations = [
        operation for item in document["paths"].values() for operation in item.values() if "operationId" in operation
    ]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names)) >= 40
    route = document["paths"]["/-/import"]["post"]
    (body,) = route["requestBody"]["content"].values()
    assert body["schema"] == {"$ref": "#/components/schemas/ImportRequest"}


@pytest.mark.long
@pytest.mark.timeout(300)
def test_answers_are_those_of_the_document(client: httpx.Client) -> None:
    schema = schemathesis.openapi.from_dict(client.get("/-/openapi/confluent.json").json())
    for subject in ("s", "t"):
        client.post(f"{BASE}/subjects/{subject}/versions", json={"schema": '"int"'})
    described: Iterator[Any] = schema.get_all_operations()
    for operation in [operation.ok() for operation in described]:
        run(client, operation)


def run(client: httpx.Client, operation: Any) -> None:
    @repeatable(EXAMPLES)
    @given(cases(operation))
    def ask(case: Any) -> None:
        if "subject" in (case.path_parameters or ()):
            case.path_parameters["subject"] = "s"
        answer = case.call(base_url=str(client.base_url).rstrip("/") + BASE)
        validate(case, answer, CHECKS)

    ask()
