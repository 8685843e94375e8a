"""Links that copy from other registries through the two legacy APIs, as any client of these could."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.projections.replication.compat.clients import MC, NEVER, SR, Api, Client, running_registries
from tests.support.polling import until
from tests.support.registries.restarted import WRITER

#: Both legacy APIs.
EACH = pytest.mark.parametrize("api", [SR, MC], ids=["schemas", "messages"])


def wait_until_equal(one: Client, *others: Client) -> None:
    """Waits until the others have the same URIs and documents as one."""
    until(lambda: all(one.pairs() == other.pairs() for other in others))


def conflicts(target: Client, link: str = "a") -> dict[str, str]:
    """What a link could not copy, and why."""
    found = target.registry.status(link).get("conflicts", [])
    return {each["subject"]: each["reason"] for each in found}


def wait_for_polls(target: Client, link: str = "a", times: int = 2) -> None:
    """Waits until a link has polled the other registry this many more times."""
    seen: set[float] = set()

    def enough() -> bool:
        seen.add(target.registry.status(link)["lastcontact"])
        return len(seen) > times

    until(enough)


def written(target: Client) -> list[str]:
    """The commands of the interactions that links recorded."""
    answer = target.registry.request("GET", "/-/log", headers={"accept": "application/x-ndjson"})
    facts = [json.loads(line) for line in answer.text.splitlines() if '"caller":"links/' in line]
    return [each["command"] for each in facts]


@EACH
def test_everything_comes_over_under_its_uris(api: Api, tmp_path: Path) -> None:
    """LEG-902 to LEG-905, LEG-910, LEG-913: attributes, types and bytes are copied in order, with new numbers, by one
    command for each version.
    """
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        a.group("g%2Fh", description="grüße")
        a.added("g%2Fh", "s", b"gone", description="of the whole")
        a.added("g%2Fh", "s", b"\xff\x00\xef\xbb\xbf", contenttype="Text/X; a=B", description="of this one")
        a.added("g%2Fh", "s", b"A", id="first")
        a.added("g%2Fh", "s", b"B", id="second")
        a.added("g%2Fh", "s", b"A", id="third")
        a.added("g%2Fh", "t", b"T", authority="urn:example:words", id="t1")
        a.delete("g%2Fh", "s", 1)
        b.link("a", a)
        wait_until_equal(a, b)
        base = a.url
        found, given = b.versions("g%2Fh", "s"), a.versions("g%2Fh", "s")
        assert [each.path.rpartition("/")[2] for each in given] == ["2", "3", "4", "5"]
        assert [each.path.rpartition("/")[2] for each in found] == ["1", "2", "3", "4"]
        assert [(each.uri, each.id, each.authority) for each in found] == [(each.uri, each.uri, base) for each in given]
        assert [each[4:] for each in found] == [each[4:] for each in given]
        assert b.document_of(given[0].uri) == b"\xff\x00\xef\xbb\xbf"
        [own] = b.versions("g%2Fh", "t")
        assert (own.uri, own.authority) == ("urn:example:words:t1", "urn:example:words")
        group = [each.registry.done("GET", each.path("g%2Fh")) for each in (a, b)]
        assert [(each["format"], each["description"]) for each in group] == [("Words", "grüße")] * 2
        added = [f"WriteTree POST {api.xid('_~g~2Fh', id)}" for id in "sssst"]
        assert written(b) == [f"WriteTree PUT {api.xid('_~g~2Fh')}", *added]


@EACH
def test_what_is_known_is_not_written_again(api: Api, tmp_path: Path) -> None:
    """LEG-906: a poll without news records nothing, also after a restart."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        a.group("g")
        a.added("g", "s", b"1", b"2")
        b.link("a", a)
        wait_until_equal(a, b)
        wait_for_polls(b)
        before = b.registry.head()
        wait_for_polls(b)
        b.registry.stop()
        b.registry.start()
        wait_for_polls(b)
        assert b.registry.head() == before


