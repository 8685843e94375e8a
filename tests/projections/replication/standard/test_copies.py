"""Links that copy from servers of the standard API: Annals, and one that shares no code with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.projections.replication.standard.changes import CHANGES, LINK, LONG_AGO, SPACED, check_order_of_versions
from tests.support.polling import until
from tests.support.registries.independent_server import MODEL
from tests.support.registries.restarted import WRITER, Registry, registries
from tests.support.registries.standard import (
    IndependentServer,
    check_logs_stop_growing,
    contents,
    independent_server,
    use_common_model,
    wait_for_polls,
    wait_until_equal_contents,
)

Json = Any
Server = Registry | IndependentServer


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Registry, Registry]]:
    """Two Annals registries with the same types."""
    with registries(tmp_path, "source", "copy") as (source, copy):
        use_common_model(source, copy)
        yield source, copy


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Registry]:
    """An empty Annals registry."""
    with registries(tmp_path, "copy") as (one,):
        yield one


@pytest.fixture(params=["ours", "plain"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A server to copy from."""
    with ExitStack() as stack:
        if request.param == "plain":
            yield stack.enter_context(independent_server())
        else:
            (one,) = stack.enter_context(registries(tmp_path, "source"))
            use_common_model(one)
            yield one


def test_a_full_pull_copies_everything(source: Server, copy: Registry) -> None:
    """LEG-913, LEG-902: attributes, order and documents are copied whole, with ids and times of creation."""
    for _, method, path, body, _ in CHANGES[:-3]:
        source.done(method, path, body)
    copy.link("up", source.url, **LINK)
    wait_until_equal_contents(source, copy)
    check_logs_stop_growing(copy)
    copy.verified()


def test_what_was_changed_here_is_no_copy_of_a_later_link(pair: tuple[Registry, Registry]) -> None:
    """LEG-907, LEG-909: copies of a removed link belong to this registry once they are changed here."""
    source, copy = pair
    source.done("PUT", "/dirs/d", {"name": "source", "files": {"f": {"name": "source"}, "g": {"name": "source"}}})
    copy.link("up", source.url, **LINK)
    wait_until_equal_contents(source, copy)
    copy.done("DELETE", "/-/links/up")
    copy.done("PATCH", "/dirs/d", {"name": "mine"})
    copy.done("PATCH", "/dirs/d/files/f$details", {"name": "mine"})
    copy.done("PUT", "/dirs/d/files/h$details", {})
    source.done("PATCH", "/dirs/d/files/g$details", {"name": "later"})
    other = copy.request("POST", "/-/links", {"id": "up", "url": "https://other.example", **LINK})
    assert (other.status_code, other.json()["pointer"]) == (400, "/id")
    copy.link("up", source.url, **LINK, conflicts="skip")
    until(lambda: copy.done("GET", "/dirs/d/files/g$details")["name"] == "later")
    wait_for_polls(copy)
    assert copy.done("GET", "/dirs/d")["name"] == "mine"
    names = {id: file.get("name") for id, file in copy.done("GET", "/dirs/d/files").items()}
    assert names == {"f": "mine", "g": "later", "h": None}


def test_each_change_at_the_source_is_one_here(source: Server, copy: Registry) -> None:
    """LEG-910: each changed Group or Resource is one command of the link; LEG-913: then both registries are equal."""
    copy.link("up", source.url, **LINK)
    until(lambda: copy.status("up").get("lastcontact"))
    for name, method, path, body, interactions in CHANGES:
        before = copy.ids()
        source.done(method, path, body)
        wait_until_equal_contents(source, copy)
        added = copy.ids()[len(before) :]
        assert (name, len(added)) == (name, interactions)
        callers = {copy.done("GET", f"/-/interactions/{id}")["caller"] for id in added}
        assert callers == {"links/up"}
    check_logs_stop_growing(copy)


