"""Links that write to servers of the standard API: Annals, and one that shares no code with it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from annals.projections.replication.link_state import LinkStates
from tests.projections.replication.standard.changes import CHANGES, LINK, PUSH, check_order_of_versions
from tests.support.polling import until
from tests.support.registries.independent_server import MODEL
from tests.support.registries.restarted import Registry, registries
from tests.support.registries.standard import (
    IndependentServer,
    check_logs_stop_growing,
    contents,
    independent_server,
    use_common_model,
    wait_until_equal_contents,
)


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Registry]:
    """An Annals registry that writes to others."""
    with registries(tmp_path, "source") as (one,):
        use_common_model(one)
        yield one


@pytest.fixture(params=["ours", "plain"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Registry | IndependentServer]:
    """A server to write to."""
    with ExitStack() as stack:
        if request.param == "plain":
            yield stack.enter_context(independent_server())
        else:
            (one,) = stack.enter_context(registries(tmp_path, "target"))
            use_common_model(one)
            yield one


def test_all_is_written_and_then_each_change(source: Registry, target: Registry | IndependentServer) -> None:
    """LEG-902, LEG-913: a push writes what existed before the link, then each change, deletions included."""
    for _, method, path, body, _ in CHANGES[:4]:
        source.done(method, path, body)
    source.link("out", target.url, **PUSH)
    wait_until_equal_contents(source, target)
    for _, method, path, body, _ in CHANGES[4:]:
        source.done(method, path, body)
        wait_until_equal_contents(source, target)
    assert source.status("out")["state"] == "active"
    assert "conflicts" not in source.status("out")


def test_a_group_that_was_created_again_with_many_members(
    source: Registry, target: Registry | IndependentServer
) -> None:
    """LEG-913: it is known by when it was created first, however many events followed."""
    source.done("PUT", "/dirs/d", {"name": "old"})
    source.link("out", target.url, **PUSH)
    wait_until_equal_contents(source, target)
    source.done("POST", "/-/links/out/actions/pause")
    time.sleep(1)  # what is being written is written to its end
    source.done("DELETE", "/dirs/d")
    source.done("PUT", "/dirs/d", {"name": "new"})
    for number in range(40):
        source.done("PUT", f"/dirs/d/notes/n{number}", {})
    source.done("POST", "/-/links/out/actions/resume")
    wait_until_equal_contents(source, target)


def test_a_group_that_was_lost_there_is_written_with_its_resource(source: Registry) -> None:
    """LEG-902: a target that was replaced by an empty one gets the Group whole, before its next Resource."""
    with independent_server() as target:
        source.done("PUT", "/dirs/d", {"name": "mine", "labels": {"team": "red"}})
        source.done("PUT", "/dirs/d/files/old$details", {"name": "it"})
        source.link("out", target.url, **PUSH)
        wait_until_equal_contents(source, target)
        target.done("DELETE", "/dirs/d")
        source.done("PUT", "/dirs/d/files/new$details", {"name": "it"})
        until(lambda: "/dirs/d/files/new" in contents(target))
        source.done("POST", "/-/links/out/actions/pause")
        source.done("POST", "/-/links/out/actions/resume")
        wait_until_equal_contents(source, target)
        assert "conflicts" not in source.status("out")


@pytest.mark.parametrize("mode", ["createdat", "modifiedat"])
def test_the_order_of_versions_is_pushed(tmp_path: Path, mode: str) -> None:
    """P-15/37, ENT-101: the newest Version there is that of the source, and Versions have its times."""
    with registries(tmp_path, "source", "target") as (source, target):
        check_order_of_versions(source, target, mode, lambda: source.link("out", target.url, **PUSH))


def test_a_change_is_few_requests(source: Registry) -> None:
    """LEG-910: a push of one changed Version reads its Resource, writes that Version, and requests nothing else."""
    with independent_server() as target:
        for number in range(5):
            source.done("PUT", f"/dirs/d/files/f{number}$details", {"versions": {"1": {"name": "it"}}})
        source.link("out", target.url, **PUSH)
        wait_until_equal_contents(source, target)
        until(lambda: source.status("out")["position"] == source.head()["position"])
        before = len(target.requests())
        source.done("PUT", "/dirs/d/files/f3/versions/1$details", {"name": "other"})
        until(lambda: source.status("out")["position"] == source.head()["position"])
        reads = ["GET /dirs/d/files/f3/meta", "GET /dirs/d/files/f3/versions"]
        assert target.requests()[before:] == [*reads, "POST /dirs/d/files/f3/versions"]


def test_names_and_scope(source: Registry) -> None:
    """LEG-901, LEG-903: a push writes only what is in scope, under the names of the target, also in xrefs."""
    with independent_server() as target:
        source.link("out", target.url, scope={"groups": ["/dirs/mine"]}, names={"/dirs/theirs": "/dirs/mine"}, **PUSH)
        source.done("PUT", "/dirs/other/files/f$details", {"name": "it"})
        source.done("PUT", "/dirs/mine/files/f$details", {"name": "it"})
        source.done("PUT", "/dirs/mine/files/p$details", {"meta": {"xref": "/dirs/mine/files/f"}})
        until(lambda: contents(target).get("/dirs/theirs/files/p") == {"xref": "/dirs/theirs/files/f"})
        until(lambda: source.status("out")["position"] == source.head()["position"])
        assert target.done("GET", "/dirs").keys() == {"theirs"}


def test_refusals_are_conflicts_in_the_status(source: Registry) -> None:
    """LEG-907: a refusal, or a name taken there, is a conflict in the status; all else is written."""
    with independent_server() as target:
        target.done("PUT", "/dirs/d", {"name": "of another hand"})
        target.done("PUT", "/dirs/d/files/taken$details", {"name": "of another hand"})
        target.refuse("/dirs/d/files/unwanted")
        for name in ("taken", "unwanted", "welcome"):
            source.done("PUT", f"/dirs/d/files/{name}$details", {"versions": {"1": {"name": "it"}}})
        source.link("out", target.url, **PUSH)
        until(lambda: "/dirs/d/files/welcome" in contents(target))
        until(lambda: len(source.status("out").get("conflicts", ())) == 3)
        found = {each["xid"]: each["reason"] for each in source.status("out")["conflicts"]}
        assert found.keys() == {"/dirs/d", "/dirs/d/files/taken", "/dirs/d/files/unwanted"}
        assert "is not wanted" in found["/dirs/d/files/unwanted"]
        assert contents(target)["/dirs/d/files/taken/versions/1"]["name"] == "of another hand"
        source.done("DELETE", "/dirs/d/files/taken")
        until(lambda: source.status("out")["position"] == source.head()["position"])
        assert "/dirs/d/files/taken" in contents(target)


@pytest.mark.long
def test_what_was_written_is_not_written_again(source: Registry) -> None:
    """LEG-906: a process that was killed during a push resumes with what is missing, and writes nothing twice."""
    with independent_server() as target:
        source.link("out", target.url, **PUSH)
        for number in range(60):
            source.done("PUT", f"/dirs/d/files/f{number}$details", {"versions": {"1": {"name": "it"}}})
            if number in (20, 40):
                source.kill()
                source.start()
        wait_until_equal_contents(source, target)
        until(lambda: source.status("out")["position"] == source.head()["position"])
        source.stop()
        with closing(LinkStates(source.database)) as states:
            states.update("out", 0)  # as though it had been killed before it stored any progress
        source.start()
        until(lambda: source.status("out")["position"] == source.head()["position"])
        written = [each for each in target.requests() if not each.startswith("GET")]
        files = [f"PUT /dirs/d/files/f{number}$details" for number in range(60)]
        assert sorted(written) == sorted(["PUT /dirs/d", *files])


def test_an_old_error_goes_without_anything_to_send(source: Registry) -> None:
    """LEG-901: the status no longer names an error of an earlier attempt after one that had nothing to write."""
    with independent_server() as target:
        source.link("out", target.url, **PUSH)
        until(lambda: source.status("out")["position"] == source.head()["position"])
        source.stop()
        with closing(LinkStates(source.database)) as states:
            states.update("out", error="its credential cannot be read", failed=1)
        source.start()
        until(lambda: source.status("out")["state"] == "active")
        assert not {"error", "failed"} & source.status("out").keys()


def test_what_comes_from_there_never_goes_back(tmp_path: Path) -> None:
    """LEG-906: one link copies the other registry, another one pushes what is local, and neither returns a copy."""
    with registries(tmp_path, "one", "other") as (one, other):
        use_common_model(one, other)
        other.done("PUT", "/dirs/d/files/f$details", {"name": "the other's"})
        one.link("in", other.url, **LINK)
        one.link("out", other.url, **PUSH)
        wait_until_equal_contents(other, one)
        one.done("PUT", "/dirs/d/files/g$details", {"name": "one's"})
        wait_until_equal_contents(one, other)
        other.done("PUT", "/dirs/d/files/f$details", {"name": "changed"})
        wait_until_equal_contents(other, one)
        until(lambda: "conflicts" not in one.status("out") and "conflicts" not in one.status("in"))
        check_logs_stop_growing(one, other)
        assert {name: each["name"] for name, each in one.done("GET", "/dirs/d/files").items()} == {
            "f": "changed",
            "g": "one's",
        }


def test_a_type_that_goes_holds_nothing_up(source: Registry) -> None:
    """LEG-909: an entity whose type was removed here cannot be deleted there: a conflict; all else is written."""
    with independent_server() as target:
        source.link("out", target.url, **PUSH)
        source.done("PUT", "/dirs/d/notes/n", {"name": "it"})
        wait_until_equal_contents(source, target)
        types: Any = deepcopy(MODEL)
        del types["groups"]["dirs"]["resources"]["notes"]
        source.link("out", target.url, enabled=False, **PUSH)
        time.sleep(1)  # a pass that has begun would still delete it
        source.done("DELETE", "/dirs/d/notes/n")
        source.done("PUT", "/modelsource", types)
        source.done("PUT", "/dirs/d/files/f$details", {"versions": {"1": {"name": "it"}}})
        source.link("out", target.url, **PUSH)
        until(lambda: "/dirs/d/files/f" in contents(target))
        until(lambda: source.status("out")["position"] == source.head()["position"])
        assert source.status("out")["state"] == "active"
        assert {each["xid"] for each in source.status("out")["conflicts"]} == {"/dirs/d/notes/n"}
        assert "/dirs/d/notes/n" in contents(target)
