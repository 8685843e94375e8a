"""History, interactions and differences over HTTP, on each database; complete bodies are compared.

Positions 1 to 5 are the registry and its model. The file is deleted, and created again with its id in another case.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from annals.api.audit.formats import CONTENT_TYPES, TableFormat
from annals.commands.store.log import Store
from annals.projections.database import drivers
from annals.projections.log.reader import Log
from tests.support.registries.in_process import MODEL
from tests.support.registries.requests import BASE, Answer, Registry, Request, serving
from tests.support.stores import schema_of

Json = Any

FILE = "/dirs/d1/files/f1"
REQUESTS = (
    ("PUT", f"{FILE}$details", {"name": "one", "labels": {"a.b": "1"}, "file": {"a": 1}}),  # c1: 6 to 9
    ("PATCH", f"{FILE}$details", {"name": None, "labels": {"a.b": "2", "c": "3"}, "tags": ["x"]}),  # c2: 10, 11
    ("PUT", "/dirs/d2/notes/n", {"name": "x"}),  # c3: 12 to 15
    ("DELETE", FILE, None),  # c4: 16 to 18
    ("PUT", "/dirs/d1/files/F1$details", {"size": 1}),  # c5: 19 to 21
)
#: The last position of each interaction.
ENDS = {"c1": 9, "c2": 11, "c3": 15, "c4": 18, "c5": 21}
DOCUMENT = "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"


class AuditedRegistry:
    """The registry after all of `REQUESTS`."""

    def __init__(self, runner: asyncio.Runner, registry: Registry, url: str) -> None:
        self._runner = runner
        self._registry = registry
        self.url = url

    def send(self, method: str, path: str, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._runner.run(self._registry.send(Request(method, path, headers=named)))

    def get(self, path: str) -> Json:
        answer = self.send("GET", path)
        assert answer.status == 200, answer
        return json.loads(answer.content)

    def positions(self, path: str) -> list[int]:
        return [revision["position"] for revision in self.get(path)]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def audited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedRegistry]:
    """A registry that all tests share, because no test writes."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path_factory.mktemp('audited') / 'annals.db'}"
        else:
            url = stack.enter_context(schema_of(request.getfixturevalue("postgres_server")))
        yield from audited_registry(url)


def audited_registry(url: str) -> Iterator[AuditedRegistry]:
    with asyncio.Runner() as runner:
        context = serving(url, MODEL)
        registry = runner.run(context.__aenter__())
        for step in REQUESTS:
            assert runner.run(registry.ask(Request(*step))).status in (200, 201, 204)
        yield AuditedRegistry(runner, registry, url)
        runner.run(context.__aexit__(None, None, None))


def at(second: int, digits: str = "") -> str:
    return f"2026-01-01T00:00:0{second}{digits}Z"


def facts(second: int, command: str) -> Json:
    """The facts of an interaction of `REQUESTS`."""
    id = {"xregcorrelationid": f"c{second}"}
    return {"time": at(second, ".000000"), "caller": "anonymous", "command": command, **id}


def image(id: str, epoch: int, created: int, modified: int, **attributes: Json) -> Json:
    """The attributes of a Version, which its Resource has too."""
    times = {"createdat": at(created), "modifiedat": at(modified)}
    return {"fileid": id, "versionid": "1", "epoch": epoch, "isdefault": True, **times, "ancestorid": "1", **attributes}


def of_file(id: str, created: int) -> Json:
    """The additional attributes of the Resource."""
    times = {"createdat": at(created), "modifiedat": at(created)}
    default = {"readonly": False, "defaultversionid": "1", "defaultversionsticky": False}
    return {"meta": {"fileid": id, "epoch": 1, **times, **default}, "versionscount": 1}


ONE = image("f1", 1, 1, 1, name="one", labels={"a.b": "1"}, contenttype="application/json")
TWO = image("f1", 2, 1, 2, labels={"a.b": "2", "c": "3"}, tags=["x"], contenttype="application/json")
BACK = image("F1", 1, 5, 5, size=1)
CHANGED = ["epoch", "labels", "modifiedat", "name", "tags"]
WRITE, PATCH = f"WriteTree PUT {FILE}", f"WriteTree PATCH {FILE}"
DELETE, AGAIN = f"DeleteEntities {FILE}", "WriteTree PUT /dirs/d1/files/F1"