@pytest.mark.parametrize("mode", ["createdat", "modifiedat"])
def test_the_order_of_versions_is_copied(pair: tuple[Registry, Registry], mode: str) -> None:
    """P-15/37, ENT-101: the newest Version is that of the source, though repairs of ancestors came after its change."""
    source, copy = pair
    check_order_of_versions(source, copy, mode, lambda: copy.link("up", source.url, **LINK))
    check_logs_stop_growing(copy)


@pytest.mark.long
def test_an_interrupted_pull_resumes(pair: tuple[Registry, Registry]) -> None:
    """LEG-906, LEG-913: a killed process leaves whole Resources, and none of them is copied twice."""
    source, copy = pair
    for number in range(60):
        source.done("PUT", f"/dirs/d/files/f{number}$details", {"versions": {"1": {"filebase64": SPACED}}})
    before = len(copy.ids())
    copy.link("up", source.url, **LINK)
    until(lambda: len(copy.ids()) > before + 3)
    copy.kill()
    copy.start()
    wait_until_equal_contents(source, copy)
    wait_for_polls(copy)
    assert len(copy.ids()) == before + 61
    copy.verified()


def test_a_wrong_source_is_reported_in_the_status(copy: Registry) -> None:
    """LEG-901: the status of a link reports the error response of a server that cannot be copied."""
    with independent_server() as source:
        copy.link("up", f"{source.url}/elsewhere", **LINK)
        until(lambda: copy.status("up")["state"] == "failing")
        assert "/elsewhere/model answers 404" in copy.status("up")["error"]


def test_settings_here_do_not_change_copies(tmp_path: Path) -> None:
    """LEG-913, CSR-712: what Confluent's API keeps for a subject to come does not bind its copy."""
    with registries(tmp_path, "source", "copy") as (source, copy):

        def is_copied(path: str) -> bool:
            return copy.request("GET", path).status_code == 200

        source.done("PUT", "/schemagroups/lab", {})
        copy.link("up", source.url, **LINK)
        until(partial(is_copied, "/schemagroups/lab"))
        copy.done("PUT", "/compat/confluent/config/:.lab:s", {"compatibility": "FULL", "normalize": True})
        for id, name in (("1", "int"), ("2", "string")):
            path = f"/schemagroups/lab/schemas/s/versions/{id}"
            source.done("PUT", f"{path}$details", {"format": "Avro/1.11", "schema": name})
            until(partial(is_copied, path))
        assert "compatibility" not in copy.request("GET", "/schemagroups/lab/schemas/s/meta").json()
        assert copy.request("GET", "/compat/confluent/config/:.lab:s").json()["error_code"] == 40408
        check_logs_stop_growing(copy)


def test_what_was_copied_has_a_history(pair: tuple[Registry, Registry]) -> None:
    """LEG-910: a copy has a history in its own log, though the source's API returns none."""
    source, copy = pair
    source.done("PUT", "/dirs/d", {"name": "first"})
    copy.link("up", source.url, **LINK)
    wait_until_equal_contents(source, copy)
    then = copy.head()["position"]
    source.done("PUT", "/dirs/d", {"name": "second"})
    wait_until_equal_contents(source, copy)
    assert copy.done("GET", f"/dirs/d?asof={then}")["name"] == "first"


