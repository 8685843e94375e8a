"""A difference between a replica and its primary is reported, found in few requests, and repaired."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import count, takewhile
from pathlib import Path
from threading import Event

from annals.domain.decisions.commands import DeleteEntities, WriteMethod, WriteTree
from tests.support.html_pages import HtmlPage
from tests.support.polling import until
from tests.support.registries.restarted import registries, wait_until_equal_logs
from tests.support.registries.stray_writes import interactions, request_count, tree_content, write_as_link

SCHEMAS = "/schemagroups/{}/schemas"
FILE = {"format": "Text/1", "schema": "other"}


def test_a_replica_that_differs_is_repaired(tmp_path: Path) -> None:
    # LEG-913: after a repair both registries are equal; LEG-910: a repair is one interaction; its caller is the link
    with registries(tmp_path, "primary", "replica") as (primary, replica):
        primary.fill(6, 20)
        replica.link("primary", primary.url, interval=3600)
        wait_until_equal_logs(primary, replica)
        assert replica.done("POST", "/-/links/primary/actions/check")["status"]["verdict"] == "equal"
        third, fourth, fifth = (SCHEMAS.format(f"group{number}") for number in (3, 4, 5))
        write_as_link(
            replica,
            "primary",
            (
                WriteTree(f"{third}/s7/versions/1", {"name": "stray"}, WriteMethod.PATCH),
                DeleteEntities(f"{fourth}/s1"),
                WriteTree(f"{fifth}/extra/versions/1", dict(FILE), WriteMethod.PUT),
            ),
        )
        before = request_count(primary, "/-/hash")
        status = replica.done("POST", "/-/links/primary/actions/check")["status"]
        entities = primary.done("GET", "/-/hash/")["count"]
        # of n entities, ⌈log16 n⌉ + 2 requests for hashes find the first; the count above is one more
        assert request_count(primary, "/-/hash") - before <= math.ceil(math.log(entities, 16)) + 2 + 1
        assert (status["state"], status["verdict"]) == ("diverged", "differs")
        assert status["difference"]["xid"] == f"{third}/s7"
        assert status["difference"]["here"] != status["difference"]["there"] and "differences" not in status
        # UI-113: the number of entities that a repair changes, and both hashes at the compared position
        status = replica.done("POST", "/-/links/primary/actions/check?count")["status"]
        heads = [registry.head()["state"] for registry in (replica, primary)]
        assert (status["differences"], [status["compared"][name] for name in ("here", "there")]) == (8, heads)

        page = HtmlPage(replica.request("GET", "/ui/links/primary/repair").text)
        assert f"8 entities change, the first of them {third}/s7" in page.main.text
        assert page.buttons == ["Repair"] and all(head in page.main.text for head in heads)

        primary.write("group0/s0/2")  # the replica cannot apply it to its different state
        until(lambda: "differs from" in replica.status("primary").get("error", ""))
        repaired = replica.done("POST", "/-/links/primary/actions/repair")
        assert repaired["repaired"] == 8  # the two Groups, and the three schemas with a Version each
        assert repaired["status"]["repair"]["entities"] == 8 and repaired["status"]["differences"] == 0
        assert repaired["status"]["repair"]["before"] == heads[0]
        assert repaired["status"]["repair"]["after"] == repaired["status"]["compared"]["there"]
        state_text = HtmlPage(replica.request("GET", "/ui/links/primary").text).region("State").text
        assert f"last repair8 hash before the repair{heads[0]}".replace(" ", "") in state_text.replace(" ", "")
        until(lambda: primary.head()["state"] == replica.head()["state"])
        assert tree_content(primary) == tree_content(replica)
        (repair,) = (each for each in interactions(replica) if each["command"].startswith("Repair"))
        assert (repair["caller"], repair["last"] - repair["first"] + 1) == ("links/primary", 8)
        until(lambda: replica.status("primary")["state"] == "active")
        assert replica.status("primary")["verdict"] == "equal"
        assert "difference" not in replica.status("primary") and "error" not in replica.status("primary")
        assert "no findings" in replica.verified()
        assert replica.done("POST", "/-/links/primary/actions/repair")["repaired"] == 0


def test_a_replica_that_differs_says_so(tmp_path: Path) -> None:
    # LEG-913: the comparison of a whole registry that finds a difference says what to do, before the next write
    with registries(tmp_path, "primary", "replica") as (primary, replica):
        primary.write("g/s/1")
        replica.link("primary", primary.url, interval=1)
        wait_until_equal_logs(primary, replica)
        write_as_link(replica, "primary", (DeleteEntities("/schemagroups/g"),))
        until(lambda: replica.status("primary").get("error"))
        assert (replica.status("primary")["state"], replica.status("primary")["error"]) == (
            "diverged",
            f'The link "/-/links/primary" cannot continue: the registry differs from {primary.url}, so it imports'
            " nothing more; a repair makes both equal.",
        )


def test_a_part_is_repaired_and_nothing_else(tmp_path: Path) -> None:
    # LEG-913: for a scope of single Groups only their hashes are compared; the replica's own Groups stay unchanged
    with registries(tmp_path, "primary", "replica") as (primary, replica):
        primary.fill(3, 2)
        replica.write("own/s/1")
        replica.link("part", primary.url, scope={"groups": ["/schemagroups/group1"]}, interval=3600)
        one = "/-/hash/schemagroups/group1"
        until(lambda: primary.done("GET", one)["hash"] == replica.done("GET", one)["hash"])
        until(lambda: replica.status("part")["verdict"] == "equal")
        own = replica.done("GET", "/-/hash/schemagroups/own")["hash"]
        write_as_link(replica, "part", [DeleteEntities("/schemagroups/group1")])
        assert replica.done("GET", "/")["schemagroupscount"] == 1
        status = replica.done("POST", "/-/links/part/actions/check")["status"]
        assert (status["verdict"], status["difference"]["xid"]) == ("differs", "/schemagroups/group1")
        assert status["difference"]["here"] is None
        status = replica.done("POST", "/-/links/part/actions/check?count")["status"]
        assert (status["differences"], status["compared"]["here"]) == (5, "")
        assert status["compared"]["there"] == primary.done("GET", one)["hash"]
        repaired = replica.done("POST", "/-/links/part/actions/repair")
        assert repaired["repaired"] == 5
        assert repaired["status"]["compared"]["here"] == repaired["status"]["compared"]["there"]
        assert primary.done("GET", one)["hash"] == replica.done("GET", one)["hash"]
        assert replica.done("GET", "/")["schemagroupscount"] == 2
        assert replica.done("GET", "/-/hash/schemagroups/own")["hash"] == own
        for each in (primary, replica):
            assert each.request("GET", SCHEMAS.format("group1") + "/s1").text == '"1 1"'
        primary.write("group1/later/1")
        until(lambda: primary.done("GET", one)["hash"] == replica.done("GET", one)["hash"])
        assert "no findings" in replica.verified()


def test_a_part_is_repaired_while_others_write(tmp_path: Path) -> None:
    # LEG-913: writes beside the scope of a link, which go on all the time, do not keep it from being repaired
    with registries(tmp_path, "primary", "replica") as (primary, replica):
        primary.fill(1, 2)
        replica.link("part", primary.url, scope={"groups": ["/schemagroups/group0"]}, interval=3600)
        until(lambda: replica.status("part").get("verdict") == "equal")
        write_as_link(replica, "part", [DeleteEntities("/schemagroups/group0")])
        has_ended = Event()

        def write() -> None:
            for number in takewhile(lambda _: not has_ended.is_set(), count()):
                replica.write(f"own/s{number}/1")

        with ThreadPoolExecutor(1) as threads:
            writing = threads.submit(write)
            until(lambda: replica.request("GET", SCHEMAS.format("own") + "/s5").status_code == 200)
            repaired = replica.request("POST", "/-/links/part/actions/repair")
            has_ended.set()
            writing.result()
        assert repaired.status_code == 200, repaired.text
        group = "/-/hash/schemagroups/group0"
        assert primary.done("GET", group)["hash"] == replica.done("GET", group)["hash"]


def test_a_primary_that_is_away(tmp_path: Path) -> None:
    # Status: the lag is still known; a check or repair reports that the other registry does not respond
    with registries(tmp_path, "primary", "replica") as (primary, replica):
        primary.write("g/s/1")
        replica.link("primary", primary.url)
        wait_until_equal_logs(primary, replica)
        until(lambda: replica.status("primary").get("verdict") == "equal")
        assert replica.status("primary")["lag"] == {"positions": 0, "seconds": 0}
        primary.stop()
        until(lambda: replica.status("primary")["state"] == "failing")
        for action in ("check", "repair"):
            answer = replica.request("POST", f"/-/links/primary/actions/{action}")
            said = f"{primary.url} does not answer: [Errno 111] Connection refused"
            assert (answer.status_code, answer.json()) == (
                502,
                {
                    "type": f"{replica.url}/-/docs#remote_unavailable",
                    "status": 502,
                    "title": f'The other registry of the link "/-/links/primary" cannot be used: {said}.',
                    "subject": "/-/links/primary",
                    "args": {"error_detail": said},
                },
            )
        primary.start()
        until(lambda: replica.status("primary")["state"] == "active")
