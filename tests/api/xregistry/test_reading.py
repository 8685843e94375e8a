"""Responses to GET: whole bodies in API view and document view, and documents with their headers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from annals.api.http import canonical_header
from annals.projections.database.connections import PostgresReadConnection, SqliteReadConnection
from annals.projections.entities import rows, xref
from annals.projections.entities.view import View
from annals.projections.entities.view_pool import ViewPool
from tests.support.registries.in_process import BASE, MODEL, NOW, Api, create, serving

LINK = "<http://h/r>;rel=xregistry-root"
VERSION_HEADERS = {
    "content-type": "text/plain",
    "link": LINK,
    "cache-control": "no-cache",
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox; default-src 'none'",
    "content-location": f"{BASE}/dirs/d1/files/f1/versions/1",
    "xregistry-fileid": "f1",
    "xregistry-versionid": "1",
    "xregistry-epoch": "1",
    "xregistry-name": "My%20file",
    "xregistry-isdefault": "true",
    "xregistry-labels.a.b": "x",
    "xregistry-createdat": NOW,
    "xregistry-modifiedat": NOW,
    "xregistry-ancestorid": "1",
    "content-disposition": "f1",
    "content-length": "5",
}


def untagged(answer: httpx.Response) -> dict[str, str]:
    """The headers of an answer without its entity tag and the log position that it shows."""
    return {name: value for name, value in answer.headers.items() if name not in ("etag", "annals-position")}


def attributes(xid: str, self: str, **more: Any) -> dict[str, Any]:
    return {"self": self, "xid": xid, "createdat": NOW, "modifiedat": NOW, **more}


def version(self: str = f"{BASE}/dirs/d1/files/f1/versions/1$details", **more: Any) -> dict[str, Any]:
    shown = {"fileid": "f1", "versionid": "1", "epoch": 1, "name": "My file", "isdefault": True, "ancestorid": "1"}
    shown |= {"labels": {"a.b": "x"}, "contenttype": "text/plain"}
    return attributes("/dirs/d1/files/f1/versions/1", self, **shown, **more)


def resource(**more: Any) -> dict[str, Any]:
    url = f"{BASE}/dirs/d1/files/f1"
    nested = {"metaurl": f"{url}/meta", "versionsurl": f"{url}/versions", "versionscount": 1}
    return version(**{"self": f"{url}$details"}) | {"xid": "/dirs/d1/files/f1"} | nested | more


def meta(self: str, defaultversionurl: str) -> dict[str, Any]:
    default = {"defaultversionid": "1", "defaultversionurl": defaultversionurl, "defaultversionsticky": False}
    return attributes("/dirs/d1/files/f1/meta", self, fileid="f1", epoch=1, readonly=False, **default)


def group(self: str = f"{BASE}/dirs/d1", **more: Any) -> dict[str, Any]:
    url = f"{BASE}/dirs/d1"
    nested = {"filesurl": f"{url}/files", "filescount": 1, "notesurl": f"{url}/notes", "notescount": 0}
    return attributes("/dirs/d1", self, dirid="d1", epoch=1) | nested | more


def registry(**more: Any) -> dict[str, Any]:
    own = {"specversion": "1.0-rc4", "registryid": "reg", "epoch": 2}
    return attributes("/", f"{BASE}/", **own) | {"dirsurl": f"{BASE}/dirs", "dirscount": 1} | more


@pytest.fixture
def filled(api: Api) -> Api:
    """A registry with one file, written as a document with headers."""
    sent = {"content_type": "text/plain", "xRegistry_name": "My%20file", "xRegistry_labels.a.b": "x"}
    assert api.send("PUT", "/dirs/d1/files/f1", b"hello", **sent).status_code == 201
    return api


API_META = meta(f"{BASE}/dirs/d1/files/f1/meta", f"{BASE}/dirs/d1/files/f1/versions/1$details")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/", registry()),  # ENT-70: URL and count of every Group type, no maps
        ("/dirs", {"d1": group()}),  # SER-14: keyed by id
        ("/dirs/d1", group()),
        ("/dirs/d1/", group()),  # HTTP-10: a slash at the end is ignored
        ("/dirs/d1/files", {"f1": resource()}),
        ("/dirs/d1/notes", {}),  # SER-10: an empty collection is there
        ("/dirs/d1/files/f1$details", resource()),  # ENT-40, HTTP-40: `self` keeps `$details`
        ("/dirs/d1/files/f1%24details", resource()),  # HTTP-10: segments are decoded
        ("/dirs/d1/files/f1/meta", API_META),
        ("/dirs/d1/files/f1/versions", {"1": version()}),
        ("/dirs/d1/files/f1/versions/1$details", version()),
        ("/dirs/d1/files/f1$details?inline=file", resource(file="hello")),  # ENT-125
        ("/dirs/d1/files/f1/versions/1$details?inline", version(file="hello")),
        ("/dirs/d1/files/f1$details?inline=meta", resource(meta=API_META)),  # FLAG-34: nothing else appears
        ("/dirs/d1/files/f1$details?inline=versions", resource(versions={"1": version()})),
        ("/?inline=dirs", registry(dirs={"d1": group()})),
        ("/dirs/d1?inline=notes", group(notes={})),  # FLAG-34: requested, so it is there
        ("/dirs?inline=files.versions", {"d1": group(files={"f1": resource(versions={"1": version()})})}),
        (
            "/dirs/d1?inline=*",
            group(files={"f1": resource(file="hello", meta=API_META, versions={"1": version(file="hello")})}, notes={}),
        ),
        # SER-17: only the maps
        (
            "/dirs/d1?collections&inline=files",
            {
                name: value
                for name, value in group(files={"f1": resource()}).items()
                if name.startswith(("files", "notes"))
            },
        ),
    ],
)
def test_api_view(filled: Api, path: str, body: Any) -> None:
    # core 8.1: absolute URLs, `$details` where a type has documents
    assert filled.get(path) == body


def pointed(**more: Any) -> dict[str, Any]:
    """f1 in a document view of its collection, meta and versions inlined."""
    return {
        "fileid": "f1",
        "self": "#/f1",
        "xid": "/dirs/d1/files/f1",
        "metaurl": "#/f1/meta",
        "meta": meta("#/f1/meta", "#/f1/versions/1"),
        "versionsurl": "#/f1/versions",
        "versionscount": 1,
        "versions": {"1": version("#/f1/versions/1")},
        **more,
    }


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/dirs/d1/files?doc&inline=meta,versions", {"f1": pointed()}),  # core 8.3
        # ENT-41, SER-2: pointers start at the root of the answer
        ("/dirs/d1/files/f1/versions/1?doc", version("#/")),
        ("/dirs/d1/files/f1/versions?doc", {"1": version("#/1")}),
        # SER-4: entities that are not in the response keep their absolute URLs, with `$details`
        ("/dirs/d1/files/f1/meta?doc", meta("#/", f"{BASE}/dirs/d1/files/f1/versions/1$details")),
        (
            "/dirs/d1/files/f1?doc",
            {
                "fileid": "f1",
                "self": "#/",
                "xid": "/dirs/d1/files/f1",
                "metaurl": f"{BASE}/dirs/d1/files/f1/meta",
                "versionsurl": f"{BASE}/dirs/d1/files/f1/versions",
                "versionscount": 1,
            },
        ),
        ("/dirs/d1?doc", group("#/")),
        ("/dirs/d1?doc&inline=notes", group("#/", notesurl="#/notes", notes={})),
    ],
)
def test_document_view(filled: Api, path: str, body: Any) -> None:
    # core 8.1: pointers into the response, no default Version attributes on a Resource, `$details` is optional
    assert filled.get(path) == body


def test_pointers_escape_tildes(api: Api) -> None:
    # SER-3: an id may have a tilde, which a JSON pointer escapes
    api.done("PUT", "/dirs/a~b", {})
    assert api.get("/dirs?doc")["a~b"]["self"] == "#/a~0b"


def test_an_export_is_a_document_view_of_everything(filled: Api) -> None:
    # FLAG-36: an alias of `/?doc&inline=*,capabilities,modelsource`; `inline` replaces the list
    exported = filled.get("/export")
    assert exported == filled.get("/?doc&inline=*,capabilities,modelsource")
    assert exported["modelsource"] == filled.get("/modelsource")
    assert exported["dirs"]["d1"]["files"]["f1"]["versions"]["1"]["file"] == "hello"
    assert "modelsource" not in filled.get("/export?inline=dirs")


def test_configuration_is_the_same_by_every_route(filled: Api) -> None:
    # CAP-4: inlined or by its own path; FLAG-31: `*` does not include it
    inlined = filled.get("/?inline=model,modelsource,capabilities")
    assert {
        name: filled.get(f"/{name}") for name in ("model", "modelsource", "capabilities")
    }.items() <= inlined.items()
    assert not {"model", "modelsource", "capabilities"} & filled.get("/?inline=*").keys()


def test_the_document_of_a_version(filled: Api) -> None:
    # HTTP-40 to 44: exact bytes, scalars and labels in headers, no Resource-level attributes
    answer = filled.send("GET", "/dirs/d1/files/f1/versions/1")
    own = {"xregistry-self": f"{BASE}/dirs/d1/files/f1/versions/1", "xregistry-xid": "/dirs/d1/files/f1/versions/1"}
    assert (answer.status_code, answer.content, untagged(answer)) == (200, b"hello", VERSION_HEADERS | own)


def test_the_document_of_a_resource(filled: Api) -> None:
    # HTTP-42: its own ids, self and xid, and where its meta and Versions are
    url = f"{BASE}/dirs/d1/files/f1"
    answer = filled.send("GET", "/dirs/d1/files/f1")
    own = {
        "xregistry-self": url,  # ENT-40: no `$details` in a header
        "xregistry-xid": "/dirs/d1/files/f1",
        "xregistry-metaurl": f"{url}/meta",
        "xregistry-versionsurl": f"{url}/versions",
        "xregistry-versionscount": "1",
    }
    assert (answer.status_code, answer.content, untagged(answer)) == (200, b"hello", VERSION_HEADERS | own)


def test_head_is_get_without_its_body(filled: Api) -> None:
    for path in ("/dirs/d1/files/f1", "/dirs/d1", "/"):
        head, get = filled.send("HEAD", path), filled.send("GET", path)
        assert (head.status_code, head.headers, head.content) == (get.status_code, get.headers, b"")
    assert filled.send("HEAD", "/dirs").content == b""


def test_documents_stored_elsewhere_redirect(api: Api) -> None:
    # HTTP-33: 303 to the URL, all headers, no body; a new document is 201 with Location to itself
    made = api.send("PUT", "/dirs/d1/files/f1", b"", xRegistry_fileurl="http://x/y%2520z")
    assert (made.status_code, made.headers["location"]) == (201, f"{BASE}/dirs/d1/files/f1")
    for method in ("GET", "PUT"):
        again = {"xRegistry_fileurl": "http://x/y%2520z"} if method == "PUT" else {}
        answer = api.send(method, "/dirs/d1/files/f1", b"" if again else None, **again)
        assert (answer.status_code, answer.content, answer.headers["location"]) == (303, b"", "http://x/y%20z")
        assert answer.headers["xregistry-fileurl"] == "http://x/y%2520z"


@pytest.mark.parametrize(
    ("contenttype", "content", "shown"),
    [
        ("application/json; charset=utf-8", b'{"a": 1.10}', {"file": {"a": 1.1}}),  # ENT-126: parameters do not count
        ("application/json", b"{bad", {"filebase64": "e2JhZA=="}),  # ENT-126: not valid JSON
        ("application/json", b'{"a":1,"a":2}', {"filebase64": "eyJhIjoxLCJhIjoyfQ=="}),
        ("text/plain", b"h\xc3\xa9", {"file": "hé"}),
        ("text/plain", b"\xff", {"filebase64": "/w=="}),
        ("image/png", b"x", {"filebase64": "eA=="}),
        ("text/plain", b"", {"filebase64": ""}),  # ENT-126: an empty document
    ],
)
def test_documents_in_json(api: Api, contenttype: str, content: bytes, shown: dict[str, Any]) -> None:
    api.done("PUT", "/dirs/d1/files/f1", content, content_type=contenttype)
    answer = api.get("/dirs/d1/files/f1$details?inline=file")
    assert {name: value for name, value in answer.items() if name in ("file", "filebase64")} == shown
    assert answer["contenttype"] == contenttype
    assert api.send("GET", "/dirs/d1/files/f1").content == content  # HTTP-40: exact bytes


def test_no_contenttype_is_no_header(api: Api) -> None:
    # HTTP-43: without a stored content type there is no header
    api.done("PUT", "/dirs/d1/files/f1", b"x")
    assert "content-type" not in api.send("GET", "/dirs/d1/files/f1").headers


def test_numbers_come_back_as_they_were_sent(api: Api) -> None:
    # SER-13: no digit is lost, in JSON and in headers
    api.done("PUT", "/dirs/d1/files/f1$details", b'{"size":123456789012345678901234567890,"rate":1.10}')
    text = api.send("GET", "/dirs/d1/files/f1$details").text
    assert '"size":123456789012345678901234567890,' in text
    assert '"rate":1.10,' in text
    headers = api.send("GET", "/dirs/d1/files/f1").headers
    assert (headers["xregistry-size"], headers["xregistry-rate"]) == ("123456789012345678901234567890", "1.10")


@pytest.mark.parametrize(
    "path",
    [
        *("/nope", "/dirs/d1/nope", "/dirs/D1", "/dirs/no", "/dirs/no/files", "/dirs/d1/files/f1/versions/9"),
        *("/dirs/d1/files/f1/nope", "/dirs/d1/files/f1/versions/1/x", "/dirs/d1/files/f1/meta/x"),
        *("/dirs/d1%2Ffiles/f1", "/dirs/%20"),
    ],
)
def test_what_is_not_there(filled: Api, path: str) -> None:
    # ENT-31, ENT-161, C-8, TRAP-3: 404 for unknown types, ids in another case, missing owners and encoded slashes
    answer = filled.send("GET", path)
    assert answer.status_code == 404
    assert answer.json()["type"].endswith("spec.md#not_found")


def test_urls_follow_the_request_without_a_public_url(sqlite_url: str) -> None:
    # HTTP-1: without a public URL, scheme and Host of the request; a Host that is invalid in a URL is not used
    create(sqlite_url)
    with serving(sqlite_url, public_url=None, hosts="*") as api:
        assert api.get("/")["self"] == "http://h/"
        assert api.send("GET", "/", host='x"y').json()["self"] == "http://h/"


# A list of an owner that does not exist has no state: If-None-Match does not change the 404.
def test_plain_lists_are_found_by_one_statement(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    create(store_url)
    with serving(store_url) as api:
        api.done(
            "PUT", "/dirs/d", {"files": {name: {"versions": {"1": {}, "2": {}}} for name in "ab"}, "notes": {"n": {}}}
        )
        paths = ("/dirs/d/files", "/dirs/d/notes", "/dirs/d/files/a/versions")
        general = [api.get(f"{path}?sort=epoch") for path in paths]
        tag = api.send("GET", paths[0]).headers["etag"]
        with monkeypatch.context() as patched:
            patched.delattr(ViewPool, "view")  # a view makes a transaction, and more than one query
            plain = [api.send("GET", path) for path in paths]
            assert [answer.json() for answer in plain] == general
            assert {answer.headers["etag"] for answer in plain} == {tag}
            assert api.send("GET", paths[0], If_None_Match='"other"').json() == general[0]
            assert api.send("GET", paths[0], If_None_Match=tag).status_code == 304
            assert api.send("GET", paths[0], If_Match='"other"').status_code == 412
        assert api.send("GET", "/dirs/none/files", If_None_Match=tag).status_code == 404
        head = api.send("HEAD", paths[0])
        assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", tag)


@contextmanager
def noted_statements() -> Iterator[list[str]]:
    """The statements that readers run in the block."""
    seen: list[str] = []

    def noting(function: Any) -> Any:
        def noted(db: Any, sql: str, *arguments: Any) -> Any:
            seen.append(sql)
            return function(db, sql, *arguments)

        return noted

    with pytest.MonkeyPatch.context() as patched:
        for reader in (SqliteReadConnection, PostgresReadConnection):
            for name in ("one", "look_up", "all", "stream"):
                patched.setattr(reader, name, noting(getattr(reader, name)))
        yield seen


@pytest.mark.parametrize(
    "path",
    [
        "/dirs/d/files?inline=*",
        "/dirs/d/files?inline=*&limit=90",
        "/dirs/d/files?inline=*&sort=fileid=desc",
        "/export?",
        "/dirs/d/files?inline=*&asof=",
    ],
)
def test_what_is_inlined_takes_no_more_statements_for_more_members(
    store_url: str, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    create(store_url)
    monkeypatch.setattr(canonical_header, "MAX_AGE_SECONDS", 600)  # links may be read again in between otherwise
    with serving(store_url) as api:
        counts: list[int] = []
        for names in (range(1), range(1, 90)):
            files = {f"f{n}": {"contenttype": "application/json", "file": {"a": n}} for n in names}
            written = api.done("POST", "/dirs/d/files", files)
            url = path + (written.headers["xregistry-xregcorrelationid"] if path.endswith("asof=") else "")
            api.done("GET", url)
            with noted_statements() as statements:
                body = api.done("GET", url).content
            assert sum("FROM document" in sql for sql in statements) == 1
            counts.append(len(statements))
        assert counts[0] == counts[1]
        assert all(b'"file":{"a":%d}' % n in body for n in range(90))
        monkeypatch.setattr(View, "small_documents", lambda *_: {})
        assert api.done("GET", url).content == body


@contextmanager
def counted_rows() -> Iterator[list[int]]:
    """For each row of an entity that is read in the block, the thread that reads it."""
    read: list[int] = []
    decompress = rows.decompress_attributes

    def counting(stored: Any) -> str:
        read.append(threading.get_ident())
        return decompress(stored)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rows, "decompress_attributes", counting)
        yield read


POINTED = "/dirs/p/files/p1"
#: The numbers of Resources with an xref, and of the Versions of their target. Both exceed what the few rows of a page
#: and of what it belongs to are.
POINTERS, VERSIONS = 30, 200
FEW = 10


@pytest.fixture(scope="module")
def pointers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A Resource with many Versions, and many Resources of which all but one show it."""
    database = f"sqlite:///{tmp_path_factory.mktemp('pointers')}/registry.db"
    create(database)
    with serving(database) as api:
        api.done("POST", "/dirs/d/files/t/versions", {f"v{n}": {"name": f"n{n}"} for n in range(VERSIONS)})
        pointer = {"meta": {"xref": "/dirs/d/files/t"}}
        api.done("POST", "/dirs/p/files", {f"p{n}": pointer for n in range(POINTERS)})
        api.done("PUT", "/dirs/d/files/other", {})
        api.done("PUT", "/dirs/p/files/p11/meta", {"xref": "/dirs/d/files/other"})
        yield api