@pytest.mark.parametrize(
    ("scope", "names", "there", "missing"),
    [
        ({"groups": ["/dirs/d"]}, {}, ["/dirs/d/files/f", "/dirs/d/notes/n"], ["/dirs/e"]),
        ({"groups": ["/dirs/d"]}, {"/dirs/D": "/dirs/mine"}, ["/dirs/mine/files/f"], ["/dirs/d", "/dirs/e"]),
        ({"resources": ["/dirs/d/files/f"]}, {}, ["/dirs/d/files/f"], ["/dirs/d/notes/n", "/dirs/e"]),
        ({"filters": [{"prefix": {"subject": "/dirs/e"}}]}, {}, ["/dirs/e/files/f"], ["/dirs/d"]),
    ],
    ids=["a Group", "renamed", "a Resource", "a filter"],
)
def test_only_what_is_in_scope_is_copied(
    source: Server, copy: Registry, scope: Json, names: Json, there: list[str], missing: list[str]
) -> None:
    """LEG-901, LEG-903: a link copies only its scope, and may give Groups other names here."""
    for path in ("/dirs/d/files/f$details", "/dirs/d/notes/n", "/dirs/e/files/f$details"):
        source.done("PUT", path, {"name": "it"})
    copy.link("up", source.url, scope=scope, names=names, **LINK)
    until(lambda: copy.status("up").get("lastcontact"))
    assert [copy.request("GET", xid).status_code for xid in (*there, *missing)] == [200] * len(there) + [404] * len(
        missing
    )
    for xid in there:
        old = xid.replace("/mine/", "/d/")
        source.done("DELETE", old)
        until(partial(_is_gone, copy, xid))


def test_a_pointer_points_at_the_copy(pair: tuple[Registry, Registry]) -> None:
    """LEG-903: if a Group has another name here, xrefs into it have that name."""
    source, copy = pair
    source.done("PUT", "/dirs/d/files/f$details", {"name": "it"})
    source.done("PUT", "/dirs/d/files/p$details", {"meta": {"xref": "/dirs/d/files/f"}})
    copy.link("up", source.url, names={"/dirs/d": "/dirs/mine"}, **LINK)
    until(lambda: copy.status("up").get("lastcontact"))
    assert copy.done("GET", "/dirs/mine/files/p/meta")["xref"] == "/dirs/mine/files/f"
    assert copy.done("GET", "/dirs/mine/files/p$details")["name"] == "it"


def test_existing_entities_are_kept(pair: tuple[Registry, Registry]) -> None:
    """LEG-907: a taken name is a conflict: the copy gets another name until the local Resource is deleted."""
    source, copy = pair
    copy.done("PUT", "/dirs/d/files/f$details", {"name": "mine"})
    source.done("PUT", "/dirs/d/files/f$details", {"name": "theirs"})
    source.done("PUT", "/dirs/d/notes/n", {"name": "free"})
    copy.link("up", source.url, **LINK)
    until(lambda: copy.status("up").get("conflicts"))
    conflicts = {each["xid"] for each in copy.status("up")["conflicts"]}
    assert conflicts == {"/dirs/d", "/dirs/d/files/f"}
    (other,) = [id for id in copy.done("GET", "/dirs/d/files") if id != "f"]
    assert other.startswith("f.") and len(other) == 10
    assert copy.done("GET", "/dirs/d/files/f$details")["name"] == "mine"
    assert copy.done("GET", f"/dirs/d/files/{other}$details")["name"] == "theirs"
    assert copy.done("GET", "/dirs/d/notes/n")["name"] == "free"
    check_logs_stop_growing(copy)
    copy.done("DELETE", "/dirs/d/files/f")
    until(lambda: copy.done("GET", "/dirs/d/files").keys() == {"f"})
    assert copy.done("GET", "/dirs/d/files/f$details")["name"] == "theirs"
    check_logs_stop_growing(copy)


def test_a_conflict_may_be_left_out(pair: tuple[Registry, Registry]) -> None:
    """LEG-907: a link with `skip` does not copy a Resource whose name is taken."""
    source, copy = pair
    copy.done("PUT", "/dirs/d/files/f$details", {"name": "mine"})
    source.done("PUT", "/dirs/d/files/f$details", {"name": "theirs"})
    source.done("PUT", "/dirs/d/files/g$details", {"name": "free"})
    copy.link("up", source.url, conflicts="skip", **LINK)
    until(lambda: copy.status("up").get("conflicts"))
    assert copy.done("GET", "/dirs/d/files").keys() == {"f", "g"}
    assert copy.done("GET", "/dirs/d/files/f$details")["name"] == "mine"
    check_logs_stop_growing(copy)


