"""A source that has another log than the one that a link has read, such as one that was restored from a backup."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.polling import until
from tests.support.registries.client import VERSION
from tests.support.registries.restarted import TOKENS, Registry, registries

#: What a link says first, and what it says when it looks again and compares what it has copied.
OTHER_LOG = re.compile("has another log than before|differs from what it was")
#: What a link says while the other log is shorter than what was read of it.
ENDS_BEFORE = re.compile(r"the log ends at position \d+, before position \d+, which .* a repair continues from there")
VERSIONS = "/schemagroups/g/schemas/s/versions"
SCOPE = {"groups": ["/schemagroups/g"]}
FILTERED = {"filters": [{"prefix": {"subject": "/schemagroups/"}}]}


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
        _copy_and_restore(a, b)
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
        _copy_and_restore(a, b)
        a.done("POST", "/schemagroups/g/schemas", dict.fromkeys("tuvwxyz", VERSION))  # one interaction
        until(lambda: OTHER_LOG.search(b.status(link).get("error", "")))
        assert list(b.done("GET", "/schemagroups/g/schemas")) == ["s"]


def test_a_repair_adds_what_only_the_source_has(tmp_path: Path) -> None:
    """LEG-913: Groups that a filter selects are compared also if they are not here, and a repair copies them."""
    with registries(tmp_path, "a", "b", places=None) as (a, b):
        a.write("g/s/1")
        b.link("a", a.url, scope=FILTERED, interval=1)
        until(lambda: _has(b, "/schemagroups/g/schemas/s"))
        _back_up(a)
        a.write("lost/s/1")
        until(lambda: _has(b, "/schemagroups/lost/schemas/s"))
        _restore(a)
        a.write("new/s/1")
        until(lambda: OTHER_LOG.search(b.status("a").get("error", "")))
        assert b.done("POST", "/-/links/a/actions/repair")["repaired"] == 6
        assert _groups(b) == _groups(a) == ["g", "new"]
        assert b.done("POST", "/-/links/a/actions/check")["status"]["verdict"] == "equal"


@pytest.mark.parametrize("scope", [{}, FILTERED])
def test_what_takes_the_place_of_hidden_events_is_read(tmp_path: Path, scope: dict[str, object]) -> None:
    """LEG-913: a link has gone past events that it may not see; after a restore, others are in their place."""
    with registries(tmp_path, "a", "b", places=None) as (a, b):
        a.stop()
        a.settings["ANNALS_TOKENS"] = json.dumps({**TOKENS, "r": {"name": "rita", "role": "reader"}})
        a.start()
        a.write("g/s/1")
        b.link("a", a.url, scope=scope, credential={"token": "r"}, interval=1)
        until(lambda: _has(b, "/schemagroups/g/schemas/s"))
        _back_up(a)
        for id in ("one", "two", "three", "four"):
            a.link(id, "https://other.example", dialect="xregistry", enabled=False)
        hidden_end = a.head()["position"]
        until(lambda: b.status("a")["position"] == hidden_end)
        _restore(a)
        a.write("missed/s/1")
        assert a.head()["position"] == hidden_end
        until(lambda: _has(b, "/schemagroups/missed/schemas/s"))
        until(lambda: b.status("a")["state"] == "active")
        assert b.done("POST", "/-/links/a/actions/check")["status"]["verdict"] == "equal"


def test_a_push_compares_before_it_has_more_to_send(tmp_path: Path) -> None:
    """LEG-913: the log of a restored source may end where the lost one did; the link says so without a write."""
    with registries(tmp_path, "a", "b", places=None) as (a, b):
        a.write("g/s/1")
        b.link("in", a.url, mode="receive")
        a.link("out", b.url, mode="push", remote="in", interval=1)
        until(lambda: _has(b, "/schemagroups/g/schemas/s"))
        _back_up(a)
        a.write("lost/s/1")
        until(lambda: _has(b, "/schemagroups/lost/schemas/s"))
        end = a.head()["position"]
        _restore(a)
        a.write("new/s/1")
        assert a.head()["position"] == end
        until(lambda: "another log than before" in a.status("out").get("error", ""))
        assert a.status("out")["state"] == b.status("in")["state"] == "diverged"
        b.done("POST", "/-/links/in/actions/repair")
        until(lambda: _groups(b) == ["g", "new"] and a.status("out")["state"] == "active")


def _copy_and_restore(a: Registry, b: Registry) -> None:
    """Restores the source from a backup that lacks a Version which the other registry has got."""
    _back_up(a)
    a.write("g/s/2")
    until(lambda: b.request("GET", f"{VERSIONS}/2$details").is_success)
    _restore(a)


def _back_up(registry: Registry) -> None:
    registry.stop()
    shutil.copy(registry.home / "annals.db", registry.home / "backup.db")
    registry.start()


def _restore(registry: Registry) -> None:
    registry.stop()
    for leftover in registry.home.glob("annals.db*"):
        leftover.unlink()
    shutil.copy(registry.home / "backup.db", registry.home / "annals.db")
    registry.start()


def _groups(registry: Registry) -> list[str]:
    return sorted(registry.done("GET", "/schemagroups"))


def test_a_push_says_that_the_other_side_needs_a_repair(tmp_path: Path) -> None:
    """LEG-913: after the source was restored, its link diverges, too; it names the link to repair, and goes on then."""
    with registries(tmp_path, "a", "b", places=None) as (a, b):
        a.write("g/s/1")
        _push(a, b)
        until(lambda: b.request("GET", f"{VERSIONS}/1$details").is_success)
        _copy_and_restore(a, b)
        for id in ("3", "4"):
            a.write(f"g/s/{id}")
        until(lambda: "another log than before" in a.status("out").get("error", ""))
        status = a.status("out")
        assert status["state"] == "diverged"
        assert f"{b.url} has other states than this registry: POST" in status["error"]
        assert status["error"].endswith('; if its link "in" is for this registry, repair it there.')
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


def test_a_link_that_has_received_nothing_has_not_diverged(tmp_path: Path) -> None:
    """LEG-909: registries differ before the first push, and what a check found then does not outlive it."""
    with registries(tmp_path, "a", "b", places=None) as (a, b):
        a.write("g/s/1")
        b.link("in", a.url, scope=SCOPE, mode="receive")
        b.done("POST", "/-/links/in/actions/check")
        assert (b.status("in")["state"], b.status("in")["verdict"]) == ("active", "differs")
        _push(a, b)
        until(lambda: b.request("GET", f"{VERSIONS}/1$details").is_success)
        until(lambda: b.status("in")["verdict"] == "unknown")
        b.done("POST", "/-/links/in/actions/check")
        assert (b.status("in")["state"], b.status("in")["verdict"]) == ("active", "equal")


def test_a_push_says_what_it_lacks_at_the_target(tmp_path: Path) -> None:
    """LEG-907: the link that receives, and what there does not fit the model of this registry."""
    with registries(tmp_path, "a", "b", places=None) as (a, b):
        model = a.done("GET", "/modelsource")
        model["groups"]["boxes"] = {"singular": "box"}
        for registry in (a, b):
            registry.done("PUT", "/modelsource", model)
        model["groups"]["boxes"]["attributes"] = {"needed": {"type": "string", "required": True}}
        a.done("PUT", "/modelsource", model)
        a.done("PUT", "/boxes/a", {"needed": "it"})
        b.done("PUT", "/boxes/own", {})
        a.link("out", b.url, mode="push", remote="in", interval=1)
        until(lambda: "error" in a.status("out"))
        assert a.status("out")["error"] == (
            "GET /-/links/in answers 404: The targeted entity (/-/links/in) cannot be found; create the link"
            ' "in" there, with the mode "receive"'
        )
        b.link("in", a.url, scope={"groups": ["/boxes/a"]}, mode="receive")
        until(lambda: "/boxes/own" in b.status("in").get("error", ""))


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
