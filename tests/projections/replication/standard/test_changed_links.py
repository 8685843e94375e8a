"""What changes around a link over the standard API: its scope, its names, the types and the contents of either side."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from annals.projections.replication.link_conflicts import MAX_CONFLICTS
from tests.projections.replication.standard.changes import LINK, PUSH
from tests.support.polling import until
from tests.support.registries.independent_server import MODEL
from tests.support.registries.restarted import WRITER, Registry, registries
from tests.support.registries.standard import (
    check_logs_stop_growing,
    use_common_model,
    wait_for_polls,
    wait_until_equal_contents,
)

#: The common model without one type of Resources, and with a second type of Groups.
WITHOUT_NOTES: Any = deepcopy(MODEL)
del WITHOUT_NOTES["groups"]["dirs"]["resources"]["notes"]
WITH_CRATES: Any = {"groups": {**MODEL["groups"], "crates": {"singular": "crate", "resources": {}}}}


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Registry, Registry]]:
    """Two registries with the common model."""
    with registries(tmp_path, "source", "copy") as (source, copy):
        use_common_model(source, copy)
        yield source, copy


def conflicts(registry: Registry, link: str) -> dict[str, str]:
    """The reasons of conflicts of a link, by xid."""
    return {each["xid"]: each["reason"] for each in registry.status(link).get("conflicts", ())}


def test_two_groups_with_one_name(pair: tuple[Registry, Registry]) -> None:
    """LEG-903, LEG-907: the second Group that would have a name here is a conflict, and neither is written over."""
    source, copy = pair
    for group in ("a", "b"):
        source.done("PUT", f"/dirs/{group}/files/f$details", {"name": f"of {group}"})
    copy.link("up", source.url, names={"/dirs/a": "/dirs/b"}, **LINK)
    until(lambda: "/dirs/b" in conflicts(copy, "up"))
    assert "another Group there has it" in conflicts(copy, "up")["/dirs/b"]
    assert copy.done("GET", "/dirs/b/files/f$details")["name"] == "of a"
    source.done("PUT", "/dirs/c", {})
    until(lambda: copy.request("GET", "/dirs/c").is_success)
    check_logs_stop_growing(copy)
    copy.verified()


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        ({}, {"scope": {"groups": ["/dirs/a"]}}, "/dirs/b/files/f$details"),
        (
            {"scope": {"groups": ["/dirs/a"]}},
            {"scope": {"resources": ["/dirs/a/files/f"]}},
            "/dirs/a/files/g$details",
        ),
        (
            {"scope": {"groups": ["/dirs/a", "/dirs/b"]}, "names": {"/dirs/b": "/dirs/old"}},
            {"scope": {"groups": ["/dirs/a", "/dirs/b"]}, "names": {"/dirs/b": "/dirs/new"}},
            "/dirs/old/files/f$details",
        ),
    ],
    ids=["Groups", "Resources", "names"],
)
def test_what_leaves_the_scope_can_be_written(
    pair: tuple[Registry, Registry], before: Any, after: Any, left: str
) -> None:
    """LEG-909: copies that a link maintains no longer stay, and are not read-only; the others are."""
    source, copy = pair
    for path in ("a/files/f", "a/files/g", "b/files/f"):
        source.done("PUT", f"/dirs/{path}$details", {"name": "theirs"})
    copy.link("up", source.url, **before, **LINK)
    until(lambda: copy.request("GET", left).is_success)
    client = copy.client(WRITER)
    assert client.patch(left, json={"name": "mine"}).status_code == 400
    copy.link("up", source.url, **after, **LINK)
    assert client.patch(left, json={"name": "mine"}).status_code == 200
    wait_for_polls(copy)
    assert client.patch("/dirs/a/files/f$details", json={"name": "mine"}).status_code == 400
    check_logs_stop_growing(copy)
    assert copy.done("GET", left)["name"] == "mine"
    client.close()


def test_a_type_that_the_source_removes(pair: tuple[Registry, Registry]) -> None:
    """LEG-909: what the source no longer shows is deleted here, also if a scope names it and its type is gone."""
    source, copy = pair
    source.done("PUT", "/modelsource", WITH_CRATES)
    source.done("PUT", "/crates/c", {})
    copy.link("up", source.url, scope={"groups": ["/crates/c"]}, **LINK)
    until(lambda: copy.request("GET", "/crates/c").is_success)
    source.done("DELETE", "/crates/c")
    source.done("PUT", "/modelsource", MODEL)
    until(lambda: copy.request("GET", "/crates/c").status_code == 404)
    assert "no Groups of this type" in conflicts(copy, "up")["/crates/c"]


def test_a_refused_model_holds_nothing_else_up(pair: tuple[Registry, Registry]) -> None:
    """LEG-910: the conflict names an entity that refuses the model; what this model allows is copied."""
    source, copy = pair
    copy.done("PUT", "/dirs/own/notes/n", {"level": 1})
    levels: Any = deepcopy(MODEL)
    notes = levels["groups"]["dirs"]["resources"]["notes"]
    notes["attributes"] = {"level": {"type": "string"}, "*": {"type": "any"}}
    source.done("PUT", "/modelsource", levels)
    source.done("PUT", "/dirs/d/files/f$details", {"name": "theirs"})
    copy.link("up", source.url, **LINK)
    until(lambda: copy.request("GET", "/dirs/d/files/f$details").is_success)
    assert "/dirs/own/notes/n" in conflicts(copy, "up")["/model"]
    copy.done("DELETE", "/dirs/own/notes/n")
    until(lambda: "conflicts" not in copy.status("up"))
    assert copy.done("GET", "/model")["groups"]["dirs"]["resources"]["notes"]["attributes"]["level"]["type"] == "string"


def test_a_push_tries_conflicts_again(pair: tuple[Registry, Registry]) -> None:
    """LEG-907: what the target refuses is written once it takes it, without another change, and is no conflict then."""
    source, target = pair
    target.done("PUT", "/modelsource", WITHOUT_NOTES)
    source.done("PUT", "/dirs/d/notes/n", {"name": "it"})
    source.link("out", target.url, **PUSH)
    until(lambda: "/dirs/d/notes/n" in conflicts(source, "out"))
    target.done("PUT", "/modelsource", MODEL)
    wait_until_equal_contents(source, target)
    until(lambda: not conflicts(source, "out"))


def test_a_restarted_push_tries_more_conflicts_than_its_status_names(pair: tuple[Registry, Registry]) -> None:
    """LEG-907: the total is right after a restart, and what the status does not name is written once it can be."""
    source, target = pair
    target.done("PUT", "/modelsource", WITHOUT_NOTES)
    source.done("PUT", "/dirs/d", {"notes": {f"n{number}": {} for number in range(MAX_CONFLICTS + 2)}})
    source.link("out", target.url, **PUSH)
    until(lambda: source.status("out").get("conflictscount") == MAX_CONFLICTS + 2)
    source.stop()
    source.start()
    last_contact = source.status("out")["lastcontact"]
    until(lambda: source.status("out")["lastcontact"] > last_contact)
    assert source.status("out")["conflictscount"] == MAX_CONFLICTS + 2
    target.done("PUT", "/modelsource", MODEL)
    wait_until_equal_contents(source, target)
    until(lambda: not {"conflicts", "conflictscount"} & source.status("out").keys())


def test_a_push_that_is_resumed_sends_everything(pair: tuple[Registry, Registry]) -> None:
    """LEG-913: what somebody deleted or changed at the target is there again after a pause."""
    source, target = pair
    for file in ("f", "g"):
        source.done("PUT", f"/dirs/d/files/{file}$details", {"versions": {"1": {"name": "it"}}})
    source.link("out", target.url, **PUSH)
    wait_until_equal_contents(source, target)
    until(lambda: source.status("out").get("position") == source.head()["position"])
    target.done("DELETE", "/dirs/d/files/f")
    target.done("PATCH", "/dirs/d/files/g/versions/1$details", {"name": "other"})
    source.done("POST", "/-/links/out/actions/pause")
    source.done("POST", "/-/links/out/actions/resume")
    wait_until_equal_contents(source, target)