def test_deletions_go_no_further_than_the_link(pair: tuple[Registry, Registry]) -> None:
    """LEG-909: a link does not delete local entities, nor a Group that contains them."""
    source, copy = pair
    source.done("PUT", "/dirs/d/files/f$details", {"name": "theirs"})
    copy.link("up", source.url, **LINK)
    wait_until_equal_contents(source, copy)
    copy.done("PUT", "/dirs/d/files/own$details", {"name": "mine"})
    copy.done("PUT", "/dirs/own", {})
    source.done("DELETE", "/dirs/d")
    until(lambda: copy.done("GET", "/dirs/d/files").keys() == {"own"})
    wait_for_polls(copy)
    assert copy.done("GET", "/dirs").keys() == {"d", "own"}
    assert [each["xid"] for each in copy.status("up")["conflicts"]] == ["/dirs/d"]


#: Writes of a client to a copy, and the status codes of the responses.
WRITES: list[tuple[str, str, Json, int]] = [
    ("PUT", "/dirs/d", {"name": "other"}, 400),
    ("DELETE", "/dirs/d", None, 400),
    ("PUT", "/dirs/d/files/f$details", {"name": "other"}, 400),
    ("PUT", "/dirs/d/files/f/versions/9$details", {}, 400),
    ("PUT", "/dirs/d/files/f/meta", {"deprecated": {}}, 400),
    ("DELETE", "/dirs/d/files/f", None, 400),
    ("PUT", "/dirs/d/files/own$details", {"name": "mine"}, 201),
    ("PUT", "/dirs/other", {}, 201),
]


@pytest.mark.parametrize("freed", ["promoted", "removed"])
def test_copies_are_written_at_their_source(pair: tuple[Registry, Registry], freed: str) -> None:
    """LEG-909: a copy is read-only for clients, and the response names its source; without the link it is writable."""
    source, copy = pair
    source.done("PUT", "/dirs/d/files/f$details", {"name": "theirs"})
    copy.link("up", source.url, **LINK)
    wait_until_equal_contents(source, copy)
    client = copy.client(WRITER)
    for method, path, body, code in WRITES:
        answer = client.request(method, path, json=body) if body is not None else client.request(method, path)
        assert (method, path, answer.status_code) == (method, path, code), answer.text
        if code == 400:
            assert answer.json()["type"].endswith("#readonly")
            assert answer.json()["authority"] == source.url
    if freed == "promoted":
        copy.done("POST", "/-/links/up/actions/promote")
    else:
        copy.done("DELETE", "/-/links/up")
    for method, path, body, _ in (*WRITES[2:5], WRITES[0], *WRITES[5:6], WRITES[1]):
        answer = client.request(method, path, json=body) if body is not None else client.request(method, path)
        assert answer.is_success, answer.text
    client.close()


def both_ways(one: Registry, other: Registry) -> None:
    """Links each registry to the other one."""
    one.link("peer", other.url, **LINK)
    other.link("peer", one.url, **LINK)


def _fill(one: Registry, other: Registry) -> None:
    one.done("PUT", "/dirs/d/files/f$details", {"name": "one's"})
    other.done("PUT", "/dirs/d/files/g$details", {"name": "other's"})


def _change(one: Registry, other: Registry) -> None:
    _fill(one, other)
    both_ways(one, other)
    until(lambda: contents(one).keys() == contents(other).keys() and len(contents(one)) == 5)
    for number in range(3):
        one.done("PUT", "/dirs/d/files/f$details", {"name": f"one's {number}"})
        other.done("PUT", f"/dirs/d/files/g/versions/v{number}$details", {"name": "more"})


def _delete(one: Registry, other: Registry) -> None:
    _change(one, other)
    one.done("DELETE", "/dirs/d/files/f")


