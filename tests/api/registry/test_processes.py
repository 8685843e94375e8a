"""Several processes of the registry over one store."""

from __future__ import annotations

from tests.support.registries.in_process import MODEL, create, serving


def test_definitions_follow_the_store(store_url: str) -> None:
    # a model or capability that another process changes applies here from the next request on (CAP-12), also to reads
    create(store_url)
    with serving(store_url) as here, serving(store_url, ids="other") as there:
        assert here.send("GET", "/boxes/b").status_code == 404
        there.done("PUT", "/modelsource", {"groups": {**MODEL["groups"], "boxes": {"singular": "box"}}})
        there.done("PUT", "/boxes/b", {})
        assert here.get("/boxes/b")["boxid"] == "b"
        assert here.get("/")["boxescount"] == 1
        there.done("PATCH", "/capabilities", {"flags": []})
        assert here.get("/boxes/b?doc")["self"] == "http://h/r/boxes/b"
        here.done("PUT", "/boxes/c?inline=nope", {})


def test_only_one_process_creates_the_registry(store_url: str) -> None:
    # the first start makes the registry, a later one finds it
    with serving(store_url) as here, serving(store_url, ids="other") as there:
        assert here.get("/") == there.get("/")
        assert here.get("/")["epoch"] == 1
        assert set(here.get("/model")["groups"]) == {"endpoints", "messagegroups", "schemagroups"}
