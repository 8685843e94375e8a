"""Cursors of links beyond the end of the log: a link does not trust them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from annals.projections.replication.link_state import LinkStates
from tests.support.polling import until
from tests.support.registries.restarted import Registry, registries, wait_until_equal_logs
from tests.support.registries.standard import use_common_model, wait_until_equal_contents


def set_cursor(registry: Registry, link: str, position: int) -> None:
    """Stores a position as read, in the database of a stopped registry; the state there is unknown."""
    with closing(LinkStates(registry.database)) as states:
        states.update(link, position, readstate={"position": position, "state": "0" * 64})


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
            f'The link "/-/links/out" cannot continue: {b.url} has other states than this registry: it has received the'
            f' log up to position {2**60}, which ends at {a.head()["position"]} here; if its link "in" is for this'
            " registry, repair it there."
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