@pytest.mark.parametrize("history", [_fill, _change, _delete])
def test_mutual_copies_converge(pair: tuple[Registry, Registry], history: Callable[[Registry, Registry], None]) -> None:
    """LEG-906: no entity returns to its source, even if the source has changed or deleted it."""
    one, other = pair
    history(one, other)
    both_ways(one, other)
    until(lambda: _files(one) == _files(other) and len(_files(one)) == (1 if history is _delete else 2))
    wait_for_polls(one)
    wait_for_polls(other)
    check_logs_stop_growing(one, other)
    assert _files(one) == _files(other)
    assert {name.rpartition("/")[0] for name in _files(one)} == {"/dirs/d/files"}


def test_a_conflict_between_peers_does_not_go_round(pair: tuple[Registry, Registry]) -> None:
    """LEG-906, LEG-907: each has its own file, and the other's under a changed name; neither is copied back."""
    one, other = pair
    one.done("PUT", "/dirs/d/files/f$details", {"name": "one's"})
    other.done("PUT", "/dirs/d/files/f$details", {"name": "other's"})
    both_ways(one, other)
    until(lambda: len(_files(one)) == len(_files(other)) == 2)
    check_logs_stop_growing(one, other)
    assert sorted(_files(one).values()) == sorted(_files(other).values()) == ["one's", "other's"]
    assert _files(one)["/dirs/d/files/f"] == "one's"
    assert _files(other)["/dirs/d/files/f"] == "other's"


def test_a_hub_forwards_entities_unchanged(tmp_path: Path) -> None:
    """LEG-903: over several hops, names, attributes, documents and times of creation are those of the producer."""
    with registries(tmp_path, "producer", "hub", "reader") as (producer, hub, reader), independent_server() as other:
        use_common_model(producer)
        for server, group in ((producer, "d"), (other, "e")):
            content = {"name": "1", "colour": "red", "filebase64": SPACED, "createdat": LONG_AGO}
            server.done("PUT", f"/dirs/{group}/files/f$details", {"versions": {"one": content}})
        hub.link("a", producer.url, **LINK)
        hub.link("b", other.url, **LINK)
        reader.link("hub", hub.url, **LINK)
        until(lambda: len(contents(hub)) == 6)
        wait_until_equal_contents(hub, reader)
        assert contents(reader) == contents(producer) | contents(other)
        producer.done("DELETE", "/dirs/d/files/f")
        until(lambda: contents(reader).keys() == {"/dirs/d"} | contents(other).keys())
        check_logs_stop_growing(hub, reader)


def test_an_unchanged_source_gets_few_requests(copy: Registry) -> None:
    """LEG-913: if a source cannot inline, a poll reads only lists and metas until one of them differs."""
    with independent_server() as source:
        for number in range(5):
            source.done("PUT", f"/dirs/d/files/f{number}$details", {"name": "it"})
        copy.link("up", source.url, **LINK)
        until(lambda: source.requests().count("GET /model") > 5)
        polls = "\n".join(source.requests()).split("GET /model\n")[1:-1]
        assert "/meta" in polls[0]
        files = "GET /dirs/d/files"
        pages = [[files, *(f"{files}/f{number}/meta" for number in page)] for page in ((0, 1), (2, 3), (4,))]
        wanted = ["GET /", "GET /dirs", *(each for page in pages for each in page), "GET /dirs/d/notes"]
        assert [poll.splitlines() for poll in polls[1:4]] == [wanted] * 3
        assert contents(copy) == contents(source)


def test_the_model_comes_along(pair: tuple[Registry, Registry]) -> None:
    """LEG-902, LEG-913: the types of the source are added to the local model; local types stay."""
    source, copy = pair
    own = {"groups": {"boxes": {"singular": "box", "resources": {"things": {"singular": "thing"}}}}}
    copy.done("PUT", "/modelsource", own)
    source.done("PUT", "/dirs/d", {"colour": "red"})
    copy.link("up", source.url, **LINK)
    wait_until_equal_contents(source, copy)
    groups = copy.done("GET", "/modelsource")["groups"]
    assert groups == {**own["groups"], **MODEL["groups"]}
    check_logs_stop_growing(copy)


