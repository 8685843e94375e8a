"""Media types, callers, headers and methods of Confluent's API."""

from __future__ import annotations

import gzip
import json
import sqlite3
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from threading import get_ident
from time import thread_time
from typing import Any

import httpx
import pytest
from sqlalchemy import make_url

from annals.api.compat.confluent import routes
from annals.api.compat.confluent.own_port import ConfluentPort, canonical_scope
from annals.api.compat.confluent.paths import BASE
from annals.api.compat.confluent.request_params import parse_object
from annals.api.http.request import Request
from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import Api, create, serving

V1, V0, PLAIN = "application/vnd.schemaregistry.v1+json", "application/vnd.schemaregistry+json", "application/json"
TOKENS = json.dumps(
    {
        "writer": {"name": "wes", "role": "writer"},
        "reader": {"name": "rob", "role": "reader"},
        "lab": {"name": "lea", "groups": {"/schemagroups/lab": "writer"}},
        "nobody": {"name": "nic"},
    }
)
INT = {"schema": '"int"'}


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    create(store_url, default_source())
    with serving(store_url) as served:
        yield served


@pytest.fixture
def guarded(store_url: str) -> Iterator[Api]:
    create(store_url, default_source())
    with serving(store_url, tokens=TOKENS) as served:
        yield served


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, V1),
        ("*/*", V1),
        ("*", V1),
        ("*/json", V1),
        ("application/*", V1),
        (PLAIN, PLAIN),
        (f"{V0}, {PLAIN}", V0),
        (f"{V1};q=0.2, {PLAIN}; q=0.9", PLAIN),
        (f"{PLAIN}; q=0.9, */*; q=0.1", PLAIN),
    ],
)
def test_the_best_media_type_is_chosen(api: Api, accept: str | None, expected: str) -> None:
    # CSR-104
    answer = api.send("GET", f"{BASE}/subjects", **({"accept": accept} if accept else {"accept": ""}))
    assert (answer.status_code, answer.headers["content-type"]) == (200, expected)


def test_other_media_types_are_refused(api: Api) -> None:
    # CSR-104, CSR-105, CSR-106
    refused = api.send("GET", f"{BASE}/subjects", accept="text/html")
    assert (refused.status_code, refused.json()["error_code"]) == (406, 406)
    body = json.dumps(INT).encode()
    other = api.send("POST", f"{BASE}/subjects/s/versions", body, content_type="text/csv")
    assert (other.status_code, other.json()["error_code"]) == (415, 415)
    for content_type in (V1, f"{V0}; charset=utf-8", "application/octet-stream", ""):
        assert api.send("POST", f"{BASE}/subjects/s/versions", body, content_type=content_type).status_code == 200
    utf16 = json.dumps(INT).encode("utf-16")
    assert api.send("POST", f"{BASE}/subjects/s", utf16, content_type=f"{V1}; charset=utf-16").json()["id"] == 1


@pytest.mark.parametrize("charset", ["punycode", "utf-7", "unicode_escape", "zlib", "no\0ne", "none"])
def test_charsets_that_are_refused(api: Api, charset: str) -> None:
    # CSR-105: some of Python's codecs take quadratic time, or make no texts
    started = thread_time()
    answer = api.send("POST", f"{BASE}/subjects/s", b"a" * 300_000, content_type=f"{V1}; charset={charset}")
    assert (answer.status_code, answer.json()["error_code"]) == (400, 400)
    assert thread_time() - started < 1


def test_guids_have_the_form_of_a_uuid(api: Api) -> None:
    # CSR-413: another text is not found, and cannot be imported
    for text in ("%00", "g", "0" * 31, "z" * 32):
        answer = api.send("GET", f"{BASE}/schemas/guids/{text}")
        assert (answer.status_code, answer.json()["error_code"]) == (404, 40403)
    guid = "0A" * 16
    version = {"subject": "s", "version": 1, "id": 1, "guid": None, **INT}
    for wrong in ("\0", guid, 5):
        body = {"source": "x", "subjects": [{"subject": "s", "versions": [{**version, "guid": wrong}], "live": [1]}]}
        [result] = api.done("POST", f"{BASE}/-/import", body).json()["subjects"]
        assert result == {"error_code": 422, "message": "The guid of a version has to be a UUID"}, wrong
    dashed = f"{guid[:8]}-{guid[8:12]}-{guid[12:16]}-{guid[16:20]}-{guid[20:]}"
    body = {"source": "x", "subjects": [{"subject": "s", "versions": [{**version, "guid": dashed}], "live": [1]}]}
    api.done("POST", f"{BASE}/-/import", body)
    assert api.send("GET", f"{BASE}/schemas/guids/{guid}").status_code == 200