def revision(position: int, number: int, action: str, by: Json, **members: Json) -> Json:
    common = {"position": position, "xid": FILE, "type": "dirs.files", "revision": number, "action": action, "epoch": 1}
    return {**common, "changed": [], **by, "last": ENDS[by["xregcorrelationid"]], **members}


REVISIONS = [
    revision(8, 1, "created", facts(1, WRITE)),
    revision(10, 2, "updated", facts(2, PATCH), changed=CHANGED),
    revision(17, 3, "deleted", facts(4, DELETE), reason="deleted"),
    revision(20, 4, "created", facts(5, AGAIN), xid="/dirs/d1/files/F1"),
]
IMAGES = [ONE | of_file("f1", 1), TWO | of_file("f1", 1), None, BACK | of_file("F1", 5)]


def test_the_history_of_what_was_deleted_and_came_back(audited: AuditedRegistry) -> None:
    # EV-24, EV-25, ENT-31: one history for all spellings of an id; each revision names its interaction
    for path in (FILE, "/dirs/d1/files/F1", f"{FILE}/meta", f"{FILE}$details"):
        assert audited.get(f"/-/history{path}") == REVISIONS


def test_images_are_what_the_api_showed(audited: AuditedRegistry) -> None:
    # events have after-images only; the before-image is the after-image of the previous revision
    before = [None, *IMAGES[:2], None]
    both = [row | {"before": b, "after": a} for row, b, a in zip(REVISIONS, before, IMAGES, strict=True)]
    assert audited.get(f"/-/history{FILE}?images") == both
    assert audited.get(f"/-/history{FILE}?images=before,after") == both
    assert audited.get(f"/-/history{FILE}?images=after")[3] == REVISIONS[3] | {"after": IMAGES[3]}
    assert "private" not in json.dumps(both) and "born" not in json.dumps(audited.get("/-/history/?images&below"))


@pytest.mark.parametrize(
    ("path", "positions"),
    [
        ("", [1, 4, 6, 12]),
        ("/", [1, 4, 6, 12]),
        ("/model", [2, 5]),
        ("/modelsource", [2, 5]),
        ("/capabilities", [3]),
        ("/dirs/d1", [7, 16, 19]),
        ("/dirs/d1?below", [7, 8, 9, 10, 11, *range(16, 22)]),
        ("/dirs/d1?below=true", [7, 8, 9, 10, 11, *range(16, 22)]),
        ("/dirs/d1?below=false", [7, 16, 19]),
        ("/dirs", [7, 8, 9, 10, 11, *range(13, 22)]),
        ("/dirs/d1/files/f1/versions", [9, 11, 18, 21]),
        ("/dirs/d1/files/f1/versions/1", [9, 11, 18, 21]),
        ("/?below", [*range(1, 22)]),
        ("/?from=c1&until=c3", [12]),
        ("/?from=2026-01-01T00:00:01Z&until=2026-01-01T00:00:03Z", [12]),
        ("/?from=9&until=15", [12]),
        ("/dirs?from=c2&until=c4&order=desc", [18, 17, 16, 15, 14, 13]),
        (f"{FILE}?order=desc", [20, 17, 10, 8]),
        (f"{FILE}?order=asc&after=9", [10, 17, 20]),
        (f"{FILE}?order=desc&after=17", [10, 8]),
        (f"{FILE}?until=0", []),
        (f"{FILE}?unknown=1", [8, 10, 17, 20]),
        (f"{FILE}?caller=anonymous", [8, 10, 17, 20]),
        (f"{FILE}?caller=nobody", []),
        ("/?below&id=c3&order=desc", [15, 14, 13, 12]),
        ("/dirs?id=c3&caller=anonymous", [13, 14, 15]),
        ("/dirs?id=c3&caller=anonymous&from=15", []),
        (f"{FILE}?id=none", []),
    ],
)
def test_which_revisions(audited: AuditedRegistry, path: str, positions: list[int]) -> None:
    # FLAG-80: revisions after one moment, up to another; moments are positions, times and correlation ids
    assert audited.positions(f"/-/history{path}") == positions


