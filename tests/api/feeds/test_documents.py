"""`/-/log?documents`: the log with the documents that its events refer to, so that replicas need no other request."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest

from annals.api.feeds import reader
from annals.commands.store.log import Store
from annals.domain.decisions.commands import WriteMethod, WriteTree
from annals.domain.decisions.world import Decision
from annals.domain.registry.events import EntityCreated
from annals.projections.log import json_lines
from tests.api.feeds.streams import Stream, reading, scope
from tests.api.feeds.test_log import NDJSON, TOKENS, as_caller, lines
from tests.support.registries.in_process import BASE, Api, create, serving

FIRST, SECOND = b'{"a":1}', b"\x00\xff second"
NAMES = {sha256(content).hexdigest(): name for content, name in ((FIRST, "first"), (SECOND, "second"))}
#: The lines that `grown` records: `-` for an interaction, the name of a document, the end of an event's stream.
WHOLE = [
    *("-", "/", "/model", "/capabilities"),
    *("-", "/", "d1", "first", "f1", "1", "f2", "1"),
    *("-", "d1", "second", "f3", "1", "first", "f4", "1"),
    *("-", "second", "f1", "first", "1", "2"),
    *("-", "d1", "f2", "1"),
]


def grown(url: str) -> None:
    """Two files with one document; two with one each; a second Version of the first file; the second file deleted."""
    create(url)
    with serving(url) as api:
        api.done("POST", "/dirs/d1/files", {id: {"file": json.loads(FIRST)} for id in ("f1", "f2")})
        as_text, as_base64 = {"file": json.loads(FIRST)}, {"filebase64": "AP8gc2Vjb25k"}
        api.done("POST", "/dirs/d1/files", {"f3": as_base64, "f4": as_text})
        api.done("PUT", "/dirs/d1/files/f1/versions/2", SECOND)
        api.done("DELETE", "/dirs/d1/files/f2")


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    grown(store_url)
    with serving(store_url) as api:
        yield api


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A registry that tests only read."""
    url = f"sqlite:///{tmp_path_factory.mktemp('documents') / 'annals.db'}"
    grown(url)
    with serving(url) as api:
        yield api


def describe_all(found: Any) -> list[str]:
    """Parsed lines, in the form of WHOLE."""
    return [_shown(each) for each in found]


def _shown(line: Any) -> str:
    if "document" in line:
        content = b64decode(line["base64"], validate=True)
        assert line.keys() == {"document", "base64"} and sha256(content).hexdigest() == line["document"]
        return NAMES[line["document"]]
    stream: str = line.get("stream", "-")
    return stream if stream in ("/", "/model", "/capabilities") else stream.rpartition("/")[2]


def test_documents_come_before_what_refers_to_them(api: Api) -> None:
    # EV-79: once in each interaction, which is complete by itself; the other lines are the same as without documents
    found = lines(api, "documents")
    assert describe_all(map(json.loads, found)) == describe_all(api.get("/-/log?documents=true")) == WHOLE
    bare = [line for line in found if not line.startswith(b'{"document":')]
    assert bare == lines(api) == lines(api, "documents=false")


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 100])
def test_pages_keep_documents_with_their_events(read: Api, limit: int) -> None:
    # EV-79: wherever a page begins, the documents of its events are on it, before the events
    path, positions = f"/-/log?documents&limit={limit}", []
    while page := (answer := read.done("GET", path)).json():
        known: set[str] = set()
        for line in page:
            known = set() if "first" in line else known | {line.get("document", "")}
            assert line.get("private", {}).get("document", "") in known | {""}
            positions += [line["position"]] if "position" in line else []
        [path] = re.findall(rf"<{BASE}([^>]*)>;rel=next", answer.headers["link"])
        assert "documents" in path
    assert positions == list(range(1, positions[-1] + 1))
    assert positions == [line["position"] for line in read.get("/-/log") if "position" in line]


