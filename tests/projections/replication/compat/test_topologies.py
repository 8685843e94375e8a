"""Peers, hubs and stars over the two legacy APIs: copies, pushes and notifications between several registries."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.projections.replication.compat.clients import NEVER, OFTEN, SR, Api, Client, Version, running_registries
from tests.projections.replication.compat.test_copies import EACH, conflicts, wait_for_polls, wait_until_equal
from tests.support.polling import until
from tests.support.registries.restarted import TOKEN


def origins(client: Client) -> dict[tuple[str, str], list[tuple[str, str, bytes]]]:
    """The URI, authority and content of all versions, by the ids of their groups and definitions."""

    def describe(version: Version) -> tuple[str, str, bytes]:
        return version.uri, version.authority or client.url, version.content

    return {key: [describe(version) for version in found] for key, found in client.versions_by_id().items()}


@EACH
def test_peers_have_the_definitions_of_both(api: Api, tmp_path: Path) -> None:
    """LEG-906: two registries copy from each other, and no definition returns to its source."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        for one, other in ((a, b), (b, a)):
            one.link("other", other)
            one.group("shared")
            one.group(f"of-{one.registry.home.name}")
            one.added("shared", f"of-{one.registry.home.name}", b"1", b"2")
        until(lambda: len(a.pairs()) == 4)
        wait_until_equal(a, b)
        heads = [each.registry.head() for each in (a, b)]
        for each in (a, b):
            wait_for_polls(each, "other", 3)
        assert [each.registry.head() for each in (a, b)] == heads
        a.delete("shared", "of-a")
        until(lambda: len(b.pairs()) == 2)
        wait_for_polls(a, "other", 2)
        assert a.pairs() == b.pairs()


@EACH
def test_a_hub_forwards_definitions_of_other_authorities(api: Api, tmp_path: Path) -> None:
    """Hub: authority and URIs stay the same over several registries, whether pulled or pushed."""
    with running_registries(tmp_path, api, "a", "hub", "b", "c") as (a, hub, b, c):
        a.group("g", description="of a")
        a.added("g", "s", b"1", b"2", description="one")
        hub.link("a", a)
        b.link("hub", hub)
        hub.link("c", c, mode="push")
        wait_until_equal(a, hub, b, c)
        for each in (hub, b, c):
            assert origins(each) == origins(a)
        a.added("g", "s", b"3")
        wait_until_equal(a, hub, b, c)
        a.delete("g", "s", 2)
        wait_until_equal(a, hub, b, c)
        a.delete("g")
        until(lambda: all(each.registry.request("GET", each.path("g")).status_code == 404 for each in (hub, b, c)))


@pytest.mark.long
@EACH
def test_a_star_collects_and_distributes(api: Api, tmp_path: Path) -> None:
    """Star: many sources, a hub, many targets; a name that two sources use gets a suffix from the authority."""
    with running_registries(tmp_path, api, "a1", "a2", "hub", "b1", "b2") as (a1, a2, hub, b1, b2):
        for each in (a1, a2):
            each.group("g")
            each.added("g", "s", each.registry.home.name.encode())
        hub.link("a1", a1)
        until(lambda: hub.contents("g", "s") == [b"a1"])
        hub.link("a2", a2)
        b1.link("hub", hub)
        b2.link("hub", hub)
        renamed = f"s.{sha256(a2.url.encode()).hexdigest()[:8]}"
        until(lambda: hub.contents("g", renamed) == [b"a2"])
        wait_until_equal(hub, b1, b2)
        assert origins(b1) == origins(b2) == origins(hub)
        assert hub.pairs() == a1.pairs() | a2.pairs()
        a1.delete("g")
        until(lambda: list(b1.versions_by_id()) == list(b2.versions_by_id()) == [("g", renamed)])


@EACH
def test_foreign_authorities_can_be_refused(api: Api, tmp_path: Path) -> None:
    """LEG-908: with ANNALS_INBOUND=false, writes with the authority of another registry are forbidden."""
    with (
        running_registries(tmp_path, api, "hub", ANNALS_INBOUND="false") as (hub,),
        running_registries(tmp_path, api, "a") as (a,),
    ):
        hub.group("g")
        for authority, status in ((a.url, 403), ("urn:example:words", 403), (hub.url, 200)):
            assert hub.post("g", "s", b"1", authority=authority).status_code == status
        assert hub.post("g", "t", b"1").status_code == 200
        a.group("h")
        a.added("h", "s", b"1")
        a.link("hub", hub, mode="push")
        until(lambda: "403" in a.registry.status("hub").get("error", ""))
        assert a.registry.status("hub")["state"] == "failing"
        assert set(hub.versions_by_id()) == {("g", "s"), ("g", "t")}


