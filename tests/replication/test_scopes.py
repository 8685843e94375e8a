"""Scopes of links that follow a log, as they are changed while the links run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.replication.registries import Registry, registries, until

_CRATES: dict[str, Any] = {"crates": {"singular": "crate", "resources": {"jars": {"singular": "jar"}}}}


def scope(*groups: str) -> dict[str, Any]:
    return {"groups": [group if group.startswith("/") else f"/schemagroups/{group}" for group in groups]}


def same(a: Registry, b: Registry, *groups: str) -> bool:
    """Whether some Groups are the same at two registries."""
    asked = [[each.request("GET", f"/-/hash{group}").json() for group in scope(*groups)["groups"]] for each in (a, b)]
    hashes = [[each.get("hash") for each in found] for found in asked]
    return hashes[0] == hashes[1] and all(each.get("count") for each in asked[0])


@pytest.fixture(params=["sqlite", "postgresql"])
def databases(request: pytest.FixtureRequest) -> dict[str, str]:
    """URLs of databases by the name of the registry that has them."""
    return {"b": request.getfixturevalue("postgres_url")} if request.param == "postgresql" else {}


def test_what_a_wider_scope_has_comes_without_a_repair(tmp_path: Path, databases: dict[str, str]) -> None:
    """LEG-901, LEG-913: what newly belongs to a scope is as it is there, also what happened before."""
    with registries(tmp_path, "a", "b", **databases) as (a, b):
        a.done("PUT", "/schemagroups/one", {"schemas": {"s": {"format": "Text/1", "schema": "x"}}})
        a.write("two/s/1", schema="of long ago")
        a.write("three/s/1")
        b.write("mine/s/1")
        b.link("a", a.url, scope=scope("one"))
        until(lambda: same(a, b, "one"))
        a.write("two/s/2")
        a.done("POST", "/", {"schemagroups": {"one": {"name": "both"}, "two": {"name": "both"}}})
        until(lambda: same(a, b, "one"))
        b.link("a", a.url, scope=scope("one", "two"))
        until(lambda: same(a, b, "one", "two"))
        a.write("two/s/3")
        until(lambda: same(a, b, "one", "two"))
        assert b.request("GET", "/schemagroups/three").status_code == 404
        assert b.done("POST", "/-/links/a/actions/check")["status"]["verdict"] == "equal"
        assert b.status("a")["state"] == "active"

        b.link("a", a.url, scope=scope("two"))
        a.write("one/s/4")
        a.write("two/s/4")
        until(lambda: same(a, b, "two"))
        b.link("a", a.url, scope=scope("one", "two"))  # what was left out meanwhile is brought up to date
        until(lambda: same(a, b, "one", "two"))
        assert "no findings" in b.verified()
        assert b.done("GET", "/")["schemagroupscount"] == 3


def test_a_group_of_ones_own_is_in_the_way_of_a_wider_scope(tmp_path: Path) -> None:
    """LEG-907, LEG-909: what was written here is never written over by itself."""
    with registries(tmp_path, "a", "b") as (a, b):
        a.write("one/s/1")
        a.write("two/s/1")
        b.write("two/s/1", name="own")
        b.link("a", a.url, scope=scope("one"))
        until(lambda: same(a, b, "one"))
        before = b.done("GET", "/-/hash/schemagroups/two")["hash"]
        b.link("a", a.url, scope=scope("one", "two"))
        until(lambda: "/schemagroups/two of the wider scope is here already" in b.status("a").get("error", ""))
        assert b.status("a")["state"] == "diverged"
        assert b.done("GET", "/-/hash/schemagroups/two")["hash"] == before
        b.link("a", a.url, scope=scope("one"))
        until(lambda: b.status("a")["state"] == "active")
        b.done("DELETE", "/schemagroups/two")
        b.link("a", a.url, scope=scope("one", "two"))
        until(lambda: same(a, b, "one", "two"))


def test_a_wider_scope_brings_its_types(tmp_path: Path) -> None:
    """LEG-901: Groups of a type that was not here come with their type."""
    with registries(tmp_path, "a", "b") as (a, b):
        model = a.done("GET", "/modelsource")
        a.done("PUT", "/modelsource", {**model, "groups": {**model.get("groups", {}), **_CRATES}})
        a.write("one/s/1")
        a.done("PUT", "/crates/x", {"name": "a crate"})
        b.link("a", a.url, scope=scope("one"))
        until(lambda: same(a, b, "one"))
        b.link("a", a.url, scope=scope("one", "/crates/x"))
        until(lambda: same(a, b, "one", "/crates/x"))
        assert b.done("GET", "/crates/x")["name"] == "a crate"
        assert "no findings" in b.verified()
