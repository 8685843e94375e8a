"""Pushes over the legacy APIs to a registry that was restored from a backup, was replaced, or lost something."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.projections.replication.compat.clients import SR, Api, Client, running_registries
from tests.projections.replication.compat.independent_server import BASE
from tests.projections.replication.compat.test_copies import EACH, conflicts, wait_until_equal
from tests.projections.replication.compat.test_independent_server import link, plain
from tests.support.polling import until


def _replace(client: Client, backup: Path | None = None) -> None:
    """Restores a registry from a backup, or makes it an empty one, at the same address."""
    client.registry.stop()
    for file in client.registry.home.glob("annals.db*"):
        file.unlink()
    if backup is not None:
        shutil.copytree(backup, client.registry.home, dirs_exist_ok=True)
    client.registry.start()


def _backup(client: Client, path: Path) -> Path:
    client.registry.stop()
    shutil.copytree(client.registry.home, path)
    client.registry.start()
    return path


def _wait_for_push(source: Client, target: Client, id: str) -> None:
    """Waits until a link has handled all earlier changes. id: of a new Group, which it pushes last."""
    source.group(id)
    until(lambda: target.registry.request("GET", target.path(id)).status_code == 200)


def _shown(client: Client, *groups: str) -> list[Any]:
    """Some Groups, and all versions."""
    return [*(client.registry.done("GET", client.path(group)) for group in groups), client.versions_by_id()]


def _pause(source: Client, target: Client) -> None:
    source.link("b", target, mode="push", enabled=False)
    until(lambda: source.registry.status("b")["state"] == "resting")


def _resume(source: Client, target: Client) -> None:
    source.link("b", target, mode="push", enabled=True)


@EACH
def test_a_number_that_the_target_gave_again_is_not_deleted(api: Api, tmp_path: Path) -> None:
    """LEG-905, LEG-909: after a restore of the target, another version has the number that an earlier one had."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        a.group("g")
        a.added("g", "s", b"1")
        a.link("b", b, mode="push")
        wait_until_equal(a, b)
        backup = _backup(b, tmp_path / "backup")
        a.added("g", "s", b"2")
        wait_until_equal(a, b)
        _replace(b, backup)
        a.added("g", "s", b"3", b"4")
        until(lambda: b.contents("g", "s") == [b"1", b"3", b"4"])
        a.delete("g", "s", 2)
        _wait_for_push(a, b, "later")
        assert b.contents("g", "s") == [b"1", b"3", b"4"]
        a.delete("g", "s", 3)
        until(lambda: b.contents("g", "s") == [b"1", b"4"])
        assert conflicts(a, "b") == {}


@EACH
def test_versions_that_a_restored_target_lost_are_written_in_order(api: Api, tmp_path: Path) -> None:
    """LEG-905, LEG-909: after the link was paused and resumed, also if a later version was written meanwhile."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        a.group("g")
        a.added("g", "s", b"1")
        a.link("b", b, mode="push")
        wait_until_equal(a, b)
        backup = _backup(b, tmp_path / "backup")
        a.added("g", "s", b"2")
        wait_until_equal(a, b)
        _replace(b, backup)
        a.added("g", "s", b"3")
        until(lambda: b.contents("g", "s") == [b"1", b"3"])
        _pause(a, b)
        _resume(a, b)
        until(lambda: b.contents("g", "s") == [b"1", b"2", b"3"])
        assert [each.path.rpartition("/")[2] for each in b.versions("g", "s")] == ["1", "3", "4"]
        assert conflicts(a, "b") == {}


@EACH
def test_what_others_made_at_a_replaced_target_stays(api: Api, tmp_path: Path) -> None:
    """LEG-907, LEG-909: a link neither changes nor deletes what it did not write, though it has the same names."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        for group in ("g", "empty", "changed"):
            a.group(group)
        a.added("g", "s", b"1")
        a.link("b", b, mode="push")
        wait_until_equal(a, b)
        _wait_for_push(a, b, "before")
        _replace(b)
        for group in ("g", "empty", "changed"):
            b.group(group)
        b.added("g", "s", b"1")
        before = _shown(b, "g", "empty", "changed")
        a.delete("g")
        a.delete("empty")
        a.registry.done("PUT", a.path("changed"), {"format": "Words", "description": "by a"})
        _wait_for_push(a, b, "later")
        assert _shown(b, "g", "empty", "changed") == before
        assert conflicts(a, "b") == {}