@EACH
def test_a_push_writes_existing_and_new_definitions(api: Api, tmp_path: Path) -> None:
    """LEG-902, LEG-904, LEG-906, LEG-907, LEG-909: versions go in order, once; a push deletes only what it wrote."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        b.group("g")
        b.added("g", "s", b"theirs")
        b.added("g", "t", b"theirs", authority="urn:example:words", id="urn:example:words:t")
        b.added("g", "u", b"same", authority="urn:example:words", id="urn:example:words:u")
        a.group("g", description="not that of the other one")
        a.group("h", description="first")
        a.added("g", "s", b"1", b"2", description="described")
        a.added("g", "t", b"ours", authority="urn:example:words", id="urn:example:words:t")
        a.added("g", "u", b"same", authority="urn:example:words", id="urn:example:words:u")
        a.added("g", "v", b"back", authority=b.url)
        a.link("b", b, mode="push", interval=NEVER)
        renamed = f"s.{sha256(a.url.encode()).hexdigest()[:8]}"
        until(lambda: b.contents("g", renamed) == [b"1", b"2"])
        a.added("h", "s", b"1", b"2", b"3")
        a.registry.done("PUT", a.path("h"), {"format": "Words", "description": "second"})
        until(lambda: b.contents("h", "s") == [b"1", b"2", b"3"])
        until(lambda: b.registry.done("GET", b.path("h")).get("description") == "second")
        assert [each[1:] for each in b.versions("h", "s")] == [
            (each.uri, a.url, each.uri, each.content, each.contenttype, each.descriptions)
            for each in a.versions("h", "s")
        ]
        assert "description" not in b.registry.done("GET", b.path("g"))
        assert b.document_of("urn:example:words:t") == b"theirs"
        assert b.contents("g", "v") == []
        assert list(conflicts(a, "b")) == [f"{api.xid('g', 't')}/versions/1"]
        a.delete("h", "s", 2)
        a.delete("g", "u")
        a.delete("g", "s")
        until(lambda: b.contents("h", "s") == [b"1", b"3"])
        until(lambda: b.contents("g", renamed) == [])
        a.delete("h")
        until(lambda: b.registry.request("GET", b.path("h")).status_code == 404)
        assert set(b.versions_by_id()) == {("g", "s"), ("g", "t"), ("g", "u")}


def _has(client: Client, versions: int) -> bool:
    return len(client.contents("g", "s")) >= versions


@pytest.mark.long
def test_push_resumes_after_kill(tmp_path: Path) -> None:
    """LEG-906: a registry that is killed during a push writes no version twice, and omits none."""
    with running_registries(tmp_path, SR, "a", "b") as (a, b):
        a.group("g")
        a.link("b", b, mode="push")
        for number in range(4):
            a.added("g", "s", *(f"{number} {each}".encode() for each in range(10)))
            until(partial(_has, b, 10 * number + 1))
            a.registry.kill()
            a.registry.start()
        until(lambda: b.contents("g", "s") == a.contents("g", "s"))
        a.delete("g")
        until(lambda: b.registry.request("GET", b.path("g")).status_code == 404)


@EACH
def test_a_killed_push_removes_its_pending_copy_if_the_original_is_deleted(api: Api, tmp_path: Path) -> None:
    """LEG-906, LEG-909: a version that a link was about to write belongs to the link if it turns out to exist."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        a.group("g")
        a.link("b", b, mode="push")
        a.added("g", "s", b"1", b"2")
        until(lambda: b.contents("g", "s") == [b"1", b"2"])
        a.link("b", b, mode="push", enabled=False)
        until(lambda: a.registry.status("b")["state"] == "resting")
        uri = b.versions("g", "s")[1].uri
        with closing(sqlite3.connect(tmp_path / "a" / "annals.db")) as db, db:
            # as it is stored until the response to the request that writes the version arrives
            place = f"/{api.lookup}?uri={quote(uri, safe='')}"
            done = db.execute("UPDATE replication_sent SET place = ? WHERE place LIKE '%/2'", (place,))
            assert done.rowcount == 1
        a.delete("g")
        a.link("b", b, mode="push", enabled=True)
        until(lambda: b.registry.request("GET", b.path("g")).status_code == 404)