def test_a_large_body_is_parsed_beside_other_requests(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    # CSR-1004: 10 MB of exact numbers take seconds
    threads = list[int]()

    def parse(request: Request, content: bytes) -> dict[str, Any]:
        threads.append(get_ident())
        return parse_object(request, content)

    monkeypatch.setattr(routes, "parse_object", parse)
    for numbers in (1, 10_000):
        body = {"source": "x", "subjects": [], "more": [1.5] * numbers}
        assert api.send("POST", f"{BASE}/-/import?dryrun", body).status_code == 200
    assert len(set(threads)) == 2


def test_bodies_may_be_compressed_and_have_a_limit(store_url: str) -> None:
    # CSR-111
    create(store_url, default_source())
    with serving(store_url, compat_body=200) as api:
        packed = gzip.compress(json.dumps(INT).encode())
        answer = api.send("POST", f"{BASE}/subjects/s/versions", packed, content_encoding="gzip", content_type=V1)
        assert answer.status_code == 200
        large = api.send("POST", f"{BASE}/subjects/s/versions", {"schema": "x" * 500})
        assert (large.status_code, large.json()["error_code"]) == (422, 42209)
        assert api.send("POST", f"{BASE}/subjects/s", b"{", content_type=V1).json()["error_code"] == 400


def test_every_error_has_the_form_of_this_api(sqlite_url: str) -> None:
    # CSR-517: serializers read `error_code`, whatever part of the server refuses or fails
    create(sqlite_url, default_source())
    with serving(sqlite_url) as api:
        api.done("POST", f"{BASE}/subjects/s/versions", INT)
        with closing(sqlite3.connect(make_url(sqlite_url).database or "")) as database, database:
            database.execute("DELETE FROM document")
        for path, status in (
            ("/subjects?waitfor=x", 422),
            ("/subjects?waitfor=9999&timeout=0", 503),
            ("/schemas/ids/1", 500),
        ):
            answer = api.send("GET", f"{BASE}{path}")
            assert (answer.status_code, answer.headers["content-type"]) == (status, V1), path
            assert answer.json().keys() == {"error_code", "message"}, path


def test_a_dry_run_of_an_import_foresees_deletions(api: Api) -> None:
    # CSR-1005, CSR-1011: with `deletes`, what this source wrote and no longer has is deleted; a dry run says so
    versions = [{"subject": "s", "version": number, "id": number, **schema(number)} for number in (1, 2, 3)]
    imported = {"source": "x", "subjects": [{"subject": "s", "versions": versions[:2], "live": [1, 2]}]}
    api.done("POST", f"{BASE}/-/import", imported)
    later = {"subjects": [{"subject": "s", "versions": versions[1:], "live": [2, 3]}]}
    for deletes, first in ((False, "kept"), (True, "deleted")):
        body = {"source": "x", "deletes": deletes, **later}
        foreseen = api.done("POST", f"{BASE}/-/import?dryrun", body).json()
        assert foreseen["subjects"][0]["versions"] == {"1": first, "2": "equal", "3": "created"}
    assert api.done("GET", f"{BASE}/subjects/s/versions").json() == [1, 2]
    assert api.done("POST", f"{BASE}/-/import", {"source": "x", "deletes": True, **later}).json() == foreseen
    assert api.done("GET", f"{BASE}/subjects/s/versions").json() == [2, 3]


STATES = [
    # what the source has live in each round, and what is live here afterwards
    ("one after the other", [[1, 2, 3], [2, 3], [3], []], [[1, 2, 3], [2, 3], [3], []]),
    ("from the end", [[1, 2, 3], [1, 2], [1], []], [[1, 2, 3], [1, 2], [1], []]),
    ("soft-deleted at the first copy", [[2, 3], [3], []], [[2, 3], [3], []]),
]


@pytest.mark.parametrize(("rounds", "live"), [row[1:] for row in STATES], ids=[row[0] for row in STATES])
def test_deletions_of_the_source_are_followed(api: Api, rounds: list[list[int]], live: list[list[int]]) -> None:
    # CSR-1011: the copy itself gives a version another ancestor when it deletes that; nobody has changed it here
    assert [imported_live(api, one) for one in rounds] == live


def test_a_version_that_was_changed_here_stays(api: Api) -> None:
    # CSR-1011: also if the copy has changed it before
    assert imported_live(api, [2, 3]) == [2, 3]
    api.done("PATCH", "/schemagroups/default/schemas/s/versions/2$details", {"name": "ours"})
    assert imported_live(api, []) == [2]


def imported_live(api: Api, live: list[int]) -> list[int]:
    """The live versions after an import of three, of which some are live at the source."""
    versions = [
        {"subject": "s", "version": number, "id": number, "deleted": number not in live, **schema(number)}
        for number in (1, 2, 3)
    ]
    body = {"source": "x", "deletes": True, "subjects": [{"subject": "s", "versions": versions, "live": live}]}
    api.done("POST", f"{BASE}/-/import", body)
    answer = api.send("GET", f"{BASE}/subjects/s/versions")
    return list(answer.json()) if answer.status_code == 200 else []


def schema(number: int) -> dict[str, Any]:
    return {"schema": json.dumps({"type": "fixed", "name": "F", "size": number})}


def test_ids_of_requests_and_of_interactions(api: Api) -> None:
    # CSR-114, CSR-904
    assert api.send("GET", f"{BASE}/subjects", x_request_id="mine").headers["x-request-id"] == "mine"
    assert len(api.send("GET", f"{BASE}/subjects").headers["x-request-id"]) == 36
    written = api.send("POST", f"{BASE}/subjects/s/versions", INT, x_request_id="mine")
    assert written.headers["xregistry-xregcorrelationid"] not in ("", "mine")
    repeated = api.send("POST", f"{BASE}/subjects/s/versions", INT)
    assert "xregistry-xregcorrelationid" not in repeated.headers


def test_methods_of_a_path(api: Api) -> None:
    # CSR-115, CSR-106
    allowed = api.send("OPTIONS", f"{BASE}/subjects/s/versions")
    assert (allowed.status_code, allowed.headers["allow"]) == (204, "GET, HEAD, POST, OPTIONS")
    api.send("POST", f"{BASE}/subjects/s/versions", INT)
    head = api.send("HEAD", f"{BASE}/subjects/s/versions")
    assert (head.status_code, head.content) == (200, b"")
    assert api.send("PUT", f"{BASE}/subjects/s/versions", INT).headers["allow"] == "GET, HEAD, POST, OPTIONS"


def test_members_for_newer_clients(api: Api) -> None:
    # CSR-113
    api.send("POST", f"{BASE}/subjects/s/versions", INT)
    plain = api.get(f"{BASE}/subjects/s/versions/1")
    full = api.send("GET", f"{BASE}/subjects/s/versions/1", confluent_accept_unknown_properties="true").json()
    assert "schemaType" not in plain and "guid" in plain
    assert (full["schemaType"], full["deleted"], full["ts"]) == ("AVRO", False, 1767323045000)
    assert "ts" not in plain
    api.done("PUT", "/schemagroups/default/schemas/shown/meta", {"xref": "/schemagroups/default/schemas/s"})
    api.done("DELETE", f"{BASE}/subjects/s/versions/1")
    accepts = {"confluent_accept_unknown_properties": "true"}
    deleted = api.send("GET", f"{BASE}/subjects/s/versions/1?deleted=true", **accepts).json()
    assert (deleted["deleted"], deleted["ts"]) == (True, full["ts"])
    assert api.send("POST", f"{BASE}/subjects/t/versions", INT, **accepts).json()["ts"] == full["ts"]


def basic(token: str) -> str:
    return "Basic " + b64encode(f"anyone:{token}".encode()).decode()


def test_the_password_of_basic_is_the_token(guarded: Api) -> None:
    # CSR-116, CSR-907
    path = f"{BASE}/subjects/s/versions"
    assert guarded.send("POST", path, INT, authorization=basic("writer")).status_code == 200
    assert guarded.send("GET", path, authorization="Bearer reader").json() == [1]
    refused = guarded.send("POST", path, {"schema": '"string"'}, authorization=basic("reader"))
    assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)
    unknown = guarded.send("GET", path)
    assert (unknown.status_code, unknown.json()["error_code"]) == (401, 401)
    assert [value[:5] for value in unknown.headers.get_list("www-authenticate")] == ["Beare", "Basic"]