@EACH
def test_another_document_under_the_uri_of_a_deleted_version_stays(api: Api, tmp_path: Path) -> None:
    """LEG-907, LEG-909: the status names it."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        a.group("g")
        for id in ("s", "t"):
            a.added("g", id, b"1", authority="urn:example:words", id=f"urn:example:words:{id}")
        a.link("b", b, mode="push")
        wait_until_equal(a, b)
        for id, content, place in (("s", b"theirs", "s"), ("t", b"1", "elsewhere")):
            b.delete("g", id)
            b.added("g", place, content, authority="urn:example:words", id=f"urn:example:words:{id}")
            a.delete("g", id)
        _wait_for_push(a, b, "later")
        assert {id: b.contents("g", id) for id in ("s", "t", "elsewhere")} == {
            "s": [b"theirs"],
            "t": [],
            "elsewhere": [b"1"],
        }
        assert conflicts(a, "b") == {
            f"{b.path('g', place).removeprefix(api.base)}/versions/1": (
                f"it has the URI urn:example:words:{id}, but this link did not write it, so it is not deleted"
            )
            for id, place in (("s", "s"), ("t", "elsewhere"))
        }


@EACH
def test_a_lost_version_whose_uri_is_taken_is_written_no_more(api: Api, tmp_path: Path) -> None:
    """LEG-905 to LEG-907: later ones are written once after it was lost, and not at each start."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        a.group("g")
        a.added("g", "s", b"1", id="urn:example:one")
        a.added("g", "s", b"2")
        a.link("b", b, mode="push")
        wait_until_equal(a, b)
        b.delete("g", "s")
        b.added("g", "theirs", b"theirs", id="urn:example:one")
        _pause(a, b)
        _resume(a, b)
        until(lambda: b.contents("g", "s") == [b"2"])
        until(lambda: list(conflicts(a, "b")) == [f"{api.xid('g', 's')}/versions/1"])
        position = b.registry.head()["position"]
        _pause(a, b)
        _resume(a, b)
        _wait_for_push(a, b, "later")
        assert b.registry.head()["position"] == position + 2  # the new Group, and the registry that counts it


@EACH
def test_a_resumed_link_writes_everything_that_a_replaced_target_lacks(api: Api, tmp_path: Path) -> None:
    """LEG-909: it also owns it again, so that it deletes it later."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        for group in ("g", "h"):
            a.group(group, description=group)
            a.added(group, "s", b"1", b"2")
        a.link("b", b, mode="push")
        wait_until_equal(a, b)
        _replace(b)
        b.group("h", description="of b")
        _pause(a, b)
        _resume(a, b)
        wait_until_equal(a, b)
        groups = {id: b.registry.done("GET", b.path(id))["description"] for id in ("g", "h")}
        assert groups == {"g": "g", "h": "of b"}
        a.delete("g")
        a.delete("h")
        until(lambda: b.registry.request("GET", b.path("g")).status_code == 404)
        _wait_for_push(a, b, "later")
        assert b.versions_by_id() == {}
        assert b.registry.done("GET", b.path("h"))["description"] == "of b"
        assert conflicts(a, "b") == {}


@EACH
def test_a_write_into_something_that_is_gone_writes_all_of_its_group(api: Api, tmp_path: Path) -> None:
    """LEG-902, LEG-909: whether the group or the definition is gone, and whether a version or the group was changed."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        a.group("g")
        a.added("g", "s", b"1", b"2")
        a.added("g", "t", b"3")
        a.link("b", b, mode="push")
        wait_until_equal(a, b)
        b.delete("g", "s")
        a.added("g", "s", b"4")
        wait_until_equal(a, b)
        assert b.contents("g", "s") == [b"1", b"2", b"4"]
        _replace(b)
        a.added("g", "u", b"5")
        wait_until_equal(a, b)
        _replace(b)
        a.registry.done("PUT", a.path("g"), {"format": "Words", "description": "new"})
        wait_until_equal(a, b)
        assert b.registry.done("GET", b.path("g"))["description"] == "new"
        assert conflicts(a, "b") == {}


