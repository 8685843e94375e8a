"""`/-/` lists all paths and surfaces that a server has, and no others."""

from __future__ import annotations

import re
from typing import Any

import pytest

from annals.api.server.dispatch import Dispatcher
from annals.api.server.mounts import OWN_NAMES
from annals.domain.compat.legacy_apis import LEGACY_APIS
from tests.api.openapi.test_openapi import Page
from tests.support.registries.in_process import BASE, Api

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.fixture
def listed(api: Api) -> Any:
    return api.get("/-/")


def test_every_mount_is_listed(api: Api, listed: Any) -> None:
    dispatcher = api.app.router.default
    assert isinstance(dispatcher, Dispatcher)
    assert dispatcher._own_mounts.keys() == OWN_NAMES  # the labels of metrics
    names = {entry["path"].split("/")[2] for entry in listed["paths"]}
    assert names == dispatcher._own_mounts.keys()
    surfaces = {entry["path"] for entry in listed["surfaces"]}
    assert {"/" + "/".join(path) for path in dispatcher._fixed_mounts} <= surfaces
    for mount in dispatcher._tree_mounts:
        assert any(f"{path}/".startswith(f"/{mount}/") for path in surfaces), mount
    assert "/compat/confluent/subjects" in surfaces
    assert surfaces >= {f"{family.base}/{family.path}" for family in LEGACY_APIS}


def test_every_entry_is_there(api: Api, listed: Any) -> None:
    described = api.get("/-/openapi.json")["paths"]
    ids = {"name": "schemaregistry", "path": "dirs", "action": "pause"}
    for entry in (*listed["paths"], *listed["surfaces"]):
        assert entry["url"] == BASE + entry["path"]
        assert entry["description"] and entry["methods"]
        if entry["path"] in described:
            assert {method.lower() for method in entry["methods"]} <= described[entry["path"]].keys()
            real_path = re.sub(r"{(\w+)}", lambda found: ids.get(found[1], "0"), entry["path"])
            answer = api.send("OPTIONS", real_path)
            if "allow" in answer.headers:
                assert set(entry["methods"]) <= {*answer.headers["allow"].split(", ")}, entry


def test_it_follows_the_model_and_the_capabilities(api: Api, listed: Any) -> None:
    assert {"/dirs", "/export"} <= {entry["path"] for entry in listed["surfaces"]}
    available = {name: {"mutable": True} for name in ("capabilities", "entities", "modelsource")}
    api.done("PATCH", "/capabilities", {"available": {**available, "model": {"mutable": False}}})
    api.done("PUT", "/modelsource", {"groups": {"boxes": {"singular": "box"}}})
    now = {entry["path"] for entry in api.get("/-/")["surfaces"]}
    assert "/boxes" in now
    assert not {"/dirs", "/export"} & now


def test_a_browser_gets_a_page(api: Api, listed: Any) -> None:
    answer = api.send("GET", "/-/", accept=BROWSER)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "accept" in answer.headers.get_list("vary")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
    page = Page(answer.text)
    assert not page.tags & {"script", "link", "img", "iframe", "object", "form", "base"}
    for entry in (*listed["paths"], *listed["surfaces"]):
        linked = f'<a href="{entry["url"]}">{entry["path"]}</a>' in answer.text
        assert linked == ("{" not in entry["path"] and "GET" in entry["methods"]), entry
        assert entry["path"] in answer.text


@pytest.mark.parametrize(("accept", "status"), [("application/json", 200), ("*/*", 200), ("image/png", 406)])
def test_others_get_json(api: Api, accept: str, status: int) -> None:
    answer = api.send("GET", "/-/", accept=accept)
    assert (answer.status_code, "json" in answer.headers["content-type"]) == (status, True)


def test_its_address(api: Api) -> None:
    assert api.get("/-") == api.get("/-/")
    assert api.send("OPTIONS", "/-/").headers["allow"] == "GET, HEAD, OPTIONS"
    assert api.send("DELETE", "/-/").status_code == 405