def test_the_link_of_a_page_replaces_its_cursor(audited: AuditedRegistry) -> None:
    # in any encoding of its name; RFC 8288: a ">" in the URL is encoded, because it would end the URL
    answer = audited.send("GET", "/-/history/?limit=1&%61fter=1&x=<>&")
    assert f"<{BASE}/-/history?limit=1&x=%3C%3E&after=4>;rel=next" in answer.headers["link"]


@pytest.mark.parametrize("path", ["/dirs?", "/dirs?order=desc&", f"{FILE}?order=desc&", "/?below&from=4&"])
@pytest.mark.parametrize("limit", [1, 3, 1000])
def test_pages_of_a_history(audited: AuditedRegistry, path: str, limit: int) -> None:
    # each page links to the next one, and all pages together have the whole history
    whole, found = audited.positions(f"/-/history{path}"), list[int]()
    url: str | None = f"/-/history{path}limit={limit}"
    while url:
        answer = audited.send("GET", url)
        rows = json.loads(answer.content)
        assert 0 < len(rows) <= limit
        found += [row["position"] for row in rows]
        links = [link for link in answer.headers["link"].split(", ") if link.endswith(";rel=next")]
        url = links[0].partition(">")[0].removeprefix(f"<{BASE}") if links else None
    assert found == whole


def stored(audited: AuditedRegistry, id: str) -> Json:
    """The hashes of an interaction, from the store."""
    store = Store(audited.url)
    with store.engine.begin() as connection:
        found = Log(drivers.database_of(connection)).interaction(id)
    store.close()
    assert found is not None
    return {"registryurl": BASE, "chain": found.chain.hex(), "state": found.state.hex()}


def test_everything_that_one_request_did(audited: AuditedRegistry) -> None:
    # EV-24, EV-25: all events of an interaction; its id may have any case
    version = f"{FILE}/versions/1"
    group: dict[str, Any] = {"xid": "/dirs/d1", "type": "dirs", "epoch": 2, "action": "updated"}
    gone = {"reason": "deleted", "type": "dirs.files.versions", "epoch": 2}
    expected = {
        **facts(4, DELETE),
        **stored(audited, "c4"),
        "first": 16,
        "last": 18,
        "events": [
            revision(16, 2, **group, by=facts(4, DELETE), changed=["epoch", "files", "filescount", "modifiedat"]),
            REVISIONS[2],
            revision(18, 3, "deleted", facts(4, DELETE), xid=version, **gone),
        ],
    }
    assert audited.get("/-/interactions/c4") == audited.get("/-/interactions/C4") == expected
    with_images = audited.get("/-/interactions/c2?images=after")["events"]
    assert [event["after"] for event in with_images] == [IMAGES[1], TWO]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("", ["before1", "before2", "c1", "c2", "c3", "c4", "c5"]),
        ("order=desc&limit=2", ["c5", "c4"]),
        ("order=desc&after=18&limit=1", ["c3"]),
        ("from=c1&until=2026-01-01T00:00:03Z", ["c2", "c3"]),
        ("caller=anonymous&after=16", ["c4", "c5"]),
        ("caller=nobody", []),
        ("id=c3", ["c3"]),
        ("id=C3&caller=anonymous&until=15", ["c3"]),
        ("id=c3&from=c3", []),
        ("id=none", []),
    ],
)
def test_the_list_of_interactions(audited: AuditedRegistry, query: str, ids: list[str]) -> None:
    # FLAG-80: selected by moments, caller and id, in pages
    assert [each["xregcorrelationid"] for each in audited.get(f"/-/interactions?{query}")] == ids


def test_an_interaction_of_the_list(audited: AuditedRegistry) -> None:
    expected = {**facts(4, DELETE), **stored(audited, "c4"), "first": 16, "last": 18}
    assert audited.get("/-/interactions?from=c3&limit=1") == [expected]


