"""Changes of a link's scope while the link runs."""

from __future__ import annotations

import json
import time
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from annals.projections.replication.link_state import LinkStates
from tests.support.polling import until
from tests.support.registries.restarted import TOKEN, Registry, registries

_CRATES: dict[str, Any] = {"crates": {"singular": "crate", "resources": {"jars": {"singular": "jar"}}}}


def scope(*groups: str) -> dict[str, Any]:
    return {"groups": [group if group.startswith("/") else f"/schemagroups/{group}" for group in groups]}


def same(a: Registry, b: Registry, *groups: str) -> bool:
    """Whether these Groups exist and have the same hashes at two registries."""
    bodies = [[each.request("GET", f"/-/hash{group}").json() for group in scope(*groups)["groups"]] for each in (a, b)]
    hashes = [[each.get("hash") for each in found] for found in bodies]
    return hashes[0] == hashes[1] and all(each.get("count") for each in bodies[0])


@pytest.fixture(params=["sqlite", "postgresql"])
def databases(request: pytest.FixtureRequest) -> dict[str, Any]:
    """URLs of databases by the name of the registry that has them."""
    return {"b": request.getfixturevalue("postgres_url")} if request.param == "postgresql" else {}


@pytest.mark.parametrize("mode", ["pull", "events"])
def test_what_a_wider_scope_has_comes_without_a_repair(tmp_path: Path, databases: dict[str, Any], mode: str) -> None:
    """LEG-901, LEG-913: Groups that a wider scope adds become equal to the source's, older changes included."""
    with registries(tmp_path, "a", "b", **databases) as (a, b):
        a.done("PUT", "/schemagroups/one", {"schemas": {"s": {"format": "Text/1", "schema": "x"}}})
        a.write("two/s/1", schema="of long ago")
        a.write("three/s/1")
        b.write("mine/s/1")
        b.link("a", a.url, mode=mode, scope=scope("one"))
        until(lambda: same(a, b, "one"))
        a.write("two/s/2")
        a.done("POST", "/", {"schemagroups": {"one": {"name": "both"}, "two": {"name": "both"}}})
        until(lambda: same(a, b, "one"))
        b.link("a", a.url, mode=mode, scope=scope("one", "two"))
        until(lambda: same(a, b, "one", "two"))
        a.write("two/s/3")
        until(lambda: same(a, b, "one", "two"))
        assert b.request("GET", "/schemagroups/three").status_code == 404
        assert b.done("POST", "/-/links/a/actions/check")["status"]["verdict"] == "equal"
        assert b.status("a")["state"] == "active"

        b.link("a", a.url, mode=mode, scope=scope("two"))
        a.write("one/s/4")
        a.write("two/s/4")
        until(lambda: same(a, b, "two"))
        b.link("a", a.url, mode=mode, scope=scope("one", "two"))  # changes while "one" was excluded arrive too
        until(lambda: same(a, b, "one", "two"))
        assert "no findings" in b.verified()
        assert b.done("GET", "/")["schemagroupscount"] == 3


def test_a_wider_scope_of_a_registry_with_a_large_model(tmp_path: Path) -> None:
    """LEG-901: a model may be larger than other answers about a log."""
    attributes = {f"a{number}": {"type": "string", "description": "x" * 100_000} for number in range(50)}
    groups = {**_CRATES, "bigs": {"singular": "big", "attributes": attributes}}
    with registries(tmp_path, "a", "b") as (a, b):
        a.done("PUT", "/modelsource", {"groups": groups})
        a.done("PUT", "/bigs/x", {})
        a.done("PUT", "/crates/c", {})
        b.link("a", a.url, scope={"groups": ["/crates/c"]})
        until(lambda: same(a, b, "/crates/c"))
        b.link("a", a.url, scope={"groups": ["/crates/c", "/bigs/x"]})
        until(lambda: same(a, b, "/crates/c", "/bigs/x"))


def test_a_local_group_blocks_a_wider_scope(tmp_path: Path) -> None:
    """LEG-907, LEG-909: a wider scope never overwrites a local Group; the link diverges as long as there is one."""
    with registries(tmp_path, "a", "b") as (a, b):
        a.write("one/s/1")
        a.write("two/s/1")
        b.write("two/s/1", name="own")
        b.link("a", a.url, scope=scope("one"))
        until(lambda: same(a, b, "one"))
        before = b.done("GET", "/-/hash/schemagroups/two")["hash"]
        b.link("a", a.url, scope=scope("one", "two"))
        until(lambda: "/schemagroups/two of the wider scope exists here already" in b.status("a").get("error", ""))
        assert b.status("a")["state"] == "diverged"
        assert b.done("GET", "/-/hash/schemagroups/two")["hash"] == before
        b.link("a", a.url, scope=scope("one"))
        until(lambda: b.status("a")["state"] == "active")
        b.done("DELETE", "/schemagroups/two")
        b.link("a", a.url, scope=scope("one", "two"))
        until(lambda: same(a, b, "one", "two"))