def test_a_caller_sees_and_writes_its_own_context_only(guarded: Api) -> None:
    # CSR-907, CSR-908
    guarded.done("POST", f"{BASE}/subjects/s/versions", INT, authorization=basic("writer"))
    guarded.done("POST", f"{BASE}/subjects/:.lab:t/versions", INT, authorization=basic("lab"))
    guarded.done(
        "POST", f"{BASE}/subjects/s/versions?force=true", {"schema": '"string"'}, authorization=basic("writer")
    )
    lab = {"authorization": basic("lab")}
    assert guarded.send("GET", f"{BASE}/subjects", **lab).json() == [":.lab:t"]
    assert guarded.send("GET", f"{BASE}/subjects/s/versions", **lab).json()["error_code"] == 40401
    assert guarded.send("GET", f"{BASE}/schemas/ids/2", **lab).json()["error_code"] == 40403
    assert guarded.send("GET", f"{BASE}/schemas/ids/1/subjects", **lab).json() == [":.lab:t"]
    assert guarded.send("PUT", f"{BASE}/config", {"compatibility": "NONE"}, **lab).json()["error_code"] == 40301
    assert guarded.send("GET", f"{BASE}/subjects", authorization=basic("nobody")).json()["error_code"] == 40301
    guarded.done("POST", f"{BASE}/subjects/:.other:s/versions", INT, authorization=basic("writer"))
    for context in ("other", ".other", ".none"):  # ACC-78: a write is refused, whether the context exists or not
        assert guarded.send("DELETE", f"{BASE}/contexts/{context}", **lab).json()["error_code"] == 40301