def test_a_stream_names_a_position_behind_its_documents(read: Api) -> None:
    # EV-79: a reader that is cut off between a document and its event gets both again
    async def follow() -> None:
        async with reading(read, "/-/log?documents&after=5") as stream:
            found = await stream.until(4)
            names = [(each.last, each.event) for each in found[:4]]
            assert names == [("", "interaction"), ("", "document"), ("6", "EntityCreated:1"), ("7", "EntityCreated:1")]
            assert _shown(json.loads(found[1].data)) == "first"

    read.runner.run(follow())


@pytest.mark.parametrize(
    ("query", "status"),
    [("documents=1", 400), ("documents&documents", 400), ("documents=false", 200), ("documents=", 200)],
)
def test_values_of_the_switch(read: Api, query: str, status: int) -> None:
    assert read.send("GET", f"/-/log?{query}").status_code == status
    assert read.send("GET", f"/-/events?{query}").status_code == 400


def test_documents_go_to_those_who_see_their_events(store_url: str) -> None:
    # entities outside the registry's tree are for admins, and so are their documents
    create(store_url)
    store = Store(store_url, new_id=lambda: "kept")
    digest = sha256(FIRST).hexdigest()
    with store.writing() as tx:
        context = tx.context()
        made = EntityCreated(
            xid="/-/links/l1",
            type="links",
            revision=1,
            epoch=1,
            attributes={},
            private={"document": digest},
            xregcorrelationid=context.xregcorrelationid,
            time=context.now,
        )
        tx.append(Decision((made,), {digest: FIRST}), context, WriteTree("/", {}, WriteMethod.PUT))
    store.close()
    with serving(store_url, tokens=json.dumps(TOKENS)) as api:
        seen = [lines(api, "documents&after=3", **as_caller(token)) for token in ("admin", "read")]
        assert [describe_all(map(json.loads, each)) for each in seen] == [["-", "first", "l1"], []]


def test_a_lost_document_is_left_out(sqlite_url: str) -> None:
    # the log goes on, and a reader can find that the document of an event is missing
    grown(sqlite_url)
    with serving(sqlite_url) as api:
        store = Store(sqlite_url)
        with store.writing() as tx:
            digest = sha256(SECOND).hexdigest()
            tx.connection.exec_driver_sql(f"DELETE FROM document WHERE sha256 = '{digest}'")
        store.close()
        assert describe_all(api.get("/-/log?documents")) == [each for each in WHOLE if each != "second"]


def test_an_import_of_many_documents_comes_in_pieces(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # memory does not grow with an interaction: pieces have a limited size, and so has the set of documents already sent
    create(sqlite_url)
    contents = [f"{number:04}".encode() * 5000 for number in range(60)]
    with serving(sqlite_url) as api:
        files = {f"f{number:02}": {"file": content.decode()} for number, content in enumerate(contents)}
        api.done("POST", "/dirs/d1/files", files)
        pieces: list[bytes] = []

        async def send(message: Any) -> None:
            pieces.append(message.get("body", b""))

        api.runner.run(api.app(scope("/-/log?documents", {"accept": NDJSON}), Stream().receive, send))
        found = [json.loads(line) for line in b"".join(pieces).splitlines()]
        assert len([line for line in found if "document" in line]) == 60
        # The document that fills a piece is the last in it.
        assert max(map(len, pieces)) < reader.MAX_PIECE_BYTES + 40_000
        monkeypatch.setattr(json_lines, "MAX_SENT_DOCUMENTS", 1)
        again = {"x": {"file": FIRST.decode()}, "y": {"file": SECOND.hex()}, "z": {"file": FIRST.decode()}}
        end = api.get("/-/log/head")["position"]
        api.done("POST", "/dirs/d2/files", again)
        documents = [line["document"] for line in api.get(f"/-/log?documents&after={end}") if "document" in line]
        assert len(documents) == 3 and documents[0] == documents[2] != documents[1]
