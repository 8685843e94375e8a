"""Generated requests from the OpenAPI document, valid and invalid, against a served registry.

Every response conforms to the document: status, headers, media type and schema. The server never fails, a refused
request records nothing, and the log is consistent afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import given
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from annals.commands.store.log import Store
from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from tests.support.generated_requests import cases, repeatable, validate
from tests.support.serving import serving

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SOURCE: dict[str, Any] = {
    "groups": {
        "dirs": {
            "singular": "dir",
            "attributes": {
                "kind": {
                    "type": "string",
                    "ifvalues": {
                        "big": {"siblingattributes": {"size": {"type": "uinteger", "required": True}}},
                        "odd": {"siblingattributes": {"why": {"type": "map", "item": {"type": "any"}}}},
                    },
                },
                "home": {"type": "xid", "target": "/dirs/files[/versions]"},
                "shape": {"type": "object", "attributes": {"sides": {"type": "integer"}, "*": {"type": "any"}}},
            },
            "resources": {
                "files": {
                    "singular": "file",
                    "attributes": {
                        "*": {"type": "any"},
                        "ratio": {"type": "decimal"},
                        "state": {"type": "string", "enum": ["new", "old"]},
                        "tags": {"type": "array", "item": {"type": "string"}},
                    },
                },
                "notes": {"singular": "note", "hasdocument": False, "versionmode": "createdat", "maxversions": 2},
            },
        },
        "boxes": {"singular": "box"},
    }
}
#: Ids that requests share, so that most of them name an existing entity.
IDS = ("a", "b", "1", "2")
#: Members of the registry that could remove the types that other requests need.
CONFIGURATION = ("capabilities", "modelsource")
EXAMPLES = 6


@pytest.fixture(scope="module")
def client(shared_store_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a registry with the model above. Verifies the log after all tests of the module."""
    place = tmp_path_factory.mktemp("fuzzing")
    # Without this setting, many requests would wait for a position that never exists.
    with (
        serving(shared_store_url, place, ANNALS_WAITFOR_SECONDS="0") as served,
        httpx.Client(base_url=served.url) as client,
    ):
        assert client.put("/modelsource", json=SOURCE).status_code == 200
        yield client
    store = Store(shared_store_url)
    try:
        assert [*verify_log(store), *verify_row_hashes(store)] == []
    finally:
        store.close()


def operations(client: httpx.Client) -> list[Any]:
    """The operations of the present document."""
    schema = schemathesis.openapi.from_dict(client.get("/-/openapi.json").json())
    found = []
    for each in schema.get_all_operations():
        assert isinstance(each, Ok), each
        found.append(each.ok())
    return found


def end_of_log(client: httpx.Client) -> int:
    return int(client.get("/-/readyz").json()["head"])


def checks(answer: Any) -> list[Any]:
    """The checks for a response. A document stored without a media type has no Content-Type to check (HTTP-43)."""
    untyped = "xregistry-versionid" in answer.headers and "content-type" not in answer.headers
    return [check for check in CHECKS if not (untyped and check is content_type_conformance)]


def run(client: httpx.Client, operation: Any, examples: int, keep_model: bool = True) -> None:
    """Sends generated requests of one operation, the same ones in each run."""

    @repeatable(examples)
    @given(cases(operation), st.lists(st.sampled_from(IDS), min_size=3, max_size=3))
    def send(case: Any, ids: list[str]) -> None:
        for name, id in zip(case.path_parameters or (), ids, strict=False):
            case.path_parameters[name] = id
        if keep_model and isinstance(case.body, dict):
            case.body = {name: value for name, value in case.body.items() if name not in CONFIGURATION}
        before = end_of_log(client)
        answer = case.call(base_url=str(client.base_url))
        validate(case, answer, checks(answer))
        if answer.status_code >= 400:
            assert end_of_log(client) == before

    send()


@pytest.mark.long
@pytest.mark.timeout(300)  # most of the time is spent on generating requests
@pytest.mark.parametrize("method", ["get", "put", "patch", "post", "delete"])
def test_entities(client: httpx.Client, method: str) -> None:
    for operation in operations(client):
        if operation.method == method and operation.path.lstrip("/") not in CONFIGURATION:
            run(client, operation, EXAMPLES)


def test_configuration(client: httpx.Client) -> None:
    for operation in operations(client):
        if operation.path in ("/", "/capabilities", "/modelsource"):
            client.put("/modelsource", json=SOURCE)
            run(client, operation, EXAMPLES, keep_model=False)
