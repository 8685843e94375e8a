"""The region "References" and the graphs of endpoints (UI-51, UI-77, UI-79)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from annals.api.ui import graph
from annals.api.ui.graph import MAX_NODES
from annals.domain.model.builtin import default_source
from tests.api.ui.pages import TOKENS, show
from tests.support.registries.in_process import Api, create, serving

GROUP, SCHEMA, ENDPOINT = "/messagegroups/g", "/schemagroups/s/schemas/t", "/endpoints/e"
BASE, READING = f"{GROUP}/messages/base", f"{GROUP}/messages/reading"
HOSTILE = "https://x.example/<script>"


@pytest.fixture(scope="module")
def api(shared_store_url: str) -> Iterator[Api]:
    create(shared_store_url, default_source())
    root = {"authorization": "Bearer root"}
    with serving(shared_store_url, tokens=json.dumps(TOKENS)) as api:
        api.done("PUT", f"{SCHEMA}$details", {"format": "Own/1"}, **root)
        api.done("PUT", BASE, {"dataschemauri": f"{SCHEMA}#Name", "dataschemaformat": "Own/1"}, **root)
        api.done("PUT", READING, {"basemessageuri": BASE}, **root)
        api.done("PUT", f"{GROUP}/messages/other", {"dataschemauri": "https://x.example/s"}, **root)
        groups = [GROUP, "/messagegroups/none", "https://x.example/g"]
        api.done("PUT", ENDPOINT, {"usage": ["producer"], "messagegroups": groups}, **root)
        yield api


def test_references_of_an_entity(api: Api) -> None:
    page = show(api, f"explore{ENDPOINT}")
    items = [item.text for item in page.region("Refers to").all("li")]
    assert items == [
        f"{GROUP} messagegroups[0]",
        "/messagegroups/none messagegroups[1] Dangling",
        "https://x.example/g messagegroups[2] External",
    ]
    assert page.links[GROUP].endswith(f"/ui/explore{GROUP}")
    assert "/messagegroups/none" not in page.links
    assert "Nothing." in page.region("References").text
    page = show(api, f"explore{SCHEMA}")
    assert [item.text for item in page.region("Referred to by").all("li")] == [f"{BASE} dataschemauri"]


def test_links_keep_the_moment(api: Api) -> None:
    """UI-37."""
    head = api.done("GET", "/-/log/head", authorization="Bearer root").json()["position"]
    assert show(api, f"explore{SCHEMA}?asof={head}").links[BASE].endswith(f"/ui/explore{BASE}?asof={head}")


def test_the_graph_of_an_endpoint(api: Api) -> None:
    page = show(api, f"graph{ENDPOINT}")
    assert page.heading == "Graph of e"
    other = f"{GROUP}/messages/other"
    rows = [[ENDPOINT, BASE, SCHEMA], [ENDPOINT, other, "https://x.example/s External"], [ENDPOINT, READING, SCHEMA]]
    assert page.table("Graph") == rows
    (picture,) = page.main.all("svg")
    assert [each.attributes["aria-label"] for each in picture.all("g") if "role" in each.attributes] == ["Graph"]
    nodes = [each.attributes["aria-label"] for each in picture.all("a")]
    assert nodes == [ENDPOINT, BASE, other, READING, SCHEMA]
    assert len(list(picture.all("line"))) == 6
    assert "/messagegroups/none" in page.main.text


@pytest.mark.parametrize("path", [GROUP, "/endpoints", "/endpoints/none", BASE])
def test_only_endpoints_have_graphs(api: Api, path: str) -> None:
    assert show(api, f"graph{path}", status=404).heading == "Not found"


def test_a_deletion_says_what_will_dangle(api: Api) -> None:
    """UI-85."""
    page = show(api, f"delete{GROUP}")
    assert "References that will dangle: /endpoints/e" in page.main.text
    assert page.links[ENDPOINT].endswith(f"/ui/explore{ENDPOINT}")
    assert BASE not in page.main.text.partition("References that will dangle")[2]


def test_a_large_graph_is_a_table(sqlite_url: str) -> None:
    """UI-79."""
    create(sqlite_url, default_source())
    with serving(sqlite_url) as api:
        messages = {f"m{number:03}": {"name": "n"} for number in range(MAX_NODES)}
        api.done("POST", f"{GROUP}/messages", messages)
        api.done("PUT", ENDPOINT, {"usage": ["producer"], "messagegroups": [GROUP]})
        page = show(api, f"graph{ENDPOINT}")
        assert list(page.main.all("svg")) == []
        assert len(page.table("Graph")) == MAX_NODES
        api.done("DELETE", f"{GROUP}/messages/m000")
        assert len(list(show(api, f"graph{ENDPOINT}").main.all("svg"))) == 1


@pytest.mark.parametrize("max_references", [1000, 1], ids=["of-groups", "of-messages"])
def test_a_graph_has_pages(api: Api, max_references: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-18, UI-79: the schemas of each message are shown on each page, also where a Group has many references."""
    whole = show(api, f"graph{ENDPOINT}").table("Graph")
    monkeypatch.setattr(graph, "_MAX_REFERENCES", max_references)
    page, rows = show(api, f"graph{ENDPOINT}?limit=1"), []
    for _ in range(2):
        rows += page.table("Graph")
        assert list(page.main.all("svg")) == []
        page = show(api, page.links["Next"].partition("/ui/")[2])
    assert [*rows, *page.table("Graph")] == whole
    assert not page.links.get("Next")
