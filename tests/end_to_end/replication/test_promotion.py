"""A replica takes over, and the old primary comes back as a replica of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.polling import until
from tests.support.registries.restarted import Registry, registries, wait_until_equal_logs
from tests.support.registries.stray_writes import tree_content


def same(one: Registry, other: Registry) -> bool:
    return bool(one.head()["state"] == other.head()["state"])


@pytest.mark.long
def test_failing_over_and_back(tmp_path: Path) -> None:
    # LEG-909: entities from a link are read-only until the link is promoted, and writable immediately afterwards
    with registries(tmp_path, "old", "new") as (old, new):
        old.fill(2, 2)
        new.link("primary", old.url, interval=1)
        wait_until_equal_logs(old, new)
        refused = new.request("PUT", "/schemagroups/mine", {})
        assert refused.status_code == 400 and refused.json()["authority"] == f"{old.url}/schemagroups/mine"
        old.kill()
        assert new.done("POST", "/-/links/primary/actions/promote")["status"]["state"] == "promoted"
        new.write("group0/s0/after")
        old.start()
        new.write("group0/s0/later")
        old.link("back", new.url, interval=1)
        until(lambda: same(old, new))
        assert new.ids()[1:] == old.ids()  # except for the interaction that created the registry
        assert old.request("PUT", "/schemagroups/mine", {}).json()["authority"] == f"{new.url}/schemagroups/mine"
        assert tree_content(old) == tree_content(new)
        until(lambda: old.status("back")["verdict"] == "equal")
        again = new.request("POST", "/-/links/primary/actions/resume")
        assert (again.status_code, again.json()["code"]) == (400, "promoted")


def test_an_old_primary_with_writes_of_its_own(tmp_path: Path) -> None:
    # If both registries were written to, nothing is merged; a repair restores the state of the link's source
    with registries(tmp_path, "old", "new") as (old, new):
        old.fill(2, 2)
        new.link("primary", old.url, interval=1)
        wait_until_equal_logs(old, new)
        new.done("POST", "/-/links/primary/actions/promote")
        old.write("lost/s/1")
        old.write("group0/s0/1", name="lost")
        new.write("group1/s1/won")
        new.done(
            "PUT", "/schemagroups/group1/schemas/s1/versions/document$details", {"format": "Text/1", "schema": "new"}
        )
        before, there = old.head()["state"], new.head()["state"]
        old.link("back", new.url, interval=1)
        until(lambda: "does not have" in old.status("back").get("error", ""))
        status = old.status("back")
        assert status["state"] == "diverged" and status["difference"]["xid"] == "/"
        assert (old.head()["state"], new.head()["state"]) == (before, there)
        assert old.done("POST", "/-/links/back/actions/repair")["repaired"] > 0
        assert same(old, new) and tree_content(old) == tree_content(new)
        assert old.request("GET", "/schemagroups/group1/schemas/s1/versions/document").json() == "new"
        assert old.request("GET", "/schemagroups/lost").status_code == 404
        assert old.done("GET", "/-/history/schemagroups/lost")  # the log still has the deleted entities
        new.write("group0/s0/next")
        until(lambda: same(old, new))
        until(lambda: old.status("back")["state"] == "active")
        assert "no findings" in old.verified()
