"""Cursors of links beyond the end of the log: a link does not trust them."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from annals.projections.replication.link_state import LinkStates
from tests.support.polling import until
from tests.support.registries.client import VERSION
from tests.support.registries.restarted import Registry, registries, wait_until_equal_logs
from tests.support.registries.standard import use_common_model, wait_until_equal_contents


def set_cursor(registry: Registry, link: str, position: int) -> None:
    """Stores the cursor of a link in the database of a stopped registry."""
    with closing(LinkStates(registry.database)) as states:
        states.update(link, position)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str | None:
    """The URL of the database of the registry that stores the cursor; None for a new SQLite file."""
    return request.getfixturevalue("postgres_url") if request.param == "postgresql" else None


@pytest.mark.long
@pytest.mark.parametrize("mode", ["pull", "events"])
def test_a_log_that_ends_before_a_link(tmp_path: Path, database: str | None, mode: str) -> None:
    """FLAG-80, LEG-913: the link does not wait, but fails and reports the end of the log; a repair resumes it."""
    with registries(tmp_path, "a", "b", places=None, **({"b": database} if database else {})) as (a, b):
        a.write("g/s/1")
        b.link("a", a.url, mode=mode, interval=1)
        wait_until_equal_logs(a, b)
        b.stop()
        set_cursor(b, "a", a.head()["position"] + 1000)
        b.start()
        a.write("g/s/2")
        until(lambda: f"the log ends at position {a.head()['position']}" in b.status("a").get("error", ""))
        assert b.status("a")["state"] == "failing"
        assert b.request("GET", "/schemagroups/g/schemas/s/versions/2$details").status_code == 404
        b.done("POST", "/-/links/a/actions/repair")
        a.write("g/s/3")
        until(lambda: b.request("GET", "/schemagroups/g/schemas/s/versions/3$details").is_success)
        assert b.status("a")["state"] == "active"


def test_a_registry_that_receives_more_than_there_is(tmp_path: Path, database: str | None) -> None:
    """LEG-913: the pushing link diverges if the receiver claims a position beyond the end of the pushed log."""
    with registries(tmp_path, "a", "b", places=None, **({"b": database} if database else {})) as (a, b):
        a.write("g/s/1")
        b.link("in", a.url, mode="receive")
        a.link("out", b.url, mode="push", remote="in")
        wait_until_equal_logs(a, b)
        a.stop()
        set_cursor(b, "in", 2**60)
        a.start()
        until(lambda: a.status("out")["state"] == "diverged")
        assert a.status("out")["error"] == (
            f'The link "/-/links/out" cannot continue: {b.url} has other states than this registry, so repair its link'
            f' "in": it has received the log up to position {2**60}, which ends at {a.head()["position"]} here.'
        )


def test_a_push_over_the_standard_api_begins_again(tmp_path: Path, database: str | None) -> None:
    """LEG-913: the target gets what was written at the source since then, and nothing else is written there."""
    with registries(tmp_path, "a", "b", places=None, **({"a": database} if database else {})) as (a, b):
        use_common_model(a, b)
        a.done("PUT", "/dirs/d/files/f$details", {"name": "it"})
        a.link("out", b.url, dialect="xregistry", mode="push", interval=0.2)
        wait_until_equal_contents(a, b)
        until(lambda: a.status("out")["position"] == a.head()["position"])
        before = b.ids()
        a.stop()
        set_cursor(a, "out", 2**60)
        a.start()
        a.done("PUT", "/dirs/d/files/g$details", {"name": "later"})
        wait_until_equal_contents(a, b)
        until(lambda: a.status("out")["position"] == a.head()["position"])
        assert len(b.ids()) == len(before) + 1


#: What a link says first, and what it says when it looks again and compares what it has copied.
OTHER_LOG = re.compile("has another log than before|differs from what it was")
#: What a link says while the other log is shorter than what was read of it.
ENDS_BEFORE = re.compile(r"the log ends at position \d+, before position \d+, which .* a repair continues from there")
VERSIONS = "/schemagroups/g/schemas/s/versions"
SCOPE = {"groups": ["/schemagroups/g"]}


def _pull(a: Registry, b: Registry) -> str:
    b.link("a", a.url, scope=SCOPE, interval=1)
    return "a"


def _events(a: Registry, b: Registry) -> str:
    b.link("a", a.url, scope=SCOPE, mode="events", interval=3600)
    return "a"


def _push(a: Registry, b: Registry) -> str:
    b.link("in", a.url, scope=SCOPE, mode="receive")
    a.link("out", b.url, mode="push", remote="in", interval=1)
    return "in"


@pytest.mark.parametrize("connect", [_pull, _events, _push])
def test_a_source_that_was_restored_from_a_backup(tmp_path: Path, connect: Callable[[Registry, Registry], str]) -> None:
    """LEG-913: the link says that the log is shorter. When that grows past the cursor again, the link diverges, takes
    nothing of it, and a repair resumes it."""
    with registries(tmp_path, "a", "b", places=None) as (a, b):
        a.write("g/s/1")
        link = connect(a, b)
        until(lambda: b.request("GET", f"{VERSIONS}/1$details").is_success)
        _copy_and_restore(a, b, tmp_path / "a")
        if connect is _pull:  # the others notice it with the next write
            until(lambda: ENDS_BEFORE.search(b.status(link).get("error", "")))
            assert b.status(link)["state"] == "failing"
        for id in ("3", "4"):
            a.write(f"g/s/{id}")
        until(lambda: b.status(link)["state"] == "diverged")
        assert "readstate" not in (status := b.status(link)) and OTHER_LOG.search(status["error"])
        assert list(b.done("GET", VERSIONS)) == ["1", "2"]
        b.done("POST", f"/-/links/{link}/actions/repair")
        until(lambda: list(b.done("GET", VERSIONS)) == ["1", "3", "4"])
        a.write("g/s/5")
        until(lambda: b.request("GET", f"{VERSIONS}/5$details").is_success)
        until(lambda: b.status(link)["state"] == "active")


@pytest.mark.parametrize("connect", [_pull, _events])
def test_a_restored_source_whose_interactions_end_elsewhere(
    tmp_path: Path, connect: Callable[[Registry, Registry], str]
) -> None:
    """LEG-913: where no interaction ends any more at the position that was read, it is another log too."""
    with registries(tmp_path, "a", "b", places=None) as (a, b):
        a.write("g/s/1")
        link = connect(a, b)
        until(lambda: b.request("GET", f"{VERSIONS}/1$details").is_success)
        _copy_and_restore(a, b, tmp_path / "a")
        a.done("POST", "/schemagroups/g/schemas", dict.fromkeys("tuvwxyz", VERSION))  # one interaction
        until(lambda: OTHER_LOG.search(b.status(link).get("error", "")))
        assert list(b.done("GET", "/schemagroups/g/schemas")) == ["s"]


def _copy_and_restore(a: Registry, b: Registry, folder: Path) -> None:
    """Restores the source from a backup that lacks a Version which the other registry has got."""
    a.stop()
    file, backup = folder / "annals.db", folder / "backup.db"
    shutil.copy(file, backup)
    a.start()
    a.write("g/s/2")
    until(lambda: b.request("GET", f"{VERSIONS}/2$details").is_success)
    a.stop()
    for leftover in folder.glob("annals.db*"):
        leftover.unlink()
    shutil.copy(backup, file)
    a.start()


def test_a_push_says_that_the_other_side_needs_a_repair(tmp_path: Path) -> None:
    """LEG-913: after the source was restored, its link diverges, too; it names the link to repair, and goes on then."""
    with registries(tmp_path, "a", "b", places=None) as (a, b):
        a.write("g/s/1")
        _push(a, b)
        until(lambda: b.request("GET", f"{VERSIONS}/1$details").is_success)
        _copy_and_restore(a, b, tmp_path / "a")
        for id in ("3", "4"):
            a.write(f"g/s/{id}")
        until(lambda: "another log than before" in a.status("out").get("error", ""))
        status = a.status("out")
        assert status["state"] == "diverged"
        assert f'{b.url} has other states than this registry, so repair its link "in": POST' in status["error"]
        refused = a.request("POST", "/-/links/out/actions/repair")
        assert (refused.status_code, refused.json()["title"]) == (
            400,
            'The link is not valid at "/mode": the registry that receives the log compares and repairs it: use the link'
            f' "in" of {b.url}.',
        )
        b.done("POST", "/-/links/in/actions/repair")
        until(lambda: a.status("out")["state"] == "active" and list(b.done("GET", VERSIONS)) == ["1", "3", "4"])


def test_a_link_receives_one_log(tmp_path: Path) -> None:
    """LEG-913: a second registry that pushes to the link of another one is refused, and the first one goes on."""
    with registries(tmp_path, "a", "b", "c", places=None) as (a, b, c):
        for registry in (a, c):
            for id in ("1", "2"):
                registry.write(f"g/s/{id}")
        _push(a, b)
        until(lambda: b.request("GET", f"{VERSIONS}/2$details").is_success)
        c.link("out", b.url, mode="push", remote="in", interval=1)
        c.write("g/s/of-c")
        until(lambda: "another log" in c.status("out").get("error", ""))
        a.write("g/s/3")
        until(lambda: list(b.done("GET", VERSIONS)) == ["1", "2", "3"])


@pytest.mark.parametrize("connect", [_pull, _push])
def test_what_was_written_after_a_link_was_removed(
    tmp_path: Path, connect: Callable[[Registry, Registry], str]
) -> None:
    """LEG-909, LEG-913: a new link over the same Groups diverges instead of writing over it; a repair is asked for."""
    with registries(tmp_path, "a", "b", places=None) as (a, b):
        a.write("g/s/1", name="theirs")
        link = connect(a, b)
        until(lambda: b.request("GET", f"{VERSIONS}/1$details").is_success)
        for number in range(2):  # unchanged copies of an earlier link are copies of the later one
            b.done("DELETE", f"/-/links/{link}")
            a.write(f"g/more/{number}")
            connect(a, b)
            until(partial(_has, b, f"/schemagroups/g/schemas/more/versions/{number}$details"))
        b.done("DELETE", f"/-/links/{link}")
        b.done("PATCH", f"{VERSIONS}/1$details", {"name": "mine"})
        b.write("g/mine/1")
        position = b.head()["position"]
        a.done("PATCH", f"{VERSIONS}/1$details", {"name": "later"})
        connect(a, b)
        until(lambda: b.status(link)["state"] == "diverged")
        a.write("g/s/2")
        time.sleep(2)  # two intervals
        assert b.done("GET", f"{VERSIONS}/1$details")["name"] == "mine"
        assert list(b.done("GET", VERSIONS)) == ["1"]
        b.done("POST", f"/-/links/{link}/actions/repair")
        until(lambda: list(b.done("GET", VERSIONS)) == ["1", "2"])
        assert b.done("GET", f"{VERSIONS}/1$details")["name"] == "later"
        assert b.request("GET", "/schemagroups/g/schemas/mine").status_code == 404
        assert b.head()["position"] > position


def _has(registry: Registry, path: str) -> bool:
    return registry.request("GET", path).is_success
