"""Definitions that a client pushes from their home registry over a legacy API are read-only for other clients."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from annals.domain.compat.legacy_apis import MESSAGECATALOG, SCHEMAREGISTRY, LegacyApi
from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import Api, create, serving

TOKENS = json.dumps(
    {
        "admin": {"name": "ada", "role": "admin"},
        "pusher": {"name": "pia", "role": "writer"},
        "writer": {"name": "wes", "role": "writer"},
    }
)
#: The home registry of the definitions.
HOME = "https://home.example/registry"


def by(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def version_query(authority: str, id: str) -> str:
    """The query parameters that name the authority and the id of a Version."""
    return f"?authority={quote(authority, safe='')}&id={quote(id, safe='')}"


@pytest.fixture(params=[SCHEMAREGISTRY, MESSAGECATALOG], ids=lambda family: family.name)
def family(request: pytest.FixtureRequest) -> LegacyApi:
    found: LegacyApi = request.param
    return found


@pytest.fixture
def api(store_url: str, family: LegacyApi) -> Iterator[Api]:
    """A registry with a Group into which the client `pusher` has pushed the definition `copy`."""
    create(store_url, default_source())
    with serving(store_url, tokens=TOKENS) as served:
        served.done("PUT", _group(family), {"format": "own"}, **by("pusher"))
        served.done("POST", f"{_path(family, 'copy')}{version_query(HOME, f'{HOME}/1')}", b"1", **by("pusher"))
        yield served


def _group(family: LegacyApi) -> str:
    return f"{family.base}/{family.path}/g"


def _path(family: LegacyApi, id: str) -> str:
    return f"{_group(family)}/{family.children}/{id}"


def _writes(family: LegacyApi) -> list[tuple[str, str, Any]]:
    """Writes that would change the copy."""
    path, xid = _path(family, "copy"), f"/{family.groups}/g/{family.resources}/copy"
    return [
        ("POST", path, b"other"),
        ("POST", f"{path}{version_query(HOME, f'{HOME}/9')}", b"other"),
        ("DELETE", f"{path}/versions/1", None),
        ("DELETE", path, None),
        ("DELETE", _group(family), None),
        ("PATCH", f"{xid}/meta", {"labels": {"a": "b"}}),
        ("DELETE", xid, None),
        ("DELETE", f"/{family.groups}/g", None),
        ("PATCH", f"/{family.groups}/g", {family.resources: {"copy": {"meta": {"labels": {"a": "b"}}}}}),
    ]


def test_others_do_not_write_a_copy(api: Api, family: LegacyApi) -> None:
    """LEG-909: a write by another client is 409 in the legacy APIs, and the error `readonly` in the xRegistry API."""
    before = api.done("GET", "/-/log/head", **by("admin")).json()
    for method, path, body in _writes(family):
        answer = api.send(method, path, body, **by("writer"))
        assert (method, path, answer.status_code) == (method, path, 409 if path.startswith("/compat") else 400)
        problem = answer.json()
        assert problem["authority"] == HOME
        assert problem["type"].endswith("conflict" if path.startswith("/compat") else "#readonly")
    assert api.done("GET", "/-/log/head", **by("admin")).json() == before


def test_known_versions_and_other_definitions_may_be_sent(api: Api, family: LegacyApi) -> None:
    """LEG-906: sending a known Version again changes nothing; other clients can write other definitions there."""
    before = api.done("GET", "/-/log/head", **by("admin")).json()
    answer = api.send("POST", f"{_path(family, 'copy')}{version_query(HOME, f'{HOME}/1')}", b"1", **by("writer"))
    assert answer.status_code == 200
    assert api.done("GET", "/-/log/head", **by("admin")).json() == before
    for id in ("own", "of-another"):
        query = "" if id == "own" else version_query("urn:example", "one")
        assert api.send("POST", _path(family, id) + query, b"x", **by("writer")).status_code == 200
        assert api.send("POST", _path(family, id), b"y", **by("pusher")).status_code == 200
    assert api.send("PUT", _group(family), {"format": "own", "description": "d"}, **by("writer")).status_code == 200


def test_the_importer_can_update_its_copy(api: Api, family: LegacyApi) -> None:
    """LEG-909: the client that pushed the first Version can add and delete Versions, over any API."""
    path = _path(family, "copy")
    assert api.send("POST", f"{path}{version_query(HOME, f'{HOME}/2')}", b"2", **by("pusher")).status_code == 200
    xid = f"/{family.groups}/g/{family.resources}/copy"
    assert api.send("PATCH", f"{xid}/meta", {"labels": {"a": "b"}}, **by("pusher")).status_code == 200
    assert api.send("POST", path, b"3", **by("writer")).status_code == 409
    assert api.send("DELETE", f"{path}/versions/1", **by("pusher")).status_code in (200, 204)
    assert api.send("DELETE", path, **by("pusher")).status_code in (200, 204)
    assert api.send("POST", path, b"mine", **by("writer")).status_code == 200


def test_an_administrator_makes_a_copy_the_registrys_own(api: Api, family: LegacyApi) -> None:
    """LEG-909: after an administrator changes a copy, it is an ordinary definition that every writer may change."""
    path = _path(family, "copy")
    assert (
        api.send("POST", f"{path}{version_query(HOME, f'{HOME}/1')}", b"1", **by("admin")).status_code == 200
    )  # a known Version is no change
    assert api.send("POST", path, b"other", **by("writer")).status_code == 409
    xid = f"/{family.groups}/g/{family.resources}/copy"
    assert api.send("PATCH", f"{xid}/meta", {"labels": {"owner": "us"}}, **by("admin")).status_code == 200
    for token in ("writer", "pusher"):
        assert api.send("POST", path, token.encode(), **by(token)).status_code == 200
