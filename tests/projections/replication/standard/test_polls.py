"""Polls of a server of the standard API: what they detect, what they cost, and broken responses."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.projections.replication.standard.changes import LINK
from tests.support.polling import until
from tests.support.registries.restarted import Registry, registries
from tests.support.registries.standard import (
    IndependentServer,
    check_logs_stop_growing,
    contents,
    independent_server,
    use_common_model,
    wait_for_polls,
    wait_until_equal_contents,
)

FILES = "/dirs/d/files"
DEPRECATED = {"deprecated": {"effective": "2030-01-01T00:00:00Z"}}


def count_polls(source: IndependentServer) -> int:
    """The number of polls of a server that have begun."""
    return source.requests().count("GET /model")


def conflicts(copy: Registry) -> dict[str, str]:
    """What the link could not copy, and why."""
    return {each["xid"]: each["reason"] for each in copy.status("up").get("conflicts", ())}


@pytest.mark.parametrize("flags", [(), ("inline",)], ids=["metas one by one", "metas in lists"])
def test_each_poll_detects_a_changed_meta(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """LEG-913: the next poll detects a change of a meta alone, by one request per page, or also one per Resource."""
    with independent_server(*flags) as source, registries(tmp_path, "copy") as (copy,):
        use_common_model(copy)
        for number in range(5):
            source.done("PUT", f"{FILES}/f{number}$details", {"versions": {"1": {"name": "it"}, "2": {"name": "it"}}})
        copy.link("up", source.url, **LINK)
        wait_until_equal_contents(source, copy)
        for number in range(5):
            source.done("PUT", f"{FILES}/f{number}/meta", {"deprecated": {"removal": f"203{number}-01-01T00:00:00Z"}})
            before = count_polls(source)
            until(partial(_has_begun, source, before + 3))
            assert contents(copy) == contents(source)
        sent, before = len(source.requests()), count_polls(source)
        until(partial(_has_begun, source, before + 5))
        each = "\n".join(source.requests()[sent:]).split("GET /model\n")[1:4]
        counts = sorted(len(poll.splitlines()) for poll in each)
        assert counts[:2] == [6 if flags else 6 + 5] * 2
        assert counts[2] <= (6 if flags else 6 + 5 + 5)  # a poll that also reads the Versions
        check_logs_stop_growing(copy)


def test_lists_that_nest_show_every_version(tmp_path: Path) -> None:
    """LEG-913: if lists are inlined, the next poll also detects a change of a Version that is not the default."""
    with independent_server("inline") as source, registries(tmp_path, "copy") as (copy,):
        use_common_model(copy)
        source.done("PUT", f"{FILES}/f$details", {"versions": {"1": {"name": "it"}, "2": {"name": "it"}}})
        copy.link("up", source.url, **LINK)
        wait_until_equal_contents(source, copy)
        for name in ("a", "b"):
            source.done("POST", f"{FILES}/f/versions", {"1": {"name": name}})
            before = count_polls(source)
            until(partial(_has_begun, source, before + 3))
            assert contents(copy) == contents(source)


#: A path of a server that cannot inline, its broken response, and the xid of the conflict that the status reports.
LISTED: list[tuple[str, Any, str]] = [
    (f"{FILES}/bad/meta", {"createdat": "never"}, f"{FILES}/bad"),
    (f"{FILES}/bad/meta", b"\xff no JSON", f"{FILES}/bad"),
    (f"{FILES}/bad/meta", {"fileid": "bad", "compatibility": 5}, f"{FILES}/bad"),
    (f"{FILES}/bad/versions", {"1": {"modifiedat": 5}}, f"{FILES}/bad/versions/1"),
    (f"{FILES}/bad/versions", {"1": "text"}, f"{FILES}/bad/versions/1"),
    (f"{FILES}/bad/versions", {"a b": {}}, f"{FILES}/bad/versions/a b"),
    (f"{FILES}/bad/versions", {"1": {"labels": 5}}, f"{FILES}/bad"),
    (f"{FILES}/bad/versions", {}, f"{FILES}/bad"),
    (f"{FILES}/bad/versions", [], f"{FILES}/bad"),
    (FILES, {"bad": None, "a/b": {}}, f"{FILES}/a/b"),
    (FILES, [], FILES),
    ("/dirs", {"d": {"createdat": 7}}, "/dirs/d"),
    ("/dirs", {"d": [], "new": 5}, "/dirs/new"),
    ("/dirs", b"[1", "/dirs"),
    ("/", b"no JSON", "/"),
]


@pytest.mark.long
def test_what_is_broken_is_passed_over(tmp_path: Path) -> None:
    """LEG-907, LEG-913: the status reports what is broken and why; its copy stays until the source is repaired, and all
    else is copied.
    """
    with independent_server() as source, registries(tmp_path, "copy") as (copy,):
        use_common_model(copy)
        source.done("PUT", f"{FILES}/bad$details", {"versions": {"1": {"name": "it"}}})
        source.done("PUT", f"{FILES}/good$details", {"versions": {"1": {"name": "it"}}})
        copy.link("up", source.url, **LINK)
        wait_until_equal_contents(source, copy)
        for number, (path, body, xid) in enumerate(LISTED):
            before = contents(copy)
            source.say(path, body)
            until(partial(_says, copy, xid))
            assert copy.status("up")["state"] == "active"
            assert contents(copy) == before
            source.done("PUT", f"/dirs/e/notes/n{number}", {"name": "it"})
            source.done("POST", f"{FILES}/bad/versions", {"1": {"name": f"mended {number}"}})
            if path not in ("/dirs", FILES):
                until(partial(_has, copy, f"/dirs/e/notes/n{number}"))
            source.say(path)
            wait_until_equal_contents(source, copy)
            until(lambda: conflicts(copy) == {})
        check_logs_stop_growing(copy)


def test_what_is_broken_has_what_depends_on_it_wait(tmp_path: Path) -> None:
    """LEG-913: a Resource is copied whole or not at all, after its Group; an xref does not wait for its target."""
    with independent_server() as source, registries(tmp_path, "copy") as (copy,):
        use_common_model(copy)
        source.done("PUT", f"{FILES}/bad$details", {"versions": {"1": {"name": "it"}, "2": {"ancestorid": "1"}}})
        source.done("PUT", f"{FILES}/p$details", {"meta": {"xref": f"{FILES}/bad"}})
        source.done("PUT", "/dirs/e/files/f$details", {"versions": {"1": {"name": "it"}}})
        source.say("/dirs", {"d": {}, "e": {"createdat": "never"}})
        source.say(f"{FILES}/bad/versions", {"1": {"createdat": "never"}, "2": {"ancestorid": "1"}})
        copy.link("up", source.url, **LINK)
        until(lambda: conflicts(copy).keys() == {f"{FILES}/bad/versions/1", "/dirs/e"})
        wait_for_polls(copy)
        assert copy.done("GET", FILES).keys() == {"p"}
        assert not _has(copy, "/dirs/e")
        source.say("/dirs")
        source.say(f"{FILES}/bad/versions")
        wait_until_equal_contents(source, copy)
        assert copy.done("GET", f"{FILES}/p/versions").keys() == {"1", "2"}
        until(lambda: conflicts(copy) == {})


TIMES = {"createdat": "2020-01-01T00:00:00Z", "modifiedat": "2020-01-01T00:00:00Z"}
TEXT = "dGV4dA=="


def _file(**members: Any) -> dict[str, Any]:
    """A file as inlined in a response."""
    return {"fileid": "bad", "meta": TIMES, "versions": {"1": {**TIMES, "ancestorid": "1"}}, **members}


def _version(**members: Any) -> dict[str, Any]:
    """A file with one Version that has these members."""
    return _file(versions={"1": {**TIMES, "ancestorid": "1", **members}})


#: What a server inlines as the file `bad`, and the xid of the conflict that the status reports.
NESTED: list[tuple[Any, str]] = [
    (None, f"{FILES}/bad"),
    ("text", f"{FILES}/bad"),
    (_file(meta=5), f"{FILES}/bad"),
    (_file(meta=None), f"{FILES}/bad"),
    (_file(versions=[]), f"{FILES}/bad"),
    (_file(versions={}), f"{FILES}/bad"),
    (_file(versions={"1": None}), f"{FILES}/bad/versions/1"),
    (_version(filebase64="%"), f"{FILES}/bad/versions/1"),
    (_version(createdat=[]), f"{FILES}/bad/versions/1"),
    (_version(name={}, filebase64=TEXT), f"{FILES}/bad"),
]


def test_what_is_broken_in_a_nested_answer_is_passed_over(tmp_path: Path) -> None:
    """LEG-907, LEG-913: the same if one response inlines everything; so for a document that cannot be fetched."""
    with independent_server() as source, registries(tmp_path, "copy") as (copy,):
        use_common_model(copy)
        source.say("/capabilities", {"flags": ["inline"]})

        def nest(bad: Any, name: str) -> None:
            good = {**_version(name=name, filebase64=TEXT), "fileid": "good"}
            group = {**TIMES, "dirid": "d", "files": {"bad": bad, "good": good}, "notes": {}}
            source.say("/", {"xid": "/", "dirs": {"d": group}})

        nest(_version(filebase64=TEXT), "first")
        copy.link("up", source.url, **LINK)
        until(lambda: _has(copy, f"{FILES}/bad") and _has(copy, f"{FILES}/good"))
        for number, (bad, xid) in enumerate(NESTED):
            nest(bad, f"{number}")
            until(partial(_says, copy, xid))
            until(partial(_is_named, copy, f"{number}"))
            assert _has(copy, f"{FILES}/bad")
        nest(_version(modifiedat="2021-01-01T00:00:00Z"), "document")
        until(partial(_says, copy, f"{FILES}/bad/versions/1"))
        assert "404" in conflicts(copy)[f"{FILES}/bad/versions/1"]
        nest(_version(name="mended", filebase64=TEXT), "last")
        until(lambda: conflicts(copy) == {})
        assert copy.done("GET", f"{FILES}/bad$details")["name"] == "mended"


def test_a_push_skips_invalid_responses_of_the_target(tmp_path: Path) -> None:
    """LEG-907: a push skips entities that it cannot compare, and reports them."""
    with independent_server() as target, registries(tmp_path, "source") as (source,):
        use_common_model(source)
        target.say(f"{FILES}/bad/meta", b"no JSON")
        for name in ("bad", "good"):
            source.done("PUT", f"{FILES}/{name}$details", {"versions": {"1": {"name": "it"}}})
        source.link("up", target.url, **LINK, mode="push")
        until(partial(_has, target, f"{FILES}/good$details"))
        until(partial(_says, source, f"{FILES}/bad"))


def _has_begun(source: IndependentServer, poll: int) -> bool:
    return count_polls(source) >= poll


def _says(copy: Registry, xid: str) -> bool:
    return bool(conflicts(copy).get(xid))


def _has(server: Registry | IndependentServer, xid: str) -> bool:
    return server.request("GET", xid).status_code == 200


def _is_named(copy: Registry, name: str) -> bool:
    return bool(copy.done("GET", f"{FILES}/good$details").get("name") == name)