@pytest.mark.parametrize("where", ["path", "port", "canonical at the port", "host"])
@pytest.mark.parametrize(
    ("headers", "status", "code", "message"),
    [
        ({}, 401, 401, 'For "{path}", a valid credential is needed: the request has none.'),
        ({"authorization": "Bearer nobody"}, 403, 40301, 'The caller "nic" is not allowed to do this: {path}.'),
    ],
)
def test_refusals_name_the_path_as_it_was_sent(
    sqlite_url: str, where: str, headers: dict[str, str], status: int, code: int, message: str
) -> None:
    # CSR-102: a client does not know the canonical path of what it asks for at a port or a host name of the API
    create(sqlite_url, default_source())
    path = f"{BASE}/subjects" if where in ("path", "canonical at the port") else "/subjects"
    with serving(sqlite_url, public_url=None, tokens=TOKENS, compat_confluent_hosts="sr.example") as api:
        if "port" in where:
            transport = httpx.ASGITransport(ConfluentPort(api.app, 8081))
            api.client = httpx.AsyncClient(transport=transport, base_url="http://h:8081")
        answer = api.send("GET", path, **headers, **({"host": "sr.example"} if where == "host" else {}))
        expected = {"error_code": code, "message": message.format(path=path)}
        assert (answer.status_code, answer.json()) == (status, expected)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/subjects/%E4/versions", "HTTP 404 Not Found: the path is not valid UTF-8"),
        ("/schemas/ids/%FF", "HTTP 404 Not Found: the path is not valid UTF-8"),
        ("/nothing/%C3%A4", "HTTP 404 Not Found"),
    ],
)
def test_paths_that_are_not_found_say_why(api: Api, path: str, message: str) -> None:
    # CSR-103, CSR-106: some clients encode other characters than ASCII by their code points
    answer = api.send("GET", BASE + path)
    assert (answer.status_code, answer.json()) == (404, {"error_code": 404, "message": message})


