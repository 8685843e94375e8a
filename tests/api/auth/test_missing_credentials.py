"""No operation of any OpenAPI document works without a credential, except for the public ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

import httpx
import pytest
import schemathesis
from hypothesis import given
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import ignored_auth

from tests.support.generated_requests import repeatable
from tests.support.registries.get_routes import DOCUMENTS
from tests.support.serving import serving

ADMIN: Final = {"Authorization": "Bearer root"}
#: Headers without a valid credential.
BAD: Final[tuple[dict[str, str], ...]] = (
    {},
    {"Authorization": "Bearer wrong"},
    {"Authorization": "Basic cm9vdDp3cm9uZw=="},
)
#: Public operations: health, discovery and consents, which have a secret in their path (ACC-17), and the operations
#: through which a registry reports to a link that it has changed (LEG-914).
OPEN: Final = {
    *("GET /-/livez", "GET /livez", "GET /-/readyz", "GET /readyz"),
    *("GET /.xregistry", "GET /.well-known/xregistry"),
    *("GET /-/subscriptions/{id}/consent/{secret}", "POST /-/subscriptions/{id}/consent/{secret}"),
    *("OPTIONS /-/links/{id}/events", "POST /-/links/{id}/events"),
}
MODEL: Final = {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}}}
_ADDRESSES: Final = count()


@pytest.fixture(scope="module")
def client(shared_store_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A served registry whose callers need a credential."""
    tokens = json.dumps({"root": {"name": "root", "role": "admin"}})
    settings = {"ANNALS_TOKENS": tokens, "ANNALS_TRUSTED_PROXIES": "127.0.0.1", "ANNALS_WAITFOR_SECONDS": "0"}
    with (
        serving(shared_store_url, tmp_path_factory.mktemp("credentials"), **settings) as served,
        httpx.Client(base_url=served.url) as client,
    ):
        assert client.put("/modelsource", json=MODEL, headers=ADMIN).status_code == 200
        yield client


@pytest.mark.timeout(300)  # most of the time is for generating requests
@pytest.mark.parametrize("document", DOCUMENTS)
def test_operations_need_a_credential(client: httpx.Client, document: str) -> None:
    """ACC-11, ACC-17, ACC-18: with no or a bad credential, each operation is refused with a challenge."""
    described = client.get(document, headers=ADMIN).json() | {"security": [{"bearer": []}]}
    url = str(client.base_url).rstrip("/") + DOCUMENTS[document]
    for operation in schemathesis.openapi.from_dict(described).get_all_operations():
        assert isinstance(operation, Ok), operation
        statuses = statuses_without_credential(operation.ok(), url)
        is_refused, is_open = statuses == {401}, operation.ok().label in OPEN
        assert is_refused != is_open, (operation.ok().label, statuses)


def statuses_without_credential(operation: Any, url: str) -> set[int]:
    """The statuses of requests of an operation with no or a bad credential. url: the URL of its API."""
    statuses = set()

    @repeatable(8)
    @given(operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE))
    def ask(case: Any) -> None:
        # The number of bad credentials per address is limited (ACC-110).
        case.headers = {**(case.headers or {}), "X-Forwarded-For": f"2001:db8:0:{next(_ADDRESSES):x}::1"}
        for headers in BAD:
            answer = case.call(base_url=url, headers=headers)
            statuses.add(answer.status_code)
            assert answer.status_code != 401 or answer.headers["www-authenticate"]
            if operation.label not in OPEN:
                case.validate_response(answer, checks=[ignored_auth])

    ask()
    return statuses
