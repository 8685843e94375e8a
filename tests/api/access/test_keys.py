"""`/-/keys`: creation, rotation and revocation by administrators of the places; a key is returned only once."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import pytest

from annals.domain.access.keys import parse_key
from tests.api.access.conftest import AccessApi, access_api
from tests.support.subscribing import BODY


def test_a_key_is_shown_once(api: AccessApi) -> None:
    # ACC-40, ACC-41, ACC-42, ACC-45
    answer = api.send("POST", "/-/keys", {"name": "ci", "role": "writer", "description": "builds"})
    created = answer.json()
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "private, no-store")
    assert answer.headers["location"] == f"http://h/-/keys/{created['id']}"
    shown = {
        "id": created["id"],
        "name": "ci",
        "role": "writer",
        "expires": "2026-04-02T03:04:05Z",
        "description": "builds",
        "createdat": "2026-01-02T03:04:05Z",
    }
    assert created == {**shown, "key": created["key"]}
    assert api.send("GET", "/-/keys").json() == [shown]
    assert api.send("GET", f"/-/keys/{created['id']}").json() == shown
    key = created["key"]
    assert api.whoami(key) == {
        "name": "key:ci",
        "authenticator": "keys",
        "role": "writer",
        "groups": {},
        "expires": "2026-04-02T03:04:05.000000Z",
    }
    assert api.send("PUT", "/schemagroups/g", {}, by=key).status_code == 201
    for path in ("/-/log", "/-/events", "/-/interactions", "/-/keys", f"/-/history/-/keys/{created['id']}"):
        assert key not in api.send("GET", path).text  # ACC-113
    [line] = [line for line in api.send("GET", "/-/log").text.splitlines() if f"/-/keys/{created['id']}" in line]
    assert "ada" in api.send("GET", "/-/interactions").text and "ci" in line
    seen_by_writer = api.send("GET", "/-/log", by="writer").text
    assert f"/-/keys/{created['id']}" not in seen_by_writer  # ACC-44
    assert f'"keyid":"{created["id"]}"' in seen_by_writer  # ACC-115: on the interaction that the key wrote


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        ({"role": "writer"}, "/name", "required"),
        ({"name": "", "role": "writer"}, "/name", "value"),
        ({"name": "key:x", "role": "writer"}, "/name", "value"),
        ({"name": 1, "role": "writer"}, "/name", "type"),
        ({"name": "n" * 125, "role": "writer"}, "/name", "value"),
        ({"name": "n"}, "/role", "required"),
        ({"name": "n", "role": "owner"}, "/role", "value"),
        ({"name": "n", "groups": {"/schemagroups": "writer"}}, "/groups/~1schemagroups", "value"),
        ({"name": "n", "groups": {"/a/" + 9 * "*": "writer"}}, f"/groups/~1a~1{9 * '*'}", "value"),
        ({"name": "n", "groups": {f"/a/g{n}": "reader" for n in range(101)}}, "/groups", "value"),
        ({"name": "n", "role": "writer", "expires": "soon"}, "/expires", "value"),
        ({"name": "n", "role": "writer", "expires": "2026-01-02T03:04:05Z"}, "/expires", "value"),
        ({"name": "n", "role": "writer", "expires": "2027-01-04T03:04:05Z"}, "/expires", "value"),
        ({"name": "n", "role": "writer", "colour": "red"}, "/colour", "unknown"),
        ({"name": "taken", "role": "writer"}, "/name", "exists"),
        ([], "", "type"),
    ],
)
def test_bad_keys_are_refused(api: AccessApi, body: Any, pointer: str, code: str) -> None:
    # ACC-41: the error names the member, and nothing is recorded
    api.create_key(name="taken")
    before = api.send("GET", "/-/keys").json()
    answer = api.send("POST", "/-/keys", body)
    problem = answer.json()
    assert (answer.status_code, problem["type"].rpartition("#")[2]) == (400, "invalid_key")
    assert (problem["pointer"], problem["code"]) == (pointer, code)
    assert api.send("GET", "/-/keys").json() == before


def test_rotation_with_grace(api: AccessApi) -> None:
    # ACC-46: the old key works until the grace period ends, the new key at once
    old = api.create_key()
    for grace in (-1, 604801, "1", 1.5):
        assert api.send("POST", f"/-/keys/{old['id']}/actions/rotate", {"grace": grace}).status_code == 400
    answer = api.send("POST", f"/-/keys/{old['id']}/actions/rotate", {"grace": 60})
    new = answer.json()
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "private, no-store")
    assert new["id"] == old["id"] and new["key"] != old["key"] and new["rotatedat"] == "2026-01-02T03:04:05Z"
    assert [api.whoami(key["key"])["name"] for key in (old, new)] == ["key:ci", "key:ci"]
    assert api.whoami(old["key"])["expires"] == "2026-01-02T03:05:05.000000Z"
    api.now += timedelta(seconds=60)
    assert (api.whoami(old["key"]), api.whoami(new["key"])["name"]) == (401, "key:ci")
    newest = api.send("POST", f"/-/keys/{old['id']}/actions/rotate").json()
    assert [api.whoami(key["key"]) for key in (old, new)] == [401, 401]
    assert api.whoami(newest["key"])["name"] == "key:ci"


def test_keys_end(api: AccessApi) -> None:
    # ACC-47: by revocation and by expiry; then the name is available again
    revoked, expired = api.create_key(), api.create_key(name="short", expires="2026-01-02T04:00:00Z")
    assert api.send("DELETE", f"/-/keys/{revoked['id']}").status_code == 204
    assert (api.whoami(revoked["key"]), api.whoami(expired["key"])["name"]) == (401, "key:short")
    assert api.send("GET", f"/-/keys/{revoked['id']}").status_code == 404
    api.now += timedelta(hours=1)
    assert api.whoami(expired["key"]) == 401
    assert api.send("POST", f"/-/keys/{expired['id']}/actions/rotate").json()["code"] == "expired"
    assert {api.create_key(name=name)["name"] for name in ("ci", "short")} == {"ci", "short"}


@pytest.mark.parametrize(("graces", "status"), [((), "ada"), ((60,), "ada"), ((0,), 429)])
def test_expired_keys_are_no_guesses(api: AccessApi, graces: tuple[int, ...], status: Any) -> None:
    # ACC-110: a program may go on sending a key that has expired, or whose grace is over; others are not known
    key = api.create_key(expires="2026-01-02T04:00:00Z")
    for grace in graces:
        assert api.send("POST", f"/-/keys/{key['id']}/actions/rotate", {"grace": grace}).status_code == 200
    api.now += timedelta(hours=1)
    assert {api.whoami(key["key"]) for _ in range(50)} == {401}
    answer = api.send("GET", "/-/whoami")
    assert (answer.json()["name"] if answer.status_code == 200 else answer.status_code) == status


def test_keys_of_the_past(api: AccessApi) -> None:
    # ACC-40, ACC-48: `asof` returns the keys of a moment, without their last use
    created = api.create_key()
    api.whoami(created["key"])
    [shown] = api.send("GET", "/-/keys").json()
    assert shown.pop("lastused").keys() == {"time", "address"}
    position = int(api.send("GET", "/").headers["annals-position"])
    api.send("DELETE", f"/-/keys/{created['id']}")
    assert api.send("GET", "/-/keys").json() == []
    past = api.send("GET", f"/-/keys?asof={position}")
    assert past.json() == [shown]
    assert "rel=original" in past.headers["link"]
    assert api.send("GET", f"/-/keys/{created['id']}?asof={position}").json() == shown
    assert api.send("GET", "/-/keys?asof=99999999").status_code == 400


def test_a_dry_run_makes_no_key(api: AccessApi) -> None:
    # ACC-40
    answer = api.send("POST", "/-/keys?dryrun", {"name": "ci", "role": "writer"})
    assert answer.status_code == 200 and '"annals_' not in answer.text and '"name":"ci"' in answer.text
    assert api.send("GET", "/-/keys").json() == []


def test_a_key_is_a_password_too(api: AccessApi) -> None:
    # ACC-12: with its id as the user name
    created = api.create_key()

    def status(user: str) -> int:
        text = base64.b64encode(f"{user}:{created['key']}".encode()).decode()
        headers = {"authorization": f"Basic {text}"}
        return api.runner.run(api.client.get("/-/whoami", headers=headers)).status_code

    assert (status(created["id"]), status("ci"), status("")) == (200, 401, 401)


def test_a_typing_error_costs_no_look_up(api: AccessApi, monkeypatch: pytest.MonkeyPatch) -> None:
    # ACC-43
    key = api.create_key()["key"]
    assert parse_key(key) is not None and len(key) == len("annals_") + 12 + 1 + 43 + 6
    monkeypatch.setattr("annals.projections.access.stored_access.read_entries", None)
    for position in range(len("annals_"), len(key)):
        changed = key[:position] + ("a" if key[position] != "a" else "b") + key[position + 1 :]
        assert parse_key(changed) is None
    assert api.whoami(key[:-1] + ("0" if key[-1] != "0" else "1")) == 401


def test_who_may_make_keys(api: AccessApi) -> None:
    # ACC-49, ACC-64: an admin of a place, for the place and within it; an API key cannot create keys
    wanted: list[tuple[str, dict[str, Any], int]] = [
        ("team", {"groups": {"/schemagroups/pay-eu": "admin"}}, 201),
        ("team", {"groups": {"/schemagroups/PAY-*": "writer"}}, 201),
        ("team", {"groups": {"/schemagroups/p*": "reader"}}, 403),
        ("team", {"groups": {"/schemagroups/pay-eu": "reader", "/schemagroups/other": "reader"}}, 403),
        ("team", {"role": "reader"}, 403),
        ("writer", {"groups": {"/schemagroups/pay-eu": "reader"}}, 403),
        (api.create_key(name="root", role="admin")["key"], {"role": "reader"}, 403),
    ]
    for number, (by, roles, status) in enumerate(wanted):
        answer = api.send("POST", "/-/keys", {"name": f"k{number}", **roles}, by=by)
        assert answer.status_code == status, (by, roles, answer.text)
    assert {key["name"] for key in api.send("GET", "/-/keys", by="team").json()} == {"k0", "k1"}
    root = next(key["id"] for key in api.send("GET", "/-/keys").json() if key["name"] == "root")
    assert api.send("GET", f"/-/keys/{root}", by="team").status_code == 404
    for id in (root, "nothing"):
        assert api.send("DELETE", f"/-/keys/{id}", by="team").status_code == 403
        assert api.send("POST", f"/-/keys/{id}/actions/rotate", by="team").status_code == 403
    assert api.send("GET", "/-/keys", by="writer").status_code == 403
    assert api.send("GET", "/-/keys", by=None).status_code == 401


def test_names_of_keys_have_the_rights_of_grants(api: AccessApi) -> None:
    # ACC-64: an admin of a place gets no rights elsewhere by the name of a key, neither by rotation nor by a new key
    groups = {"/schemagroups/pay-eu": "reader"}
    created = api.create_key(role=None, groups=groups)
    grant = {"subject": "caller:key:ci", "role": "admin", "at": "/schemagroups/other"}
    id = api.send("POST", "/-/grants", grant).json()["id"]
    rotate = f"/-/keys/{created['id']}/actions/rotate"
    refused = api.send("POST", rotate, by="team")
    assert (refused.status_code, "may have rights" in refused.json()["detail"]) == (403, True)
    api.send("DELETE", f"/-/keys/{created['id']}")
    again = {"name": "ci", "groups": groups}
    assert api.send("POST", "/-/keys", again, by="team").status_code == 403
    expired = {**grant, "expires": "2026-01-02T03:05:00Z"}
    assert api.send("PUT", f"/-/grants/{id}", expired).status_code == 200
    assert api.send("POST", "/-/keys", again, by="team").status_code == 403
    api.now += timedelta(minutes=1)
    assert api.send("POST", "/-/grants", {**grant, "at": "/schemagroups/pay-uk"}).status_code == 201
    created = api.send("POST", "/-/keys", again, by="team").json()
    assert api.send("POST", f"/-/keys/{created['id']}/actions/rotate", by="team").status_code == 200


def test_names_of_keys_have_their_subscriptions(sqlite_url: str) -> None:
    # ACC-64, SUB-911: only an admin of the registry makes a key with the name of one that has left subscriptions
    with access_api(sqlite_url) as api:
        key = api.create_key()
        assert api.send("POST", "/subscriptions", BODY, by=key["key"]).status_code == 201
        api.send("DELETE", f"/-/keys/{key['id']}")
        groups = {"/schemagroups/pay-eu": "writer"}
        assert api.send("POST", "/-/keys", {"name": "ci", "groups": groups}, by="team").status_code == 403
        assert api.send("POST", "/-/keys", {"name": "ci", "groups": groups}).status_code == 201


@pytest.mark.parametrize(
    ("method", "path"),
    [("DELETE", "/-/keys/a%00b"), ("POST", "/-/keys/%00/actions/rotate"), ("DELETE", "/-/grants/%00")],
)
def test_an_id_with_a_nul_is_not_found(api: AccessApi, method: str, path: str) -> None:
    # ACC-43: no database has such an id, but PostgreSQL cannot be asked for it
    answer = api.send(method, path, {} if method == "POST" else None)
    assert answer.status_code == 404, answer.text


def test_servers_without_keys(sqlite_url: str) -> None:
    # ACC-40
    with access_api(sqlite_url, api_keys=False) as api:
        answer = api.send("GET", "/-/keys")
        assert (answer.status_code, answer.json()["type"].rpartition("#")[2]) == (400, "not_available")
        assert "ANNALS_API_KEYS" in answer.json()["detail"]
        assert api.whoami("annals_x") == 401
