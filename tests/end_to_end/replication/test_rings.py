"""Links that would make registries follow each other in a ring are refused: no registry would be writable (LEG-909).

A registry is identified by the interaction that created it, so its URL does not matter.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.polling import until
from tests.support.registries.restarted import TOKEN, Registry, registries, wait_until_equal_logs

_ONE: dict[str, Any] = {"groups": ["/schemagroups/one"]}
_OTHER: dict[str, Any] = {"groups": ["/schemagroups/other"]}


@pytest.fixture(params=["sqlite", "postgresql"])
def databases(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Database URLs by registry name."""
    return {"b": request.getfixturevalue("postgres_url")} if request.param == "postgresql" else {}


def request_link(registry: Registry, id: str, url: str, **members: Any) -> httpx.Response:
    """Creates a link; returns the response."""
    return registry.request("PUT", f"/-/links/{id}", {"url": url, "credential": {"token": TOKEN}, **members})


def check_refused(answer: httpx.Response, *names: str) -> None:
    """Checks that a link was refused because of a ring, with all of these names in the message."""
    assert answer.status_code == 400, answer.text
    detail = answer.json()["title"]
    assert "no registry of this ring could be written to" in detail
    assert all(name in detail for name in names), detail


def has_upstream(registry: Registry, *links: str) -> bool:
    """Whether a registry reports that it follows others over a chain of links, of which the first is its own."""
    found = registry.done("GET", "/-/log/upstream")
    for link in links:
        found = next((each for each in found.get("follows", ()) if each["link"] == link), None)
        if found is None or "registry" not in found:
            return False
    return True


def test_the_second_of_two_links_that_follow_each_other_is_refused(tmp_path: Path, databases: dict[str, Any]) -> None:
    """LEG-909: copies are writable only at their source, so each entity needs a registry that does not copy it."""
    with registries(tmp_path, "a", "b", **databases) as (a, b):
        a.write("one/s/1")
        b.link("from-a", a.url)
        wait_until_equal_logs(a, b)
        check_refused(request_link(a, "from-b", b.url), "the link from-b", b.url, "its link from-a", a.url)
        check_refused(request_link(a, "from-b", b.url.replace("127.0.0.1", "localhost")), "from-a", "from-b")
        check_refused(request_link(a, "from-b", b.url, scope=_ONE), "from-a", "from-b")
        check_refused(request_link(a, "from-b", b.url, mode="receive"), "from-a", "from-b")
        check_refused(request_link(a, "itself", a.url), "itself")
        assert a.done("GET", "/-/links") == []
        a.write("one/s/2")
        wait_until_equal_logs(a, b)
        b.done("POST", "/-/links/from-a/actions/promote")
        b.write("one/s/3")
        a.link("from-b", b.url)
        until(lambda: a.head()["state"] == b.head()["state"])


def test_registries_may_follow_different_groups_of_each_other(tmp_path: Path) -> None:
    """LEG-901, LEG-909: links with disjoint scopes make no ring."""
    with registries(tmp_path, "a", "b") as (a, b):
        b.link("from-a", a.url, scope=_ONE)
        a.link("from-b", b.url, scope=_OTHER)
        a.write("one/s/1")
        b.write("other/s/1")
        until(lambda: b.request("GET", "/schemagroups/one/schemas/s").status_code == 200)
        until(lambda: a.request("GET", "/schemagroups/other/schemas/s").status_code == 200)
        assert a.status("from-b")["state"] == b.status("from-a")["state"] == "active"


def test_a_longer_ring_is_refused(tmp_path: Path) -> None:
    """LEG-909: a ring may include registries to which the last one has no link."""
    with registries(tmp_path, "a", "b", "c") as (a, b, c):
        a.link("from-b", b.url)
        b.link("from-c", c.url)
        until(lambda: has_upstream(a, "from-b", "from-c"))
        check_refused(request_link(c, "from-a", a.url), "from-a", a.url, "from-b", b.url, "from-c", c.url)
        c.write("g/s/1")
        wait_until_equal_logs(c, b)


def test_pushes_that_make_a_ring_are_refused(tmp_path: Path) -> None:
    """LEG-909: the order in which the links are created does not matter."""
    with registries(tmp_path, "a", "b") as (a, b):
        b.link("in", a.url, mode="receive")
        a.link("out", b.url, mode="push", remote="in")
        a.write("g/s/1")
        wait_until_equal_logs(a, b)
        check_refused(request_link(a, "in", b.url, mode="receive"), "the link in follows")
        check_refused(request_link(a, "from-b", b.url), "from-b", "over its link in")
        b.done("DELETE", "/-/links/in")
        a.link("from-b", b.url, scope=_ONE)
        b.link("in", "http://127.0.0.1:1", mode="receive", scope=_ONE)
        until(lambda: "ring" in a.status("out").get("error", ""))
        assert "pushes to" in a.status("out")["error"] and a.status("out")["state"] == "failing"


def test_of_links_made_at_the_same_moment_one_at_most_stays(tmp_path: Path, databases: dict[str, Any]) -> None:
    """LEG-909: the registry that is later finds the other link, and refuses its own."""
    with registries(tmp_path, "a", "b", **databases) as (a, b), ThreadPoolExecutor(2) as pool:
        for _ in range(5):
            pairs = [(a, b), (b, a)]
            answers = list(pool.map(lambda pair: request_link(pair[0], "other", pair[1].url), pairs))
            made = [each for each in answers if each.is_success]
            assert len(made) <= 1
            for (registry, _), answer in zip(pairs, answers, strict=True):
                if answer.is_success:
                    registry.done("DELETE", "/-/links/other")
                else:
                    check_refused(answer, "other", a.url, b.url)
            assert a.done("GET", "/-/links") == b.done("GET", "/-/links") == []
        a.write("g/s/1")
        b.write("h/s/1")


def test_a_ring_made_offline_is_reported_until_a_link_is_deleted(tmp_path: Path) -> None:
    """LEG-909: a link may be created while the other registry is down; later both links report the ring."""
    with registries(tmp_path, "a", "b") as (a, b):
        a.write("g/s/1")
        b.stop()
        a.link("from-b", b.url)
        a.stop()
        b.start()
        b.link("from-a", a.url)
        a.start()
        until(lambda: "from-b" in b.status("from-a").get("error", ""))
        until(lambda: "from-a" in a.status("from-b").get("error", ""))
        assert a.status("from-b")["state"] == b.status("from-a")["state"] == "failing"
        a.done("DELETE", "/-/links/from-b")
        wait_until_equal_logs(a, b)
        until(lambda: b.status("from-a")["state"] == "active")
        a.write("g/s/2")
        wait_until_equal_logs(a, b)


def test_permissions_of_log_upstream(tmp_path: Path) -> None:
    """LEG-901: only callers that may read the log get `/-/log/upstream`."""
    with registries(tmp_path, "a") as (a,):
        found = a.done("GET", "/-/log/upstream")
        assert found == {"registry": a.done("GET", "/-/log?limit=1")[0]["xregcorrelationid"], "follows": []}
        a.link("b", "http://127.0.0.1:1", scope=_ONE)
        follows = [{"url": "http://127.0.0.1:1", "link": "b", "scope": _ONE}]
        assert a.done("GET", "/-/log/upstream") == {**found, "follows": follows}
        with a.client(None) as anonymous:
            assert anonymous.get("/-/log/upstream").status_code == 401
        assert a.request("GET", "/-/log/upstream?asof=1").status_code == 400
