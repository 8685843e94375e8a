"""`/-/grants` and `/-/access`: roles that administrators grant, who has them, and roles at past moments."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.access.conftest import AccessApi, access_api
from tests.api.auth.test_jwt import KEY, jwk, token


def grant(api: AccessApi, by: str = "admin", **members: Any) -> Any:
    answer = api.send("POST", "/-/grants", {"subject": "caller:nora", "role": "writer", "at": "/", **members}, by=by)
    return answer.json() if answer.status_code == 201 else answer.status_code


@pytest.mark.parametrize("subject", ["caller:nora", "anyone"])
def test_a_grant_adds_to_the_roles_of_a_credential(api: AccessApi, subject: str) -> None:
    # ACC-61, ACC-62, ACC-65
    assert api.whoami("nobody")["groups"] == {}
    created = grant(api, subject=subject, at="/schemagroups/Pay-*", note="for the quarter")
    assert created == {
        "id": created["id"],
        "subject": subject,
        "role": "writer",
        "at": "/schemagroups/pay-*",
        "note": "for the quarter",
        "grantedby": "ada",
    }
    assert api.whoami("nobody")["groups"] == {"/schemagroups/pay-*": "writer"}
    assert api.send("PUT", "/schemagroups/pay-eu", {}, by="nobody").status_code == 201
    assert api.send("PUT", "/schemagroups/other", {}, by="nobody").status_code == 403
    higher = grant(api, at="/schemagroups/pay-*", role="admin")
    assert api.whoami("nobody")["groups"] == {"/schemagroups/pay-*": "admin"}
    assert api.send("DELETE", f"/-/grants/{higher['id']}").status_code == 204
    assert api.send("DELETE", f"/-/grants/{created['id']}").status_code == 204
    assert api.send("PUT", "/schemagroups/pay-us", {}, by="nobody").status_code == 403
    grant(api, role="reader")
    assert api.whoami("nobody")["role"] == "reader"


@pytest.mark.parametrize(
    ("claims", "role"),
    [
        ({"groups": ["a", "pay"]}, "writer"),
        ({"groups": "pay"}, "writer"),
        ({"groups": ["pays", "claim:pay"]}, None),
        ({"groups": {"pay": "writer"}}, None),
        ({"groups": ["pay", 1]}, None),
        ({"groups": [*map(str, range(100)), "pay"]}, None),
        ({"teams": ["pay"]}, None),
    ],
)
def test_grants_to_claims(sqlite_url: str, tmp_path: Path, claims: dict[str, Any], role: str | None) -> None:
    # ACC-62: a grant to a word of a claim; a claim with a wrong type or too many words has no words (ACC-25)
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [jwk(KEY)]}))
    options = {"jwt_keys": str(tmp_path / "jwks.json"), "jwt_issuer": "i", "jwt_audience": "a"}
    with access_api(sqlite_url, **options) as api:
        grant(api, subject="claim:pay")
        assert api.whoami(token(role=..., **claims))["role"] == role


def test_grants_are_for_credentials_only(api: AccessApi) -> None:
    # ACC-122: callers without a credential get no grants; a lower role takes nothing away (ACC-67)
    grant(api, subject="anyone")
    grant(api, subject="caller:ada", role="reader")
    assert api.send("GET", "/", by=None).status_code == 401
    assert api.whoami("admin")["role"] == "admin"
    assert api.whoami("nobody")["role"] == "writer"


def test_grants_expire(api: AccessApi) -> None:
    # ACC-62
    grant(api, expires="2026-01-02T03:05:00Z")
    assert api.whoami("nobody")["role"] == "writer"
    api.now += timedelta(minutes=1)
    assert api.whoami("nobody")["role"] is None


@pytest.mark.parametrize(
    ("members", "pointer", "code"),
    [
        ({"subject": "nora"}, "/subject", "value"),
        ({"subject": "caller:"}, "/subject", "value"),
        ({"subject": "claim:"}, "/subject", "value"),
        ({"subject": "role:x"}, "/subject", "value"),
        ({"subject": "Anyone"}, "/subject", "value"),
        ({"subject": None}, "/subject", "required"),
        ({"role": "owner"}, "/role", "value"),
        ({"role": None}, "/role", "required"),
        ({"at": "/schemagroups"}, "/at", "value"),
        ({"at": "schemagroups/g"}, "/at", "value"),
        ({"at": "/schemagroups/g/schemas/s"}, "/at", "value"),
        ({"at": None}, "/at", "required"),
        ({"expires": "2026-01-02T03:04:05Z"}, "/expires", "value"),
        ({"id": "a/b"}, "/id", "value"),
        ({"id": "taken"}, "/id", "exists"),
        ({"until": "x"}, "/until", "unknown"),
    ],
)
def test_bad_grants_are_refused(api: AccessApi, members: dict[str, Any], pointer: str, code: str) -> None:
    # ACC-62: the error names the member, and nothing is recorded
    grant(api, id="taken")
    before = api.send("GET", "/-/grants").json()
    body = {"subject": "caller:nora", "role": "writer", "at": "/", **members}
    answer = api.send("POST", "/-/grants", {name: value for name, value in body.items() if value is not None})
    problem = answer.json()
    assert (answer.status_code, problem["type"].rpartition("#")[2]) == (400, "invalid_grant")
    assert (problem["pointer"], problem["code"]) == (pointer, code)
    assert api.send("GET", "/-/grants").json() == before


def test_a_subject_has_at_most_a_hundred_grants(api: AccessApi) -> None:
    # ACC-60
    grants = [grant(api, at=f"/schemagroups/g{number}") for number in range(101)]
    assert grants[-1] == 400 and len(api.send("GET", "/-/grants").json()) == 100
    body = {"subject": grants[0]["subject"], "role": "reader", "at": "/schemagroups/g0"}
    assert api.send("PUT", f"/-/grants/{grants[0]['id']}", body).status_code == 200, "one of them can be changed"
    assert isinstance(grant(api, subject="caller:other"), dict)


def test_other_administrators_cannot_use_up_the_grants_of_a_subject(api: AccessApi) -> None:
    # ACC-60, ACC-64: the limit is for what one administrator grants to a subject
    by_team = [grant(api, "team", at=f"/schemagroups/pay-{number}") for number in range(101)]
    assert by_team[-1] == 400 and isinstance(grant(api), dict)


def test_a_role_at_a_place_is_granted_once(api: AccessApi) -> None:
    # ACC-62: another grant of it would change nothing; one that has expired does not count
    first = grant(api, expires="2026-01-02T03:05:00Z")
    body = {"subject": "caller:nora", "role": "writer", "at": "/"}
    problem = api.send("POST", "/-/grants", body).json()
    assert (problem["code"], problem["pointer"], first["id"] in problem["title"]) == ("exists", "/at", True)
    other = grant(api, role="reader")
    assert api.send("PUT", f"/-/grants/{other['id']}", body).json()["code"] == "exists"
    api.now += timedelta(minutes=1)
    assert isinstance(grant(api), dict)


def test_a_grant_is_replaced(api: AccessApi) -> None:
    # ACC-62: PUT creates or replaces a grant; repeating it records no event
    body = {"subject": "caller:nora", "role": "reader", "at": "/"}
    created = api.send("PUT", "/-/grants/g1", body)
    assert (created.status_code, created.headers["location"]) == (201, "http://h/-/grants/g1")
    again = api.send("PUT", "/-/grants/g1", body)
    assert (again.status_code, again.json(), again.headers["annals-position"]) == (
        200,
        created.json(),
        created.headers["annals-position"],
    )
    assert api.send("PUT", "/-/grants/g1", {**body, "role": "writer"}).json()["role"] == "writer"
    assert api.send("PUT", "/-/grants/g1", {**body, "id": "g2"}).json()["code"] == "idmismatch"
    assert api.send("GET", "/-/grants/g1").json()["role"] == "writer"
    assert api.send("DELETE", "/-/grants/g2").status_code == 404


def test_an_answer_shows_its_own_write(api: AccessApi) -> None:
    # ACC-62: of writes at the same time, each is answered with what it wrote, and one of them creates
    bodies = [{"subject": "caller:nora", "role": "reader", "at": "/", "note": str(n)} for n in range(8)]

    async def together() -> list[httpx.Response]:
        headers = {"authorization": "Bearer admin"}
        return await asyncio.gather(*(api.client.put("/-/grants/g1", json=body, headers=headers) for body in bodies))

    answers = api.runner.run(together())
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert [answer.json()["note"] for answer in answers] == [body["note"] for body in bodies]
    assert ["location" in answer.headers for answer in answers] == [answer.status_code == 201 for answer in answers]


def test_who_may_grant(api: AccessApi) -> None:
    # ACC-49, ACC-64: an admin of a place can grant any role there; a list has the grants that its caller administers
    key = api.create_key(name="root", role="admin")["key"]
    for by, at, role, status in (
        ("team", "/schemagroups/pay-eu", "admin", 201),
        ("team", "/schemagroups/pay-*", "reader", 201),
        ("team", "/schemagroups/*", "reader", 403),
        ("team", "/schemagroups/other", "reader", 403),
        ("team", "/", "reader", 403),
        ("writer", "/schemagroups/pay-eu", "reader", 403),
        (key, "/schemagroups/pay-eu", "reader", 403),
    ):
        body = {"subject": "caller:tim", "role": role, "at": at}
        assert api.send("POST", "/-/grants", body, by=by).status_code == status, (by, at)
    root = grant(api)["id"]
    assert len(api.send("GET", "/-/grants", by="team").json()) == 2
    assert len(api.send("GET", "/-/grants?at=/schemagroups/pay-eu").json()) == 1
    assert len(api.send("GET", "/-/grants?subject=caller:nora").json()) == 1
    assert api.send("GET", f"/-/grants/{root}", by="team").status_code == 404
    moved = {"subject": "caller:nora", "role": "reader", "at": "/schemagroups/pay-eu"}
    for id in (root, "nothing"):
        assert api.send("DELETE", f"/-/grants/{id}", by="team").status_code == 403
    assert api.send("POST", "/-/grants", {"id": root, **moved}, by="team").status_code == 403  # ACC-78
    assert api.send("PUT", f"/-/grants/{root}", moved, by="team").status_code == 403
    assert api.send("GET", "/-/grants", by="writer").status_code == 403


def test_who_could(api: AccessApi) -> None:
    # ACC-66
    created = grant(api, at="/schemagroups/pay-*", role="reader")
    key = api.create_key(groups={"/schemagroups/pay-eu": "writer"}, role=None)
    position = int(api.send("GET", "/").headers["annals-position"])
    then = api.send("GET", "/-/access/schemagroups/pay-eu/schemas/s").json()
    from_settings = [
        {"subject": f"caller:{name}", "role": role, "by": "ANNALS_TOKENS", "asofnow": True}
        for name, role in (("ada", "admin"), ("tim", "admin"), ("wim", "writer"))
    ]
    assert then == {
        "at": "/schemagroups/pay-eu",
        "roles": [
            {"subject": "caller:nora", "role": "reader", "by": f"/-/grants/{created['id']}"},
            {"subject": "caller:key:ci", "role": "writer", "by": f"/-/keys/{key['id']}"},
            *from_settings,
        ],
    }
    api.send("DELETE", f"/-/grants/{created['id']}")
    api.send("DELETE", f"/-/keys/{key['id']}")
    assert api.send("GET", "/-/access/schemagroups/pay-eu", by="team").json()["roles"] == from_settings
    assert api.send("GET", f"/-/access/schemagroups/pay-eu/schemas/s?asof={position}").json() == then
    assert [one["subject"] for one in api.send("GET", "/-/access/").json()["roles"]] == ["caller:ada", "caller:wim"]
    assert api.send("GET", "/-/access", by="team").status_code == 403
    assert api.send("GET", "/-/access/schemagroups/other", by="team").status_code == 403


def test_grants_and_keys_stay_out_of_the_registry(api: AccessApi) -> None:
    # ACC-63: state hashes, exports and the feeds of other callers do not contain them
    before = api.send("GET", "/-/hash").json()
    grant(api)
    api.create_key()
    assert api.send("GET", "/-/hash").json()["hash"] == before["hash"]
    assert "grants" not in api.send("GET", "/export").text
    for path in ("/-/log", "/-/events", "/-/interactions", "/-/diff?from=1"):
        for by in ("writer", "team"):
            answer = api.send("GET", path, by=by).text
            assert "/-/grants" not in answer and "/-/keys" not in answer
    assert all(f"/-/{name}/" in api.send("GET", "/-/log").text for name in ("grants", "keys"))


def test_a_note_of_a_grant_that_another_one_repeats(api: AccessApi) -> None:
    # ACC-62: the role, the place and the subject are compared when they are written; others may be changed alone
    first = grant(api, expires="2026-01-02T03:05:00Z")
    api.now += timedelta(minutes=1)
    second = grant(api)
    api.now -= timedelta(minutes=1)
    body = {"subject": "caller:nora", "role": "writer", "at": "/", "note": "kept"}
    assert api.send("PUT", f"/-/grants/{second['id']}", body).json()["note"] == "kept"
    assert api.send("GET", f"/-/grants/{first['id']}").status_code == 200
