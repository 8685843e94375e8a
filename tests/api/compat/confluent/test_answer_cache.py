"""Cached responses to repeated requests: their cost, and that each belongs to the current state and the caller."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import httpx
import pytest

from annals.api.compat.confluent import routes
from annals.api.compat.confluent.paths import BASE
from annals.domain.model.builtin import default_source
from annals.projections.entities.view import View
from tests.support.registries.in_process import Api, create, serving

INT: Final = {"schema": '"int"'}
TOKENS: Final = json.dumps(
    {
        "writer": {"name": "wes", "role": "writer"},
        "reader": {"name": "rob", "role": "reader"},
        "lab": {"name": "lea", "groups": {"/schemagroups/lab": "writer"}},
    }
)


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    create(store_url, default_source())
    with serving(store_url, tokens=TOKENS) as served:
        yield served


def send(api: Api, method: str, path: str, body: Any = None, token: str = "writer", **headers: str) -> httpx.Response:
    return api.send(method, BASE + path, body, authorization=f"Bearer {token}", **headers)


def test_requests_that_are_sent_again_read_the_position_alone(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    # CSR-207, CSR-204, CSR-410: a repeated request gets the same response, except for the id of the request
    requests = [
        ("POST", "/subjects/s/versions", INT),
        ("POST", "/subjects/s", INT),
        ("GET", "/schemas/ids/1", None),
        ("GET", "/subjects/s/versions/latest", None),
        ("HEAD", "/schemas/ids/1", None),
    ]
    send(api, *requests[0])
    answers = [send(api, *request) for request in requests]

    def refuse(*_: object) -> None:
        raise AssertionError("the registry was read")

    for name in ("_compute_answer", "_view_at", "_read_at"):
        monkeypatch.setattr(routes.ConfluentRoutes, name, refuse)
    for name in ("entity", "entities", "document"):
        monkeypatch.setattr(View, name, refuse)
    for request, answer in zip(requests, answers, strict=True):
        again = send(api, *request, x_request_id="again")
        assert (again.status_code, again.content) == (200, answer.content)
        headers = {**answer.headers, "x-request-id": "again"}
        assert {name: headers[name] for name in again.headers} == dict(again.headers)
        assert again.headers["annals-position"] == answer.headers["annals-position"]


def test_a_change_is_seen_at_once(api: Api, store_url: str) -> None:
    # CSR-901: also a change by another application on the same store
    assert send(api, "POST", "/subjects/s/versions", INT).json()["id"] == 1
    assert send(api, "POST", "/subjects/s/versions", INT).json()["id"] == 1
    assert send(api, "GET", "/schemas/ids/1/subjects").json() == ["s"]
    with serving(store_url, tokens=TOKENS, ids="other") as other:
        send(other, "POST", "/subjects/t/versions", INT)
    assert send(api, "GET", "/schemas/ids/1/subjects").json() == ["s", "t"]
    send(api, "DELETE", "/subjects/s")
    assert send(api, "GET", "/schemas/ids/1/subjects").json() == ["t"]
    assert send(api, "POST", "/subjects/s", INT).status_code == 404
    assert send(api, "POST", "/subjects/s/versions", INT).json()["version"] == 2


def test_callers_share_answers_only_with_the_same_rights(api: Api) -> None:
    # CSR-908: a schema of a hidden Group is not found, although the response to another caller is cached
    send(api, "POST", "/subjects/s/versions", INT)
    for _ in range(2):
        assert send(api, "GET", "/schemas/ids/1").status_code == 200
        assert send(api, "GET", "/schemas/ids/1", token="reader").status_code == 200
        assert send(api, "GET", "/schemas/ids/1", token="lab").status_code == 404
        assert send(api, "GET", "/schemas/ids/1", token="nobody").status_code == 401


def test_what_else_an_answer_depends_on(api: Api) -> None:
    # CSR-104, CSR-113: the response depends on the media type, and on whether the client accepts newer members
    send(api, "POST", "/subjects/s/versions", INT)
    path = "/subjects/s/versions/1"
    for _ in range(2):
        assert send(api, "GET", path, accept="application/json").headers["content-type"] == "application/json"
        assert send(api, "GET", path, accept="*/*").headers["content-type"].startswith("application/vnd")
        assert "schemaType" not in send(api, "GET", path).json()
        assert "schemaType" in send(api, "GET", path, confluent_accept_unknown_properties="true").json()
        assert send(api, "GET", path, accept="text/html").status_code == 406
        assert send(api, "GET", "/schemas/ids/1?subject=t").json() != send(api, "GET", "/schemas/ids/1").json()


def test_dry_runs_and_moments_are_not_cached(api: Api) -> None:
    # CSR-906: a dry run writes nothing, and its response is not cached
    assert send(api, "POST", "/subjects/s/versions?dryrun", INT).status_code == 200
    assert send(api, "POST", "/subjects/s", INT).status_code == 404
    send(api, "POST", "/subjects/s/versions", INT)
    position = send(api, "GET", "/schemas/ids/1").headers["annals-position"]
    for _ in range(2):
        assert send(api, "GET", f"/schemas/ids/1?asof={position}").json() == send(api, "GET", "/schemas/ids/1").json()
        assert send(api, "GET", "/schemas/ids/1?asof=1").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/compatibility/subjects/s/versions/latest?verbose=true", INT),
        ("GET", "/subjects/s/versions/1?format=resolved", None),
        ("GET", "/subjects/s/versions/1?%66ormat=resolved", None),
    ],
)
def test_checks_that_may_fail_for_a_while_run_again(
    api: Api, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: Any
) -> None:
    # CSR-420, CSR-801: responses of checks that can fail temporarily are not cached
    send(api, "POST", "/subjects/s/versions", INT)
    answers, compute_answer = 0, routes.ConfluentRoutes._compute_answer

    def counted(*arguments: Any) -> Any:
        nonlocal answers
        answers += 1
        return compute_answer(*arguments)

    monkeypatch.setattr(routes.ConfluentRoutes, "_compute_answer", counted)
    assert [send(api, method, path, body).status_code for _ in range(2)] == [200, 200]
    assert answers == 2