def test_a_wider_scope_brings_its_types(tmp_path: Path) -> None:
    """LEG-901: Groups of a type that the local model lacks arrive together with their type."""
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


def test_a_type_stays_as_it_is_where_a_group_is_in_the_way(tmp_path: Path) -> None:
    """LEG-907: a wider scope that a local Group blocks changes nothing, the model included."""
    with registries(tmp_path, "a", "b") as (a, b):
        for registry, extra in ((a, {"colour": {"type": "string"}}), (b, {})):
            crates = {"crates": {**_CRATES["crates"], "attributes": extra}}
            model = registry.done("GET", "/modelsource")
            registry.done("PUT", "/modelsource", {**model, "groups": {**model.get("groups", {}), **crates}})
        a.write("one/s/1")
        a.done("PUT", "/crates/x", {"name": "there"})
        b.done("PUT", "/crates/x", {"name": "here"})
        b.link("a", a.url, scope=scope("one"))
        until(lambda: same(a, b, "one"))
        before = b.done("GET", "/modelsource")
        b.link("a", a.url, scope=scope("one", "/crates/x"))
        until(lambda: b.status("a")["state"] == "diverged")
        assert b.done("GET", "/modelsource") == before


def test_a_wider_filter_brings_what_it_lets_pass(tmp_path: Path) -> None:
    """LEG-901: Groups that a filter excluded arrive with their types, whatever the case of their ids."""
    with registries(tmp_path, "a", "b") as (a, b):
        model = a.done("GET", "/modelsource")
        a.done("PUT", "/modelsource", {**model, "groups": {**model.get("groups", {}), **_CRATES}})
        a.write("one/s/1")
        a.write("Onefold/s/1")
        a.write("two/s/1")
        a.done("PUT", "/crates/one", {"name": "a crate"})
        b.link("a", a.url, scope={"filters": [{"exact": {"subject": "/schemagroups/one"}}]})
        until(lambda: same(a, b, "one"))
        filters = [{"any": [{"prefix": {"subject": "/schemagroups/one"}}, {"prefix": {"subject": "/crates/"}}]}]
        b.link("a", a.url, scope={"filters": filters})
        until(lambda: same(a, b, "one", "onefold", "/crates/one"))
        assert b.request("GET", "/schemagroups/two").status_code == 404
        assert "no findings" in b.verified()


def test_a_group_that_is_not_there_yet_comes_when_it_is(tmp_path: Path) -> None:
    """LEG-901: a scope may name a Group that does not exist yet."""
    with registries(tmp_path, "a", "b") as (a, b):
        a.write("one/s/1")
        b.link("a", a.url, scope=scope("one"))
        until(lambda: same(a, b, "one"))
        b.link("a", a.url, scope=scope("one", "two"))
        a.write("one/s/2")
        until(lambda: same(a, b, "one"))
        a.write("two/s/1")
        until(lambda: same(a, b, "one", "two"))
        assert b.status("a")["state"] == "active"


@pytest.mark.long
def test_a_process_that_is_killed_while_a_scope_becomes_wider(tmp_path: Path, databases: dict[str, Any]) -> None:
    """LEG-912, LEG-913: wherever the process is killed, the next one fetches the rest, each Group once."""
    with registries(tmp_path, "a", "b", **databases) as (a, b):
        a.write("one/s/1")
        a.fill(4, 20)
        wider = scope("one", *(f"group{number}" for number in range(4)))
        b.link("a", a.url, scope=scope("one"))
        until(lambda: same(a, b, "one"))
        b.link("a", a.url, scope=wider)
        for seconds in (0.05, 0.4, 0.8, 1.2):
            time.sleep(seconds)
            b.kill()
            b.start()
        a.write("group2/s3/1", name="later")
        a.write("one/s/2")
        groups = [group.rpartition("/")[2] for group in wider["groups"]]
        until(lambda: same(a, b, *groups))
        assert len([each for each in commands(b) if each.startswith("Repair ")]) == 1
        assert "no findings" in b.verified()


@pytest.mark.long
def test_what_was_recorded_and_not_noted_is_not_lost(tmp_path: Path, databases: dict[str, Any]) -> None:
    """LEG-912, LEG-913: a killed process may have recorded more interactions than its stored cursor says."""
    with registries(tmp_path, "a", "b", **databases) as (a, b):
        a.done("POST", "/", {"schemagroups": {"one": {"name": "both"}, "two": {"name": "both"}}})
        b.link("a", a.url, scope=scope("one"))
        until(lambda: same(a, b, "one"))
        cursor = a.head()["position"]
        a.done("POST", "/", {"schemagroups": {"one": {"name": "later"}, "two": {"name": "later"}}})
        until(lambda: same(a, b, "one"))
        b.kill()
        with closing(LinkStates(b.database)) as states:
            states.update("a", cursor)
        b.start()
        b.link("a", a.url, scope=scope("one", "two"))
        until(lambda: same(a, b, "one", "two"))
        assert b.status("a")["state"] == "active"