@EACH
def test_a_version_with_another_uri_replaces_the_former_one(api: Api, tmp_path: Path) -> None:
    """LEG-903, LEG-909: also if it has the same number and the same document."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        a.group("g")
        a.added("g", "s", b"1", id="urn:example:one")
        a.link("b", b, mode="push")
        wait_until_equal(a, b)
        _pause(a, b)
        a.delete("g", "s")
        a.added("g", "s", b"1", id="urn:example:two")
        _resume(a, b)
        until(lambda: b.pairs() == {("urn:example:two", b"1")})


@EACH
def test_records_of_earlier_releases_have_no_uri(api: Api, tmp_path: Path) -> None:
    """LEG-909: what is at a recorded path counts as written if it has the document, or the attributes of the group,
    that were written. The record of what still exists then gets the URI or the time of creation.
    """
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        for group in ("g", "empty"):
            a.group(group)
        a.added("g", "s", b"1", b"2")
        a.added("g", "t", b"3")
        a.link("b", b, mode="push")
        wait_until_equal(a, b)
        _wait_for_push(a, b, "before")
        _pause(a, b)
        with closing(sqlite3.connect(tmp_path / "a" / "annals.db")) as db, db:
            done = db.execute("UPDATE replication_sent SET place = substr(place, 1, instr(place, '#') - 1)")
            assert done.rowcount == 6
        b.delete("g", "t")
        b.added("g", "t", b"theirs")
        a.delete("g", "s", 1)
        a.delete("g", "t")
        a.delete("empty")
        _resume(a, b)
        until(lambda: b.registry.request("GET", b.path("empty")).status_code == 404)
        assert {id: b.contents("g", id) for id in ("s", "t")} == {"s": [b"2"], "t": [b"theirs"]}
        b.group("g", description="of b")
        b.delete("g", "s")
        b.added("g", "s", b"theirs", b"2")
        a.delete("g", "s")
        _wait_for_push(a, b, "later")
        assert b.contents("g", "s") == [b"theirs", b"2"]
        for id in ("s", "t"):
            b.delete("g", id)
        a.delete("g")
        until(lambda: b.registry.request("GET", b.path("g")).status_code == 404)
        assert conflicts(a, "b") == {}


def test_a_server_without_times_of_creation_gets_again_what_it_lost(tmp_path: Path) -> None:
    """LEG-902, LEG-909: there, a group is the link's own if it is equal to what the link wrote."""
    with running_registries(tmp_path, SR, "a") as (a,), plain() as server:
        for group in ("g", "h"):
            a.group(group, description="of a")
            a.added(group, "s", b"1", b"2")
        link(a, server, "push")
        groups = [f"{BASE}/schemagroups/{group}" for group in ("g", "h")]
        until(lambda: all(server.get(f"{group}/schemas/s/versions").json() == [1, 2] for group in groups))
        for group in groups:
            server.delete(group).raise_for_status()
        server.put(groups[1], json={"format": "Words", "description": "another one"}).raise_for_status()
        for group in ("g", "h"):
            a.added(group, "s", b"3")
        until(lambda: all(server.get(f"{group}/schemas/s/versions").json() == [1, 2, 3] for group in groups))
        a.delete("g")
        a.delete("h")
        until(lambda: server.get(f"{BASE}/schemagroups").json() == ["h"])
        until(lambda: server.get(f"{groups[1]}/schemas").json() == [])


def test_requests_of_a_push(tmp_path: Path) -> None:
    """LEG-906, LEG-909: a write believes what is recorded; only a deletion asks before, once for each version."""
    with running_registries(tmp_path, SR, "a") as (a,), plain() as server:
        a.group("g")
        a.added("g", "s", b"1")
        link(a, server, "push")
        schema = f"{BASE}/schemagroups/g/schemas/s"
        lookup = f"GET {BASE}/schema"
        added = [lookup, f"GET {BASE}/schemagroups", f"GET {schema}", f"POST {schema}", lookup]

        until(lambda: server.get("/requests").json()[-2:] == added[-2:])
        before = server.get("/requests").json()
        a.added("g", "s", b"2")
        until(lambda: server.get("/requests").json() == [*before, *added])
        a.delete("g", "s", 1)
        deleted = [lookup, f"GET {schema}/versions", f"DELETE {schema}/versions/1"]
        until(lambda: server.get("/requests").json() == [*before, *added, *deleted])