def test_definitions_are_what_they_are_for_every_api(tmp_path: Path) -> None:
    """LEG-804, LEG-903: copies of event definitions may have any URI as id, and become the same messages."""
    with running_registries(tmp_path, MC, "a", "b") as (a, b):
        a.group("g", format="CloudEvents")
        documents = [json.dumps({"attributes": {"type": "example", "subject": each}}).encode() for each in ("x", "{y}")]
        a.added("g", "s", documents[0], contenttype="application/json", id="example")
        a.added("g", "s", documents[1], contenttype="application/json")
        b.link("a", a)
        until(lambda: b.contents("g", "s") == documents)
        assert b.pairs() == a.pairs()
        messages = [each.registry.done("GET", "/messagegroups/g/messages/s") for each in (a, b)]
        assert messages[0]["envelopemetadata"] == messages[1]["envelopemetadata"]
        assert messages[1]["envelopemetadata"]["subject"]["value"] == "{y}"


@EACH
def test_names_may_differ(api: Api, tmp_path: Path) -> None:
    """LEG-903: a group has the name here that the link gives it; its versions keep their URIs."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        a.group("theirs")
        a.added("theirs", "s", b"1")
        a.group("other")
        a.added("other", "s", b"2")
        b.link("a", a, names={api.xid("theirs"): api.xid("ours")}, scope={"groups": [api.xid("theirs")]})
        until(lambda: b.versions_by_id())
        [uri] = [each.uri for each in a.versions("theirs", "s")]
        assert {key: [each.uri for each in found] for key, found in b.versions_by_id().items()} == {
            ("ours", "s"): [uri]
        }
        assert b.document_of(uri) == b"1"


@EACH
def test_one_definition_alone(api: Api, tmp_path: Path) -> None:
    """LEG-901: the scope of a link may be a single schema or definition."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        a.group("g")
        a.added("g", "s", b"1")
        a.added("g", "t", b"2")
        b.link("a", a, scope={"resources": [api.xid("g", "t")]})
        until(lambda: b.versions_by_id())
        wait_for_polls(b)
        assert list(b.versions_by_id()) == [("g", "t")]


@EACH
def test_a_taken_name_and_a_taken_uri(api: Api, tmp_path: Path) -> None:
    """LEG-907: a different document under a known URI does not replace the local one; a definition whose name is taken
    gets another name, with the beginning of the hash of its authority.
    """
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        for each, word in ((a, b"theirs"), (b, b"ours")):
            each.group("g")
            each.added("g", "s", word)
            each.added("g", "t", word, authority="urn:example:words", id="urn:example:words:t")
        b.link("a", a)
        renamed = f"s.{sha256(a.url.encode()).hexdigest()[:8]}"
        until(lambda: ("g", renamed) in b.versions_by_id())
        wait_for_polls(b)
        assert b.contents("g", "s") == [b"ours"]
        assert b.contents("g", renamed) == [b"theirs"]
        assert b.document_of("urn:example:words:t") == b"ours"
        [(subject, reason)] = conflicts(b).items()
        assert subject == a.path("g", "t").removeprefix(api.base) + "/versions/1"
        assert "urn:example:words:t" in reason
        assert b.registry.status("a")["conflictscount"] == 1
        b.delete("g", "t")
        until(lambda: b.document_of("urn:example:words:t") == b"theirs")
        wait_for_polls(b)
        assert conflicts(b) == {}


@EACH
def test_a_taken_name_may_be_passed_over(api: Api, tmp_path: Path) -> None:
    """LEG-907: a link with `skip` does not copy what has no free name, and reports it."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        for each, word in ((a, b"theirs"), (b, b"ours")):
            each.group("g")
            each.added("g", "s", word)
        a.group("h", format="Other")
        b.group("h")
        b.link("a", a, conflicts="skip")
        subjects = {each.path("g", "s").removeprefix(api.base) + "/versions/1" for each in (a,)}
        until(lambda: set(conflicts(b)) == subjects | {a.path("h").removeprefix(api.base)})
        assert b.versions_by_id() == {("g", "s"): b.versions("g", "s")}
        assert b.contents("g", "s") == [b"ours"]


@EACH
def test_a_group_of_another_format_gets_another_name(api: Api, tmp_path: Path) -> None:
    """LEG-907: groups of one name are merged if their formats agree; otherwise the copy gets another name."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        a.group("g", format="Other")
        a.added("g", "s", b"1")
        b.group("g")
        b.link("a", a)
        renamed = f"g.{sha256(a.url.encode()).hexdigest()[:8]}"
        until(lambda: b.contents(renamed, "s") == [b"1"])
        assert b.registry.done("GET", b.path("g"))["format"] == "Words"