def test_an_incompatible_model_is_reported(pair: tuple[Registry, Registry]) -> None:
    """LEG-913: if local entities do not comply with the source's model, the status says which and why."""
    source, copy = pair
    copy.done("PUT", "/dirs/mine", {"colour": "red"})
    source.done("PUT", "/modelsource", {"groups": {"dirs": {"singular": "dir", "resources": {}}}})
    copy.link("up", source.url, **LINK)
    until(lambda: copy.status("up").get("conflicts"))
    (conflict,) = copy.status("up")["conflicts"]
    assert conflict["xid"] == "/model"
    assert "non-compliant" in conflict["reason"] and "/dirs/mine" in conflict["reason"]
    assert copy.done("GET", "/dirs/mine")["colour"] == "red"


@pytest.mark.parametrize("scope", [{}, {"groups": ["/dirs/d"]}], ids=["whole", "group"])
def test_a_type_and_its_entities_change_between_two_polls(pair: tuple[Registry, Registry], scope: Json) -> None:
    """LEG-913: copies that do not fit the new model do not keep out the model, nor what they have become."""
    source, copy = pair
    model = source.done("GET", "/modelsource")
    attributes = model["groups"]["dirs"]["resources"]["notes"]["attributes"]
    attributes["size"] = {"type": "integer"}
    source.done("PUT", "/modelsource", model)
    for id in ("one", "two"):
        source.done("PUT", f"/dirs/d/notes/{id}", {"versions": {"1": {"size": 4}, "2": {}}})
    copy.link("up", source.url, **LINK | {"scope": scope} if scope else LINK)
    wait_until_equal_contents(source, copy)
    copy.done("POST", "/-/links/up/actions/pause")
    for id in ("one", "two"):
        source.done("PATCH", f"/dirs/d/notes/{id}/versions/1", {"size": None})
    attributes["size"] = {"type": "string"}
    source.done("PUT", "/modelsource", model)
    source.done("PATCH", "/dirs/d/notes/one/versions/1", {"size": "four"})
    copy.done("POST", "/-/links/up/actions/resume")
    wait_until_equal_contents(source, copy)
    assert "conflicts" not in copy.status("up")


def test_what_has_left_the_scope_is_not_deleted_for_a_model(pair: tuple[Registry, Registry]) -> None:
    """LEG-913: it belongs to this registry, so a model that it does not fit is a conflict, and copies stay too."""
    source, copy = pair
    model = source.done("GET", "/modelsource")
    attributes = model["groups"]["dirs"]["resources"]["notes"]["attributes"]
    attributes["size"] = {"type": "integer"}
    source.done("PUT", "/modelsource", model)
    for group in ("a", "b"):
        source.done("PUT", f"/dirs/{group}/notes/n", {"size": 4})
    copy.link("up", source.url, **LINK)
    wait_until_equal_contents(source, copy)
    copy.link("up", source.url, **LINK | {"scope": {"groups": ["/dirs/a"]}})
    for group in ("a", "b"):
        source.done("PATCH", f"/dirs/{group}/notes/n", {"size": None})
    attributes["size"] = {"type": "string"}
    source.done("PUT", "/modelsource", model)
    until(lambda: "/model" in {each["xid"] for each in copy.status("up").get("conflicts", ())})
    wait_for_polls(copy)
    assert copy.done("GET", "/dirs/b/notes/n")["size"] == 4


def _files(registry: Registry) -> dict[str, str]:
    return {f"/dirs/d/files/{id}": each["name"] for id, each in registry.done("GET", "/dirs/d/files").items()}


def _is_gone(registry: Registry, xid: str) -> bool:
    return registry.request("GET", xid).status_code == 404