@pytest.mark.parametrize(
    ("count", "xids"), [(1, ["/dirs/d1"]), (2, ["/dirs/d1", FILE]), (9, ["/dirs/d1", FILE, f"{FILE}/versions/1"])]
)
def test_interactions_name_their_first_entities(audited: AuditedRegistry, count: int, xids: list[str]) -> None:
    # UI-95
    assert [each["xids"] for each in audited.get(f"/-/interactions?id=c4&xids={count}")] == [xids]
    answer = audited.send("GET", f"/-/interactions?id=c4&xids={count}&format=csv")
    assert next(csv.DictReader(io.StringIO(answer.content.decode())))["xids"] == " ".join(xids)


def test_pages_of_an_interaction(audited: AuditedRegistry) -> None:
    first = audited.send("GET", "/-/interactions/c4?limit=2")
    assert [each["position"] for each in json.loads(first.content)["events"]] == [16, 17]
    assert f"<{BASE}/-/interactions/c4?limit=2&after=17>;rel=next" in first.headers["link"]
    rest = audited.send("GET", "/-/interactions/c4?limit=2&after=17")
    assert [each["position"] for each in json.loads(rest.content)["events"]] == [18]
    assert "rel=next" not in rest.headers["link"]
    assert audited.send("GET", "/-/interactions/c4?after=18").status == 404


def test_two_moments_of_an_entity(audited: AuditedRegistry) -> None:
    # attributes in dot notation; a missing value has no member; documents are compared by hash
    attributes: list[dict[str, Any]] = [
        {"path": "epoch", "before": 1, "after": 2},
        {"path": "labels['a.b']", "before": "1", "after": "2"},
        {"path": "labels.c", "after": "3"},
        {"path": "modifiedat", "before": at(1), "after": at(2)},
        {"path": "name", "before": "one"},
        {"path": "tags", "after": ["x"]},
    ]
    moments = [
        {"position": 9, "time": at(1, ".000000"), "xregcorrelationid": "c1"},
        {"position": 15, "time": at(3, ".000000"), "xregcorrelationid": "c3"},
    ]
    same = {"changed": False, "before": DOCUMENT, "after": DOCUMENT}
    row = {"xid": FILE, "type": "dirs.files", "change": "changed", "attributes": attributes, "document": same}
    expected = {"xid": FILE, "from": moments[0], "to": moments[1], "entities": [row]}
    assert audited.get(f"/-/diff{FILE}?below=false&from=c1&to=c3") == expected
    turned = audited.get(f"/-/diff{FILE}?below=false&from=c3&to=c1")
    swapped = [{{"before": "after", "after": "before"}.get(k, k): v for k, v in each.items()} for each in attributes]
    assert (turned["from"], turned["to"]) == (moments[1], moments[0])
    assert turned["entities"] == [row | {"attributes": swapped}]


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        (
            "/dirs/d1?from=c2",
            {
                "/dirs/d1": "changed",
                FILE: "deleted",
                "/dirs/d1/files/F1": "created",
                f"{FILE}/versions/1": "deleted",
                "/dirs/d1/files/F1/versions/1": "created",
            },
        ),
        ("/dirs/d1?from=0&to=c1", dict.fromkeys(("/dirs/d1", FILE, f"{FILE}/versions/1"), "created")),
        (f"{FILE}?from=c1&to=c4", dict.fromkeys((FILE, f"{FILE}/versions/1"), "deleted")),
        ("/dirs/d2?from=c3", {}),
        ("/?from=before1&to=before2", {"/": "changed", "/model": "changed"}),
        ("/?from=c2&to=c3&below=false", {"/": "changed"}),
        ("/model?from=c2", {}),
        ("/dirs/d1/files?from=c1&to=c2", dict.fromkeys((FILE, f"{FILE}/versions/1"), "changed")),
        (f"{FILE}?from=0&to=2", {}),
    ],
)
def test_what_became_of_a_subtree(audited: AuditedRegistry, path: str, changes: dict[str, str]) -> None:
    # FLAG-80: entities that were created, deleted or changed between two moments, in tree order
    found = audited.get(f"/-/diff{path}")["entities"]
    assert [(each["xid"], each["change"]) for each in found] == list(changes.items())


def test_a_document_that_comes_and_goes(audited: AuditedRegistry) -> None:
    # a document is compared by its SHA-256
    gone = audited.get(f"/-/diff{FILE}?from=c2&to=c4&below=false")["entities"][0]
    assert gone["document"] == {"changed": True, "before": DOCUMENT, "after": None}