def test_a_registry_that_receives_fetches_what_a_wider_scope_has(tmp_path: Path, databases: dict[str, Any]) -> None:
    """LEG-901: a receiver fetches what a wider scope adds, then accepts pushes again; it reports a failed fetch."""
    with registries(tmp_path, "a", "b", **databases) as (a, b):
        b.link("in", a.url, mode="receive", scope=scope("one"))
        a.link("out", b.url, mode="push", remote="in")
        a.write("two/s/1")
        a.write("one/s/1")
        until(lambda: same(a, b, "one"))
        b.link("in", a.url, mode="receive", scope=scope("one", "two"))
        a.write("two/s/2")
        until(lambda: same(a, b, "one", "two"))
        assert b.status("in")["state"] == "active"

        a.write("three/s/1")
        until(lambda: b.status("in")["position"] == a.head()["position"])
        b.link("in", a.url, mode="receive", scope=scope("one", "two", "three"), credential={"token": "of nobody"})
        a.write("three/s/2")
        until(lambda: "the Groups of its scope cannot be compared or fetched" in b.status("in").get("error", ""))
        assert b.request("GET", "/schemagroups/three").status_code == 404
        b.link("in", a.url, mode="receive", scope=scope("one", "two", "three"))
        a.write("three/s/3")
        until(lambda: same(a, b, "one", "two", "three"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("dialect", "mode"),
    [
        ("xregistry", "pull"),
        ("xregistry", "push"),
        ("schemaregistry", "pull"),
        ("schemaregistry", "events"),
        ("schemaregistry", "push"),
    ],
)
def test_a_wider_scope_over_the_other_apis(tmp_path: Path, dialect: str, mode: str) -> None:
    """LEG-901, LEG-913: after a scope is widened, what it excluded arrives, and what was deleted in between is gone."""
    with registries(tmp_path, "a", "b") as (a, b):
        path = "/compat/schemaregistry/v0.2" if dialect == "schemaregistry" else ""
        linking, url = (a, b.url) if mode == "push" else (b, a.url)

        def link(*groups: str) -> None:
            linking.link("it", url + path, dialect=dialect, mode=mode, interval=0.2, scope=scope(*groups))

        def has(*versions: str) -> bool:
            found = ("/schemagroups/{}/schemas/{}".format(*version.split("/")) for version in versions)
            return all(b.request("GET", f"{each}$details").is_success for each in found)

        def leaves_out(number: int) -> bool:
            """Whether the link's worker applies its narrower scope already."""
            a.write(f"two/n{number}/1", schema="x")
            a.write(f"one/n{number}/1", schema="x")
            until(lambda: has(f"one/n{number}"))
            time.sleep(0.3)
            return not has(f"two/n{number}")

        numbers = count()
        for version in ("one/s/1", "two/s/1", "two/t/1"):
            a.write(version, schema="x", format="Text/1")
        link("one", "two")
        until(lambda: has("one/s", "two/s", "two/t"))
        link("one")
        until(lambda: leaves_out(next(numbers)))
        a.write("two/u/1", schema="x")
        a.done("DELETE", "/schemagroups/two/schemas/s")
        a.write("one/v/1", schema="x")
        until(lambda: has("one/v"))
        if mode == "push":
            until(lambda: a.status("it")["position"] == a.head()["position"])
        link("one", "two")
        until(lambda: has("two/u", "two/t") and not has("two/s"))


def test_the_scope_of_a_link_to_a_topic_becomes_no_wider(tmp_path: Path) -> None:
    """LEG-901: interactions of a topic cannot be recorded a second time, so a wider scope is refused."""
    topic = {"dialect": "kafka", "enabled": False}
    with registries(tmp_path, "b") as (b,):
        url = "kafka://127.0.0.1:9/annals.log"
        b.link("a", url, scope=scope("one", "two"), **topic)
        b.link("a", url, scope=scope("One"), **topic)
        before = b.done("GET", "/-/links/a")
        for wider in (scope("one", "two"), {}, {"filters": [{"prefix": {"subject": "/schemagroups/one"}}]}):
            document = {"url": url, "credential": {"token": TOKEN}, "scope": wider, **topic}
            refused = b.request("PUT", "/-/links/a", document)
            assert (refused.status_code, refused.json()["pointer"]) == (400, "/scope")
            assert "cannot become wider" in refused.json()["title"]
        assert b.done("GET", "/-/links/a") == before


def commands(registry: Registry) -> list[str]:
    """The commands of all interactions in a registry's log."""
    answer = registry.request("GET", "/-/log", headers={"accept": "application/x-ndjson"})
    return [found["command"] for found in map(json.loads, answer.text.splitlines()) if "command" in found]
