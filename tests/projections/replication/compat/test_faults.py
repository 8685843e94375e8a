"""Links over the legacy APIs through a proxy that answers by itself for a while: they fail, and lose nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.projections.replication.compat.clients import OFTEN, SR, Api, Client, running_registries
from tests.projections.replication.compat.independent_server import BASE
from tests.projections.replication.compat.test_copies import EACH, conflicts, wait_until_equal
from tests.projections.replication.compat.test_independent_server import plain, root
from tests.support.faulty_proxy import FAULTS, NOT_FOUND_PAGE, Answer, FaultyProxy, bare_404, faulty_proxy
from tests.support.polling import until
from tests.support.registries.restarted import TOKEN

#: What a server answers about a document that it has lost.
UNREADABLE = Answer(500, {"content-type": "application/json"}, b'{"title": "its file is gone"}')


def _link(client: Client, proxy: FaultyProxy, mode: str, base: str = "") -> None:
    members = {"mode": mode, "interval": OFTEN, "credential": {"token": TOKEN}, "dialect": client.api.dialect}
    client.registry.done("PUT", "/-/links/p", {"url": proxy.url + (base or client.api.base), **members})


def _state(client: Client) -> str:
    return str(client.registry.status("p")["state"])


@pytest.mark.parametrize("case", FAULTS)
def test_a_push_writes_later_what_a_fault_kept_back(tmp_path: Path, case: str) -> None:
    """LEG-902, LEG-913: only an answer of the API says that a write is done or refused; else the link retries."""
    with running_registries(tmp_path, SR, "a", "b") as (a, b), faulty_proxy(b.registry.url) as proxy:
        a.group("g")
        a.added("g", "changed", b"1", b"2")
        a.added("g", "deleted", b"3")
        _link(a, proxy, "push")
        wait_until_equal(a, b)
        before = b.pairs()
        proxy.fault = FAULTS[case]
        a.delete("g", "deleted")
        a.added("g", "changed", b"4")
        a.group("h")
        a.added("h", "new", b"5")
        until(lambda: _state(a) == "failing")
        assert b.pairs() == before
        proxy.fault = None
        wait_until_equal(a, b)
        until(lambda: _state(a) == "active")
        assert conflicts(a, "p") == {}


def test_a_version_that_the_target_cannot_read_holds_up_nothing(tmp_path: Path) -> None:
    """LEG-907: a push that starts again compares the others, names that one, and goes on."""
    with running_registries(tmp_path, SR, "a", "b") as (a, b), faulty_proxy(b.registry.url) as proxy:
        a.group("g")
        a.added("g", "broken", b"1")
        _link(a, proxy, "push")
        wait_until_equal(a, b)
        a.registry.done("POST", "/-/links/p/actions/pause")
        proxy.fault = lambda method, requested: UNREADABLE if "broken" in requested else None
        a.added("g", "later", b"2")
        a.registry.done("POST", "/-/links/p/actions/resume")
        until(lambda: b.contents("g", "later") == [b"2"])
        until(lambda: len(conflicts(a, "p")) == 1)
        assert _state(a) == "active"


@EACH
@pytest.mark.parametrize("below", ["", "/s"], ids=["group", "definition"])
def test_a_pull_deletes_nothing_that_a_proxy_does_not_find(tmp_path: Path, api: Api, below: str) -> None:
    """LEG-909: a 404 without a problem document deletes no copy while the other registry lists the original."""
    with running_registries(tmp_path, api, "a", "b") as (a, b), faulty_proxy(a.registry.url) as proxy:
        a.group("g")
        a.added("g", "s", b"1")
        _link(b, proxy, "pull")
        wait_until_equal(a, b)
        position = b.registry.head()["position"]
        path = a.path("g", "s") if below else a.path("g")
        proxy.fault = lambda _, requested: NOT_FOUND_PAGE if requested.startswith(path) else None
        until(lambda: _state(b) == "failing")
        proxy.fault = None
        until(lambda: _state(b) == "active")
        assert b.registry.head()["position"] == position


@pytest.mark.parametrize("format", [5, "", "x" * 5000])
def test_a_pull_keeps_copies_of_a_group_whose_format_is_none(tmp_path: Path, format: Any) -> None:
    """LEG-909, LEG-913: a Group that cannot be stored is a conflict of its own; its copies stay, others are copied."""
    with running_registries(tmp_path, SR, "a", "b") as (a, b), faulty_proxy(a.registry.url) as proxy:
        a.group("g")
        a.added("g", "s", b"1")
        _link(b, proxy, "pull")
        wait_until_equal(a, b)
        path = a.path("g")
        broken = json.loads(a.registry.request("GET", path).text) | {"format": format}
        answer = Answer(200, {"content-type": "application/json"}, json.dumps(broken).encode())
        proxy.fault = lambda _, requested: answer if requested == path else None
        a.group("h")
        a.added("h", "t", b"2")
        until(lambda: b.contents("h", "t") == [b"2"])
        until(lambda: conflicts(b, "p") != {})
        assert b.contents("g", "s") == [b"1"] and _state(b) == "active"
        proxy.fault = None
        until(lambda: conflicts(b, "p") == {})
        wait_until_equal(a, b)


def test_a_server_whose_errors_have_no_body(tmp_path: Path) -> None:
    """LEG-902, LEG-909: a link finds out by lists what such a server does not have; Schema Registry 0.2 allows it."""
    with (
        running_registries(tmp_path, SR, "a", "b") as (a, b),
        plain() as server,
        faulty_proxy(root(server), change=bare_404) as proxy,
    ):
        a.group("g%2Fh")
        a.added("g%2Fh", "s", b"1", b"2")
        a.added("g%2Fh", "t", b"3")
        for client, mode in ((a, "push"), (b, "pull")):
            _link(client, proxy, mode, BASE)
        wait_until_equal(a, b)
        a.delete("g%2Fh", "s", 1)
        a.delete("g%2Fh", "t")
        wait_until_equal(a, b)
        a.delete("g%2Fh")
        wait_until_equal(a, b)
        until(lambda: _state(a) == _state(b) == "active")
        assert conflicts(a, "p") == conflicts(b, "p") == {}
