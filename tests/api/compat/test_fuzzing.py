"""Generated requests from the OpenAPI documents of the two legacy APIs, valid and invalid, to a served registry.

Every response agrees with the document: status, headers, media type and schema. No request causes a server error, a
refused request records nothing, and the log is verified afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import schemathesis
from hypothesis import given
from hypothesis import strategies as st

from annals.commands.store.log import Store
from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from annals.domain.compat.legacy_apis import LEGACY_APIS, LegacyApi
from tests.conformance.test_fuzzing import CHECKS, end_of_log
from tests.support.generated_requests import cases, repeatable, validate
from tests.support.serving import serving

#: Ids that requests share, so that most requests are about existing objects.
IDS = ("a", "a b", "ü")
EXAMPLES = 20


@pytest.fixture(scope="module")
def client(shared_store_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a served registry, whose log is verified after all requests."""
    place: Path = tmp_path_factory.mktemp("fuzzing")
    with serving(shared_store_url, place) as served, httpx.Client(base_url=served.url) as client:
        yield client
    store = Store(shared_store_url)
    try:
        assert [*verify_log(store), *verify_row_hashes(store)] == []
    finally:
        store.close()


@pytest.mark.long
@pytest.mark.timeout(300)  # most of the time is for generating requests
@pytest.mark.parametrize("family", LEGACY_APIS, ids=lambda family: family.name)
def test_answers_are_those_of_the_document(client: httpx.Client, family: LegacyApi) -> None:
    schema = schemathesis.openapi.from_dict(client.get(f"/-/openapi/{family.name}.json").json())
    for group in IDS:
        for method, path, body in _there(family, f"/{family.path}/{quote(group)}"):
            assert client.request(method, family.base + path, content=body).is_success
    described: Iterator[Any] = schema.get_all_operations()
    found = [operation.ok() for operation in described]
    order = {"put": 0, "post": 1, "get": 2, "delete": 3}
    for operation in sorted(found, key=lambda each: (order[each.method], -len(each.path))):
        run(client, operation, family)


def _there(family: LegacyApi, group: str) -> Iterator[tuple[str, str, bytes]]:
    yield "PUT", group, b'{"format": "own"}'
    for id in IDS:
        yield "POST", f"{group}/{family.children}/{quote(id)}", id.encode()


def run(client: httpx.Client, operation: Any, family: LegacyApi) -> None:
    """Sends requests of one operation, the same ones in each run."""

    @repeatable(EXAMPLES)
    @given(
        cases(operation),
        st.lists(st.sampled_from(IDS), min_size=2, max_size=2),
        st.booleans(),
    )
    def ask(case: Any, ids: list[str], plain: bool) -> None:
        for name, id in zip(("group", "id"), ids, strict=True):
            if name in (case.path_parameters or ()):
                case.path_parameters[name] = id
        if case.query:
            case.query.pop("waitfor", None)  # an unreached position is 503, which other tests cover
        if plain:
            path = f"/{family.path}/a/{family.children}/a/versions/1"
            case.query = {"uri": path} if "uri" in (case.query or ()) else {}
            case.headers = {}
        if plain and isinstance(case.body, dict):
            case.body = {
                name: "own" if name == "format" else value for name, value in case.body.items() if name != "id"
            }
        before = end_of_log(client)
        answer = case.call(base_url=str(client.base_url).rstrip("/") + family.base)
        validate(case, answer, CHECKS)
        if answer.status_code >= 400:
            assert end_of_log(client) == before

    ask()