LISTS = ("/-/history/dirs?images", "/-/interactions?order=desc", "/-/interactions/c1", "/-/diff/?from=c1")
NAMES = {"/-/interactions/c1": "events", "/-/diff/?from=c1": "entities"}


@pytest.mark.parametrize("path", LISTS)
def test_ndjson_has_the_contents_of_json(audited: AuditedRegistry, path: str) -> None:
    whole = audited.get(path)
    lines = audited.send("GET", path, accept="application/x-ndjson").content.splitlines()
    assert list(map(json.loads, lines)) == (whole[NAMES[path]] if path in NAMES else whole)


def test_csv_of_a_history(audited: AuditedRegistry) -> None:
    # RFC 4180: CRLF, a fixed header row, quotes only where necessary
    names = "position,time,xid,type,revision,action,reason,epoch,changed,caller,command,xregcorrelationid,last"
    header = f"{names},before,after,authenticator,keyid"
    answer = audited.send("GET", f"/-/history{FILE}?format=csv&until=c4&from=c1&order=desc")
    rows = (
        f"17,{at(4, '.000000')},{FILE},dirs.files,3,deleted,deleted,1,,anonymous,{DELETE},c4,18,,,,",
        f"10,{at(2, '.000000')},{FILE},dirs.files,2,updated,,1,{' '.join(CHANGED)},anonymous,{PATCH},c2,11,,,,",
    )
    assert answer.content.decode() == "".join(f"{line}\r\n" for line in (header, *rows))
    assert audited.send("GET", f"/-/history{FILE}?format=csv&until=0").content.decode() == f"{header}\r\n"
    shown = audited.send("GET", f"/-/history{FILE}?format=csv&images").content.decode()
    found = list(csv.DictReader(io.StringIO(shown, newline="")))
    assert [json.loads(row["after"] or "null") for row in found] == IMAGES


def test_csv_of_interactions(audited: AuditedRegistry) -> None:
    found = audited.send("GET", "/-/interactions?format=csv").content.decode()
    rows = [{name: str(value) for name, value in each.items()} for each in audited.get("/-/interactions")]
    credential = {"authenticator": "", "keyid": ""}
    assert list(csv.DictReader(io.StringIO(found, newline=""))) == [row | credential for row in rows]


def test_csv_of_a_difference(audited: AuditedRegistry) -> None:
    # a row for each attribute, with its values as JSON, and one for a document
    header = "xid,type,change,of,path,before,after"
    answer = audited.send("GET", f"/-/diff{FILE}?from=c1&to=c2&below=false&format=csv")
    rows = (
        "epoch,1,2",
        """labels['a.b'],\"""1""\",\"""2""\"""",
        'labels.c,,"""3"""',
        f'modifiedat,"""{at(1)}""","""{at(2)}"""',
        'name,"""one""",',
        'tags,,"[""x""]"',
    )
    lines = (header, *(f"{FILE},dirs.files,changed,attribute,{row}" for row in rows))
    assert answer.content.decode() == "".join(f"{line}\r\n" for line in lines)
    gone = audited.send("GET", f"/-/diff{FILE}?from=c2&below=false&to=c4&format=csv").content.decode().splitlines()
    assert gone[-1] == f"{FILE},dirs.files,deleted,document,,{DOCUMENT},"