@pytest.mark.parametrize(
    ("path", "most"),
    [
        (f"{POINTED}$details", FEW),
        (POINTED, FEW),
        (f"{POINTED}/meta", FEW),
        (f"{POINTED}/versions/v1", FEW),
        (f"{POINTED}/versions/v1$details", FEW),
        (f"{POINTED}/versions/none$details", FEW),
        (f"{POINTED}$details?filter=name=n99", FEW),
        ("/dirs/p/files?limit=1", POINTERS + FEW),
        ("/dirs/p/files?sort=name&limit=1", POINTERS + FEW),
        ("/dirs/p/files?filter=name=n*&limit=1", POINTERS + FEW),
        ("/dirs/p/files", POINTERS + FEW),
        ("/dirs?limit=2&inline=files", POINTERS + FEW),
        (f"{POINTED}?filter=versions.name=n1", VERSIONS + FEW),
        (f"{POINTED}/versions?limit=1", VERSIONS + FEW),
        ("/dirs/p/files?limit=1&inline=versions", POINTERS + VERSIONS + FEW),
        ("/dirs/p/files?inline=versions", POINTERS + VERSIONS + FEW),
        ("/dirs/p/files?filter=versions.name=n1&inline=versions", POINTERS + VERSIONS + FEW),
    ],
)
def test_an_xref_reads_no_more_of_its_target_than_is_shown(pointers: Api, path: str, most: int) -> None:
    # ENT-133
    moment = pointers.send("GET", "/").headers["annals-position"]
    asof = f"{'&' if '?' in path else '?'}asof={moment}"
    with counted_rows() as present:
        answer = pointers.send("GET", path)
    with counted_rows() as past:
        answer_then = pointers.send("GET", path + asof)
    assert answer.status_code == answer_then.status_code == (404 if "none" in path else 200)
    assert 0 < len(present) <= most
    # The past is scanned, and a filter scans it twice: what each Resource shows is looked up by itself.
    assert 0 < len(past) <= most + 3 * POINTERS
    event_loop = threading.get_ident()
    assert max(present.count(event_loop), past.count(event_loop)) <= FEW


@pytest.mark.parametrize("asof", ["", "&asof="])
def test_versions_of_targets_that_are_not_kept_are_read_again(pointers: Api, asof: str) -> None:
    moment = asof and pointers.send("GET", "/").headers["annals-position"]
    path = f"/dirs/p/files?inline=versions{asof}{moment}"
    kept = pointers.done("GET", path).content
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(xref, "MAX_KEPT_VERSIONS", 0)
        with counted_rows() as read:
            assert pointers.done("GET", path).content == kept
    assert len(read) > 2 * VERSIONS


def test_a_list_of_a_type_that_another_process_has_added(sqlite_url: str) -> None:
    create(sqlite_url)
    with serving(sqlite_url) as one, serving(sqlite_url, ids="other") as other:
        assert one.get("/dirs") == {}
        model = {"groups": {"boxes": {"singular": "box", "resources": {"lids": {"singular": "lid"}}}}}
        other.done("PUT", "/modelsource", {"groups": {**MODEL["groups"], **model["groups"]}})
        other.done("PUT", "/boxes/b", {"lids": {"l": {}}})
        assert list(one.get("/boxes/b/lids")) == ["l"]