@EACH
def test_copies_are_read_only_until_their_link_is_gone(api: Api, tmp_path: Path) -> None:
    """LEG-909: clients cannot write a copy over any API while its link exists, but can add definitions next to it."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        a.group("g")
        a.added("g", "s", b"1")
        b.link("a", a, interval=NEVER)
        wait_until_equal(a, b)
        writer = b.registry.client(WRITER)
        xid = api.xid("g", "s")
        refused: list[tuple[str, str, Any, int]] = [
            ("PUT", b.path("g"), {"format": "Words", "description": "mine"}, 409),
            ("DELETE", b.path("g"), None, 409),
            ("DELETE", b.path("g", "s"), None, 409),
            ("DELETE", b.path("g", "s") + "/versions/1", None, 409),
            ("PATCH", xid if api is MC else f"{xid}$details", {"name": "mine"}, 400),
            ("DELETE", xid, None, 400),
            ("PATCH", api.xid("g"), {"name": "mine"}, 400),
        ]
        with writer:
            for method, path, body, status in refused:
                answer = writer.request(method, path, **({} if body is None else {"json": body}))
                assert answer.status_code == status, (method, path, answer.text)
                assert status == 409 or answer.json()["type"].endswith("#readonly")
            assert writer.post(b.path("g", "s"), content=b"2").status_code == 409
            assert writer.post(b.path("g", "mine"), content=b"2").status_code == 200
            b.registry.done("DELETE", "/-/links/a")
            assert writer.post(b.path("g", "s"), content=b"2").status_code == 200
        assert b.contents("g", "s") == [b"1", b"2"]


@EACH
def test_copies_are_deleted_with_their_originals(api: Api, tmp_path: Path) -> None:
    """LEG-909, LEG-913: a link deletes only what it copied itself."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        for group in ("g", "h", "i"):
            a.group(group)
            a.added(group, "s", b"1", b"2", b"3")
        b.link("a", a)
        wait_until_equal(a, b)
        b.added("h", "mine", b"mine")
        a.delete("g", "s", 2)
        a.delete("h")
        a.delete("i")
        until(lambda: set(b.versions_by_id()) == {("g", "s"), ("h", "mine")})
        until(lambda: b.contents("g", "s") == [b"1", b"3"])
        assert b.contents("h", "mine") == [b"mine"]
        a.delete("g", "s")
        until(lambda: set(b.versions_by_id()) == {("h", "mine")})
        assert b.registry.request("GET", b.path("i")).status_code == 404


@EACH
def test_recreated_groups_may_have_another_format(api: Api, tmp_path: Path) -> None:
    """LEG-913, LEG-303: though the format of a Group with members cannot change."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        a.group("g", format="One")
        a.added("g", "s", b"1", format="One")
        a.added("g", "t", b"1", format="One")
        b.link("a", a, interval=NEVER)
        wait_until_equal(a, b)
        a.delete("g")
        a.group("g", format="Other")
        a.added("g", "s", b"1", b"2", format="Other")
        b.registry.stop()
        b.registry.start()
        wait_until_equal(a, b)
        until(lambda: b.contents("g", "s") == [b"1", b"2"])
        assert "conflicts" not in b.registry.status("a")


@EACH
def test_recreated_definitions_are_replaced(api: Api, tmp_path: Path) -> None:
    """LEG-912, LEG-913: copies follow the current state, also if a URI has another document than before."""
    with running_registries(tmp_path, api, "a", "b") as (a, b):
        a.group("g")
        a.added("g", "s", b"1", b"2", b"3")
        b.link("a", a, interval=NEVER)
        wait_until_equal(a, b)
        a.delete("g", "s")
        a.added("g", "s", b"1", b"other", b"3", b"4")
        b.registry.stop()
        b.registry.start()
        wait_until_equal(a, b)
        until(lambda: b.contents("g", "s") == [b"1", b"other", b"3", b"4"])