@pytest.mark.parametrize(
    ("accept", "query", "format"),
    [
        (None, "", TableFormat.JSON),
        ("*/*", "", TableFormat.JSON),
        ("text/html", "", TableFormat.JSON),
        ("text/csv", "", TableFormat.CSV),
        ("application/jsonl, text/csv;q=0.5", "", TableFormat.NDJSON),
        ("application/x-ndjson;q=0.1, text/csv;q=0.5, */*;q=0.01", "", TableFormat.CSV),
        ("text/csv;q=0, application/json", "", TableFormat.JSON),
        ("text/csv;q=x", "", TableFormat.JSON),
        ("text/csv", "?format=ndjson", TableFormat.NDJSON),
    ],
)
def test_formats(audited: AuditedRegistry, accept: str | None, query: str, format: TableFormat) -> None:
    # RFC 9110: the preferred type of Accept; the parameter has precedence
    answer = audited.send("GET", f"/-/history/model{query}", **({} if accept is None else {"accept": accept}))
    assert answer.headers["content-type"] == CONTENT_TYPES[format][1].decode()
    assert "accept" in answer.headers["vary"].split(", ")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/-/history/dirs?limit=0", "limit=0"),
        ("/-/history/dirs?limit=1001", "limit=1001"),
        ("/-/history/dirs?limit=x", "limit=x"),
        ("/-/history/dirs?after=-1", "after=-1"),
        ("/-/history/dirs?after=" + "9" * 19, "after="),
        ("/-/history/dirs?order=up", "order=up"),
        ("/-/history/dirs?below=maybe", "below=maybe"),
        ("/-/history/dirs?images=private", "images=private"),
        ("/-/history/dirs?format=xml", "format=xml"),
        ("/-/history/dirs?format=csv&format=json", "format"),
        ("/-/history/dirs?from=22", "from=22"),
        ("/-/history/dirs?until=2027-01-01T00:00:00Z", "until=2027-01-01T00:00:00Z"),
        ("/-/history/dirs?from=%00", "from="),
        ("/-/interactions?caller=%00", "caller="),
        ("/-/interactions?until=nothing", "until=nothing"),
        (f"/-/interactions?after={2**59}", f"after={2**59}"),
        ("/-/interactions?order=desc&after=1000", "after=1000"),
        ("/-/history?after=1000", "after=1000"),
        ("/-/interactions/c1?images=none", "images=none"),
        ("/-/diff/dirs", "from"),
        ("/-/diff/dirs?from=nothing", "from=nothing"),
        ("/-/diff/dirs?from=1&to=2026-13-01T00:00:00Z", "to=2026-13-01T00:00:00Z"),
        # what shows the log itself has no past to show
        ("/-/history?below&asof=5", "asof"),
        ("/-/history/dirs/d1?%61sof=junk", "asof"),
        ("/-/interactions?asof=5", "asof"),
        ("/-/interactions/c1?asof=5", "asof"),
        ("/-/diff/dirs?from=1&asof=5", "asof"),
    ],
)
def test_a_bad_parameter_is_named(audited: AuditedRegistry, path: str, name: str) -> None:
    # FLAG-80: a value that is malformed, unknown or beyond the head, or `asof` elsewhere; the error is problem+json
    answer = audited.send("GET", path)
    assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json")
    problem = json.loads(answer.content)
    assert problem["type"].endswith("#bad_request")
    assert f'"{name}' in problem["args"]["error_detail"]


@pytest.mark.parametrize(
    "path",
    [
        "/-/history/dirs/d9",
        "/-/history/dirs/d1/files/f",
        "/-/history/nothing",
        "/-/history/dirs?below=false",
        "/-/history/dirs//d1",
        "/-/history/dirs/d1/files/f1/meta/x",
        "/-/history/dirs/%00",
        "/-/diff/dirs/d9?from=1",
        "/-/diff/dirs/d1/notes?from=1",
        "/-/interactions/c6",
        "/-/interactions/%00",
        "/-/interactions/c1/events",
    ],
)
def test_what_never_was_is_not_found(audited: AuditedRegistry, path: str) -> None:
    answer = audited.send("GET", path)
    assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.parametrize("path", LISTS)
def test_methods(audited: AuditedRegistry, path: str) -> None:
    # GET, HEAD and OPTIONS, with conditions; no writes
    whole, head = audited.send("GET", path), audited.send("HEAD", path)
    assert (head.status, head.content) == (200, b"")
    assert head.headers["etag"] == whole.headers["etag"]
    assert audited.send("OPTIONS", path).headers["allow"] == "GET, HEAD, OPTIONS"
    assert audited.send("POST", path).status == 405
    assert audited.send("GET", path, if_none_match=whole.headers["etag"]).status == 304
    assert audited.send("GET", path, if_match='"other"').status == 412
    assert audited.send("GET", path, accept="text/csv").headers["etag"] != whole.headers["etag"]
