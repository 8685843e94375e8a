"""Links over the standard API through a proxy that answers by itself for a while: they fail, and lose nothing."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from annals.domain.model import compile_model
from annals.projections.outgoing.destination_guard import DestinationGuard
from annals.projections.replication.remote.remote_client import RemoteClient
from annals.projections.replication.standard.source import StandardSource
from tests.projections.replication.standard.changes import LINK, PUSH
from tests.support.faulty_proxy import FAULTS, NOT_FOUND_PAGE, NOT_FOUND_PROBLEM, Answer, bare_404, faulty_proxy
from tests.support.polling import until
from tests.support.registries.independent_server import MODEL
from tests.support.registries.restarted import Registry, registries
from tests.support.registries.standard import (
    check_logs_stop_growing,
    contents,
    independent_server,
    use_common_model,
    wait_until_equal_contents,
)

VERSIONS = {"versions": {"1": {"name": "it"}}}


def _is_failing(registry: Registry, link: str) -> bool:
    return bool(registry.status(link)["state"] == "failing")


def _has(registry: Registry, xid: str) -> bool:
    return registry.request("GET", xid).status_code == 200


@pytest.mark.parametrize("case", FAULTS)
def test_a_push_writes_later_what_a_fault_kept_back(tmp_path: Path, case: str) -> None:
    """LEG-910, LEG-913: only an answer of a registry says that a write is done or refused; else the link retries."""
    with registries(tmp_path, "source", "target") as (source, target), faulty_proxy(target.url) as proxy:
        use_common_model(source, target)
        for name in ("changed", "deleted"):
            source.done("PUT", f"/dirs/d/files/{name}$details", VERSIONS)
        source.link("out", proxy.url, **PUSH)
        wait_until_equal_contents(source, target)
        until(lambda: source.status("out")["position"] == source.head()["position"])
        before = contents(target)
        proxy.fault = FAULTS[case]
        source.done("POST", "/dirs/d/files/changed/versions", {"2": {"name": "new"}})
        source.done("DELETE", "/dirs/d/files/deleted")
        source.done("PUT", "/dirs/d/files/new$details", VERSIONS)
        until(partial(_is_failing, source, "out"))
        assert source.status("out")["position"] < source.head()["position"]
        assert contents(target) == before
        proxy.fault = None
        wait_until_equal_contents(source, target)
        until(lambda: source.status("out")["state"] == "active")
        assert not {"conflicts", "failed"} & source.status("out").keys()


@pytest.mark.parametrize("status", [413, 414, 431])
def test_what_is_too_large_for_a_proxy_keeps_nothing_else_back(tmp_path: Path, status: int) -> None:
    """LEG-910: it will never be taken, so it is a conflict, also without a problem document."""
    with registries(tmp_path, "source", "target") as (source, target), faulty_proxy(target.url) as proxy:
        use_common_model(source, target)
        proxy.fault = lambda method, path: (
            NOT_FOUND_PAGE._replace(status=status) if method != "GET" and "/big" in path else None
        )
        for name in ("a", "big", "c"):
            source.done("PUT", f"/dirs/d/files/{name}$details", VERSIONS)
        source.link("out", proxy.url, **PUSH)
        until(lambda: _has(target, "/dirs/d/files/c"))
        until(lambda: [each["xid"] for each in source.status("out").get("conflicts", ())] == ["/dirs/d/files/big"])
        until(lambda: source.status("out")["state"] == "active")


#: Scopes, and beginnings of the paths that a proxy does not find. An empty path is all of them.
_MISSING: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "all": ({}, ("",)),
    "lists": ({}, ("/export", "/dirs")),
    "Group": ({"groups": ["/dirs/d"]}, ("/dirs/d",)),
    "Group and its list": ({"groups": ["/dirs/d"]}, ("/dirs",)),
}


@pytest.mark.parametrize("case", _MISSING)
def test_a_pull_deletes_nothing_that_a_proxy_does_not_find(tmp_path: Path, case: str) -> None:
    """LEG-909, LEG-913: a 404 without a problem document deletes no copy while the registry lists the original."""
    scope, paths = _MISSING[case]
    with registries(tmp_path, "source", "copy") as (source, copy), faulty_proxy(source.url) as proxy:
        use_common_model(source, copy)
        source.done("PUT", "/dirs/d/files/f$details", VERSIONS)
        copy.link("up", proxy.url, scope=scope, **LINK)
        wait_until_equal_contents(source, copy)
        check_logs_stop_growing(copy)
        position = copy.head()["position"]
        proxy.fault = lambda _, path: NOT_FOUND_PAGE if path.startswith(paths) else None
        until(partial(_is_failing, copy, "up"))
        proxy.fault = None
        until(lambda: copy.status("up")["state"] == "active")
        assert copy.head()["position"] == position


@pytest.mark.parametrize("scope", [{}, {"groups": ["/dirs/d"]}], ids=["whole", "Group"])
def test_a_group_that_is_found_again_is_copied_again(tmp_path: Path, scope: dict[str, Any]) -> None:
    """LEG-909, LEG-913: a registry that has no Group any more, but then the same one, is copied both times."""
    with registries(tmp_path, "source", "copy") as (source, copy), faulty_proxy(source.url) as proxy:
        use_common_model(source, copy)
        source.done("PUT", "/dirs/d/files/f$details", VERSIONS)
        copy.link("up", proxy.url, scope=scope, **LINK)
        wait_until_equal_contents(source, copy)
        check_logs_stop_growing(copy)  # so that the link knows ETags
        proxy.fault = lambda _, path: NOT_FOUND_PROBLEM if path.startswith(("/dirs", "/export")) else None
        until(lambda: not _has(copy, "/dirs/d"))
        proxy.fault = None
        wait_until_equal_contents(source, copy)


def test_a_listed_resource_that_is_found_again_is_read_again() -> None:
    """LEG-913: a Resource that was missing in a list is read again, even if it has not changed."""
    with independent_server() as server, faulty_proxy(server.url) as proxy:
        server.done("PUT", "/dirs/d/files/f$details", VERSIONS)
        with closing(RemoteClient(proxy.url, DestinationGuard("127.0.0.1"))) as remote:
            source = StandardSource(remote)
            source.model, source.types = compile_model(MODEL), ["dirs"]
            assert _read_files(source) == {"/dirs/d/files/f": True}
            assert _read_files(source) == {"/dirs/d/files/f": False}
            proxy.fault = lambda _, path: NOT_FOUND_PROBLEM if path.startswith("/dirs/d/files") else None
            assert _read_files(source) == {}
            proxy.fault = None
            assert _read_files(source) == {"/dirs/d/files/f": True}


def _read_files(source: StandardSource) -> dict[str, bool]:
    """The Resources that a pass lists by xid, and whether it reads them."""
    source.begin_pass()
    groups = source.groups("/") or ()
    return {xid: resource is not None for group in groups for xid, resource in group.resources}


def test_servers_whose_errors_have_no_body(tmp_path: Path) -> None:
    """LEG-902, LEG-909: links find out by lists what such a server does not have, also in several pages."""
    with (
        independent_server() as plain,
        faulty_proxy(plain.url, change=bare_404) as proxy,
        registries(tmp_path, "source", "copy") as (source, copy),
    ):
        use_common_model(source, copy)
        for group in ("a", "b", "c"):
            source.done("PUT", f"/dirs/{group}/files/f$details", VERSIONS)
        source.link("out", proxy.url, **PUSH)
        wait_until_equal_contents(source, plain)
        copy.link("up", proxy.url, scope={"groups": ["/dirs/a", "/dirs/c"]}, **LINK)
        until(lambda: _has(copy, "/dirs/a/files/f$details") and _has(copy, "/dirs/c/files/f$details"))
        source.done("DELETE", "/dirs/a/files/f")
        source.done("DELETE", "/dirs/c")
        wait_until_equal_contents(source, plain)
        until(lambda: not _has(copy, "/dirs/a/files/f$details") and not _has(copy, "/dirs/c"))
        assert _has(copy, "/dirs/a")
        until(lambda: source.status("out")["state"] == copy.status("up")["state"] == "active")
        assert "conflicts" not in source.status("out") | copy.status("up")


def test_documents_behind_a_redirect_of_a_proxy(tmp_path: Path) -> None:
    """LEG-913: a document that cannot be read because of a proxy is no broken entity; the link retries."""
    with independent_server() as plain, faulty_proxy(plain.url) as proxy, registries(tmp_path, "copy") as (copy,):
        use_common_model(copy)
        plain.done("PUT", "/dirs/d/files/f$details", VERSIONS)
        proxy.fault = lambda _, path: Answer(302) if path == "/dirs/d/files/f/versions/1" else None
        copy.link("up", proxy.url, **LINK)
        until(partial(_is_failing, copy, "up"))
        proxy.fault = None
        wait_until_equal_contents(plain, copy)