@pytest.mark.parametrize(
    ("method", "path", "headers", "has_members"),
    [
        ("GET", "/subjects", {"accept": f"{V1}, {V0}, {PLAIN}"}, True),
        ("GET", "/schemas/ids/1", {"accept": V0.upper()}, True),
        ("POST", "/subjects/s/versions", {"content_type": V1}, True),
        ("GET", "/schemagroups/none", {"accept": V1}, True),
        ("GET", "/subjects", {"accept": PLAIN}, False),
        ("POST", "/subjects/s/versions", {"content_type": PLAIN}, False),
        ("GET", "/-/none/x", {"accept": V1}, False),
        ("GET", "/compat/none", {"accept": V1}, False),
        ("PUT", "/", {"accept": V1, "content_type": PLAIN}, False),
    ],
)
def test_a_client_whose_url_lacks_the_path_of_the_api_is_told(
    sqlite_url: str, method: str, path: str, headers: dict[str, str], has_members: bool
) -> None:
    # Such a client shows `error_code` and `message` of an error, and nothing else.
    create(sqlite_url, default_source())
    with serving(sqlite_url) as api:
        body = None if method == "GET" else b"["
        answer = api.send(method, path, body, **headers)
        plain = api.send(method, path, body, content_type=PLAIN)
    members = {
        "error_code": 404,
        "message": f"{plain.json()['title']} Confluent's API is at http://h/r{BASE}, and at the root of its own port if"
        " ANNALS_CONFLUENT_PORT is set.",
    }
    assert answer.status_code == plain.status_code
    assert answer.json() == {**plain.json(), **(members if has_members else {})}


def test_a_registry_without_schemas_has_only_fixed_paths(store_url: str) -> None:
    # CSR-910
    create(store_url)
    with serving(store_url) as api:
        assert api.send("GET", f"{BASE}/subjects").json()["error_code"] == 404
        assert api.get(f"{BASE}/schemas/types") == ["JSON", "PROTOBUF", "AVRO"]


def test_the_own_port_moves_paths_below_the_api() -> None:
    # CSR-102
    def moved(path: str) -> str:
        scope = canonical_scope({"type": "http", "raw_path": path.encode(), "path": path})
        return str(scope["raw_path"].decode())

    assert moved("/subjects") == f"{BASE}/subjects"
    assert moved(f"{BASE}/subjects") == f"{BASE}/subjects"
    assert moved("/-/livez") == "/-/livez"
    assert moved("/-/log") == f"{BASE}/-/log"


@pytest.mark.parametrize("api_name", ["schemaregistry", "messagecatalog", "confluent"])
def test_the_own_port_serves_the_api_under_hosts_of_others(sqlite_url: str, api_name: str) -> None:
    # CSR-102: the port serves this API alone, whatever is at the root of the host name at the other port
    create(sqlite_url, default_source())
    hosts: dict[str, Any] = {f"compat_{api_name}_hosts": "own.example"}
    with serving(sqlite_url, public_url=None, **hosts) as api:
        transport = httpx.ASGITransport(ConfluentPort(api.app, 8081))
        api.client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8081")
        at = {"host": "own.example:8081"}
        api.done("POST", "/subjects/s/versions", INT, **at)
        for path in ("/subjects", f"{BASE}/subjects"):
            assert api.send("GET", path, **at).json() == ["s"]
        assert api.send("GET", "/-/livez", **at).json() == {"status": "ok"}
        assert api.send("GET", "/schemagroups", **at).json()["error_code"] == 404


def test_hosts_of_the_api(sqlite_url: str) -> None:
    # CSR-102, LEG-104: a host serves only this API, at its root and its canonical path, and the health checks
    create(sqlite_url, default_source())
    with serving(sqlite_url, public_url=None, compat_confluent_hosts="sr.example") as api:
        at = {"host": "SR.example:8081"}
        api.done("POST", "/subjects/a%2Fb/versions", INT, **at)
        assert api.send("GET", "/subjects", **at).json() == ["a/b"]
        assert api.send("GET", f"{BASE}/subjects", **at).json() == ["a/b"]
        assert api.send("GET", "/", **at).json() == {}
        assert api.send("GET", "/-/livez", **at).status_code == api.send("GET", "/-/readyz", **at).status_code == 200
        for path in ("/-/log", "/export", "/schemagroups", "/subscriptions"):
            refused = api.send("GET", path, **at)
            assert (refused.status_code, refused.json()["error_code"]) == (404, 404), path
        assert api.send("GET", "/subjects").status_code == 404