@EACH
def test_an_event_triggers_a_pull_of_its_object(api: Api, tmp_path: Path) -> None:
    """LEG-911: a link with the scope of group 5 gets events of it and its contents, and none of group 55."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        for group in ("5", "55"):
            a.group(group)
            a.added(group, "s", b"1")
        b.link("a", a, mode="events", interval=NEVER, scope={"groups": [api.xid("5")]})
        until(lambda: b.contents("5", "s") == [b"1"])
        a.added("55", "s", b"2")
        a.added("5", "s", b"2")
        until(lambda: b.contents("5", "s") == [b"1", b"2"])
        a.registry.done("PUT", a.path("5"), {"format": "Words", "description": "five"})
        until(lambda: b.registry.done("GET", b.path("5")).get("description") == "five")
        a.delete("5", "s", 1)
        until(lambda: b.contents("5", "s") == [b"2"])
        [made] = a.registry.done("GET", "/subscriptions")
        assert (made["source"], made["sink"]) == (a.url, f"{b.registry.url}/-/links/a/events")
        own, below = ({"subject": f"/{api.groups}/5{end}"} for end in ("", "/"))
        [filtered] = made["filters"]
        assert {"exact": own} in filtered["any"]
        assert {"prefix": below} in filtered["any"]
        a.delete("5")
        until(lambda: b.versions_by_id() == {})
        until(lambda: b.registry.request("GET", b.path("5")).status_code == 404)


@EACH
def test_events_may_come_late_twice_or_about_nothing(api: Api, tmp_path: Path) -> None:
    """LEG-912: whatever an event says, a link copies the current state; an event about a missing object is no error."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        a.group("g")
        a.added("g", "s", b"1", b"2")
        b.link("a", a, mode="events", interval=NEVER)
        wait_until_equal(a, b)
        head = b.registry.head()
        child = f"/{api.groups}/g/{api.children}"
        events = [
            ("deleted", f"{child}/s"),
            ("updated", f"{child}/s/versions/1"),
            ("updated", f"{child}/s/versions/1"),
            ("updated", f"{child}/none"),
            ("deleted", f"/{api.groups}/g"),
            ("updated", f"/{api.groups}/none"),
            ("updated", f"/{api.groups}/%zz"),
            ("updated", "/"),
        ]
        shared = {"specversion": "1.0", "source": a.url}
        batch = [
            {**shared, "id": str(id), "type": f"io.cloudevents.{action}.v1", "subject": subject}
            for id, (action, subject) in enumerate(events)
        ]
        last = b.registry.status("a")["lastcontact"]
        headers = {"content-type": "application/cloudevents-batch+json"}
        assert b.registry.request("POST", "/-/links/a/events", batch, headers=headers).status_code == 202
        until(lambda: b.registry.status("a")["lastcontact"] != last)
        assert b.registry.head() == head
        assert b.registry.status("a")["state"] == "active"
        a.added("g", "s", b"3")
        wait_until_equal(a, b)


@EACH
def test_link_state_on_postgresql(api: Api, tmp_path: Path, postgres_url: str) -> None:
    """LEG-906, LEG-911: links store subscriptions and written copies in PostgreSQL as well, and survive a restart."""
    with running_registries(tmp_path, api, "a", "b", databases={"a": postgres_url}) as (a, b):
        b.group("theirs")
        b.added("theirs", "s", b"1")
        a.group("ours")
        a.added("ours", "s", b"1")
        a.link("told", b, mode="events", interval=NEVER, scope={"groups": [api.xid("theirs")]})
        a.link("writes", b, mode="push", interval=NEVER, scope={"groups": [api.xid("ours")]})
        until(lambda: len(a.pairs()) == 2)
        wait_until_equal(a, b)
        a.registry.stop()
        a.registry.start()
        a.added("ours", "s", b"2")
        b.added("theirs", "s", b"2")
        until(lambda: len(a.pairs()) == 4)
        wait_until_equal(a, b)
        a.delete("ours")
        b.delete("theirs")
        until(lambda: a.versions_by_id() == b.versions_by_id() == {})


def test_links_connect_to_permitted_addresses_only(tmp_path: Path) -> None:
    """LEG-1108: links connect to private addresses only if the operator permits them."""
    with (
        running_registries(tmp_path, SR, "a") as (a,),
        running_registries(tmp_path, SR, "b", ANNALS_SINKS_ALLOW="") as (b,),
    ):
        a.group("g")
        b.link("a", a)
        until(lambda: "unless ANNALS_SINKS_ALLOW permits them" in b.registry.status("a").get("error", ""))
        assert b.versions_by_id() == {}
        assert a.url.partition("//")[2].partition(":")[0] not in b.registry.status("a")["error"].partition(": ")[2]


def test_a_group_that_a_link_may_no_longer_read_is_gone_for_it(tmp_path: Path) -> None:
    """ACC-76, LEG-913: copies of groups that the link's caller can no longer read are removed, like deleted groups."""
    tokens = '{"%s": {"name": "root", "role": "admin"}, "narrow": {"name": "n", "groups": %s}}'
    groups = '{"/schemagroups/open": "reader", "/schemagroups/new": "writer"}'
    with (
        running_registries(tmp_path, SR, "a", ANNALS_TOKENS=tokens % (TOKEN, groups)) as (a,),
        running_registries(tmp_path, SR, "b") as (b,),
    ):
        for group in ("open", "closed"):
            a.group(group)
            a.added(group, "s", b"1")
        b.link("a", a)
        wait_until_equal(a, b)
        b.link("a", a, credential={"token": "narrow"}, interval=OFTEN)
        a.added("open", "s", b"2")
        until(lambda: b.contents("open", "s") == [b"1", b"2"])
        until(lambda: {group for group, _ in b.versions_by_id()} == {"open"})
        assert conflicts(b) == {}
