"""Copies name their authority and are read-only; links that console commands change are used by a running server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from annals.domain.decisions.commands import WriteMethod, WriteTree
from tests.support.polling import until
from tests.support.registries.restarted import MASTER_KEY, TOKEN, Registry, registries, wait_until_equal_logs
from tests.support.registries.stray_writes import write_as_link
from tests.support.serving import annals

CANONICAL = "canonical"


def canonical(registry: Registry, path: str) -> str | None:
    """The authority of an entity, from the link header with `rel=canonical`."""
    answer = registry.request("GET", path)
    assert answer.status_code == 200, answer.text
    found = [link for link in answer.headers.get_list("link") if link.endswith(f";rel={CANONICAL}")]
    assert len(found) < 2
    return found[0].partition(">")[0].removeprefix("<") if found else None


def test_copied_registries_name_their_primary(tmp_path: Path) -> None:
    # LEG-909: reads and refused writes of a copy name its authority; after the promotion the copy is writable
    with registries(tmp_path, "primary", "replica") as (primary, replica):
        primary.fill(2, 1)
        replica.write("own/s/1")
        assert canonical(replica, "/schemagroups/own") is None
        replica.link("part", primary.url, scope={"groups": ["/schemagroups/group1"]})
        until(lambda: replica.request("GET", "/schemagroups/group1").status_code == 200)
        schema = "/schemagroups/group1/schemas/s0"
        for path in ("/schemagroups/group1", "/schemagroups/group1/schemas", schema, f"{schema}$details"):
            assert canonical(replica, path) == f"{primary.url}{path}"
            assert canonical(primary, path) is None
        for path in ("/", "/schemagroups", "/schemagroups/own", "/model"):
            assert canonical(replica, path) is None
        refused = replica.request("DELETE", schema)
        assert (refused.status_code, refused.json()["authority"]) == (400, f"{primary.url}{schema}")
        assert refused.json()["type"].endswith("#readonly")
        # CSR-711: Confluent's API shows what is a copy as read-only
        modes = {":.group1:s0": "READONLY", ":.group1:new": "READONLY", ":.group1:": "READONLY", ":.own:": "READWRITE"}
        for scope, mode in modes.items():
            assert replica.request("GET", f"/compat/confluent/mode/{scope}?defaultToGlobal=true").json() == {
                "mode": mode
            }
        compat = "/compat/schemaregistry/v0.2/schemagroups/group1/schemas/s0"
        refused = replica.request("DELETE", compat)
        assert (refused.status_code, refused.json()["type"]) == (409, f"{replica.url}/-/docs#conflict")
        assert refused.json()["authority"] == f"{primary.url}{schema}"
        replica.done("POST", "/-/links/part/actions/promote")
        assert replica.request("GET", "/compat/confluent/mode/:.group1:").json() == {"mode": "READWRITE"}
        assert canonical(replica, schema) is None
        assert replica.request("DELETE", schema).status_code == 204


def test_copied_entities_name_their_source(tmp_path: Path) -> None:
    # LEG-909: entities copied over the standard API belong to their link; entities that other clients add do not
    other = "https://other.example"
    with registries(tmp_path, "here") as (here,):
        here.link("other", other, dialect="xregistry")
        version = {"format": "Text/1"}
        group = WriteTree("/schemagroups/g", {"extension": 1}, WriteMethod.PUT)
        write_as_link(here, "other", [group])
        write_as_link(here, "other", [WriteTree("/schemagroups/g/schemas/s/versions/1", version, WriteMethod.PUT)])
        until(lambda: canonical(here, "/schemagroups/g") == other)
        here.write("g/own/1")
        for path in ("/schemagroups/g/schemas/s$details", "/schemagroups/g/schemas/s/versions"):
            assert canonical(here, path) == other
        assert canonical(here, "/schemagroups/g/schemas/own$details") is None
        # CSR-711: others can be registered beside the copies
        modes = {":.g:s": "READONLY", ":.g:own": "READWRITE", ":.g:new": "READWRITE", ":.g:": "READWRITE"}
        for scope, mode in modes.items():
            assert here.request("GET", f"/compat/confluent/mode/{scope}?defaultToGlobal=true").json() == {"mode": mode}
        refused = here.request("PATCH", "/schemagroups/g", {"extension": True})  # which Python takes for 1
        assert (refused.status_code, refused.json()["authority"]) == (400, other)
        refused = here.request("PATCH", "/schemagroups/g/schemas/s$details", {"name": "x"})
        assert (refused.status_code, refused.json()["authority"]) == (400, other)
        compat = "/compat/schemaregistry/v0.2/schemagroups/g/schemas/s"
        refused = here.request("DELETE", compat)
        assert (refused.status_code, refused.json()["authority"]) == (409, other)


def test_console_commands_reach_a_running_server(tmp_path: Path) -> None:
    # LEG-901: a running server notices that a console command creates, pauses, resumes or removes a link
    with registries(tmp_path, "primary", "replica") as (primary, replica):
        primary.write("g/s/1")

        def console(*arguments: str) -> str:
            settings = {"ANNALS_MASTER_KEY": MASTER_KEY, "ANNALS_LINK_SECRET": TOKEN}
            flags = ("--database", replica.database)
            ended = annals("replicate", *arguments, *flags, cwd=replica.home, **settings)
            assert ended.returncode == 0, ended.stderr
            return ended.stdout

        console("add", "primary", primary.url)
        wait_until_equal_logs(primary, replica)
        until(lambda: canonical(replica, "/schemagroups/g") == f"{primary.url}/schemagroups/g")
        assert console("pause", "primary") == "resting\n"
        until(lambda: replica.status("primary")["state"] == "resting")
        assert replica.request("PUT", "/schemagroups/mine", {}).status_code == 400
        assert console("resume", "primary") == "active\n"
        primary.write("g/s/2")
        wait_until_equal_logs(primary, replica)
        console("remove", "primary", "--yes")
        assert replica.request("PUT", "/schemagroups/mine", {}).status_code == 201
        until(lambda: canonical(replica, "/schemagroups/g") is None)


@pytest.mark.long
def test_a_reader_follows_what_it_may_see(tmp_path: Path) -> None:
    # Status: events that the link may not read do not count as lag
    tokens = json.dumps({"r": {"name": "rita", "role": "reader"}, TOKEN: {"name": "root", "role": "admin"}})
    with registries(tmp_path, "primary", "replica") as (primary, replica):
        primary.stop()
        primary.settings["ANNALS_TOKENS"] = tokens
        primary.start()
        primary.write("g/s/1")
        replica.link("primary", primary.url, credential={"token": "r"})
        until(lambda: primary.head()["state"] == replica.head()["state"])
        primary.link("elsewhere", "https://other.example", dialect="xregistry", enabled=False)
        until(lambda: replica.status("primary")["position"] == primary.head()["position"])
        assert replica.status("primary")["lag"] == {"positions": 0, "seconds": 0}
