"""Sends invalid requests of every kind, as bytes: each gets its problem, and none changes the log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import httpx
import pytest

from tests.conformance.raw import exchange, request
from tests.support.serving import serving

GROUP = "/schemagroups/g"
DOCUMENT = f"{GROUP}/schemas/s"
DETAILS = f"{DOCUMENT}$details"
#: No problem type: the bytes are not an HTTP request, so the response has no problem document.
NOT_HTTP = ""


class Row(NamedTuple):
    """One request. rule: ids, and the error in the request. problem: the name of the problem type."""

    rule: str
    sent: bytes
    status: int
    problem: str


def body(rule: str, text: bytes, problem: str = "parsing_data") -> Row:
    """A request with an invalid body."""
    return Row(f"HTTP-11: {rule}", request("PUT", GROUP, text), 400, problem)


def header(rule: str, line: bytes, problem: str, path: str = DOCUMENT) -> Row:
    """A write of a document with an invalid header."""
    return Row(rule, request("PUT", path, b"x", line), 400, problem)


def value(rule: str, text: bytes, problem: str = "invalid_attribute") -> Row:
    """A request with valid JSON, but an invalid value of an attribute."""
    return Row(rule, request("PATCH", DETAILS, text), 400, problem)


def path(rule: str, method: str, target: str | bytes, status: int, problem: str) -> Row:
    """A request with an invalid path."""
    return Row(rule, request(method, target, b"{}" if method in ("PUT", "POST", "PATCH") else b""), status, problem)


JSON = [
    body("no JSON at all", b"hello"),
    body("JSON that ends early", b'{"name": "a"'),
    body("two values", b'{"name": "a"} {}'),
    body("a comma too many", b'{"name": "a",}'),
    body("single quotes", b"{'name': 'a'}"),
    body("a comment", b'{"name": "a"} // why'),
    body("nothing but spaces", b"   "),
    body("a mark of byte order", b"\xef\xbb\xbf{}"),
    body("UTF-16", '{"name": "a"}'.encode("utf-16")),
    body("an array", b"[]"),
    body("a text", b'"name"'),
    body("null", b"null"),
    body("a number", b"1"),
    body("no body", b"", "missing_body"),
    body("a control character in a text", b'{"name": "a\nb"}'),
    body("SER-13: NaN", b'{"name": NaN}'),
    body("SER-13: Infinity", b'{"name": -Infinity}'),
    body("a hexadecimal number", b'{"epoch": 0x1}'),
    body("a number with a zero in front", b'{"epoch": 01}'),
    body("a member twice", b'{"name": "a", "name": "b"}'),
    body("a member twice, further down", b'{"labels": {"a": "1", "\\u0061": "2"}}'),
    body("SER-10: bytes that are no UTF-8", b'{"name": "\xff\xfe"}'),
    body("SER-10: an overlong encoding", b'{"name": "\xc0\xa0"}'),
    body("SER-10: half of a surrogate pair as bytes", b'{"name": "\xed\xa0\x80"}'),
    body("SER-10: half of a surrogate pair as an escape", b'{"name": "\\ud800"}'),
    body("arrays 100,000 deep", b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    body("objects 100,000 deep", b'{"x":' * 100_000 + b"1" + b"}" * 100_000),
    body("an opening bracket a million times", b"[" * 1_000_000),
]
VALUES = [
    value("ENT-52: an epoch that is no number", b'{"epoch": "x"}'),
    value("ENT-52: a negative epoch", b'{"epoch": -1}'),
    value("ENT-52: an epoch of a thousand digits", b'{"epoch": ' + b"9" * 1000 + b"}", "mismatched_epoch"),
    value("ENT-52: an epoch beyond any number", b'{"epoch": 1e999999999}', "mismatched_epoch"),
    value("ENT-8: a date that does not exist", b'{"createdat": "2026-02-30T00:00:00Z"}'),
    value("ENT-8: a date without a zone", b'{"createdat": "2026-02-03T00:00:00"}'),
    value("ENT-8: an object for a text", b'{"name": {}}'),
    value("ENT-12: a key that no map may have", b'{"labels": {"": "x"}}'),
    value("ENT-13: a text beyond 4096 bytes", b'{"name": "' + b"x" * 5000 + b'"}'),
    value("ENT-10: a name that no attribute may have", b'{"A B": 1}'),
    value("ENT-120: two documents", b'{"schema": {}, "schemabase64": ""}', "one_resource"),
    value("ENT-32: another id", b'{"schemaid": "other"}', "mismatched_id"),
    value("ENT-32: an id that is none", b'{"schemaid": ["s"]}', "mismatched_id"),
    value("ENT-32: a Version id that is none", b'{"versionid": {"a": 1}}', "mismatched_id"),
    value("ENT-120: base64 that is none", b'{"schemabase64": "***"}'),
]
HEADERS = [
    header("HTTP-61: bytes that are no UTF-8, percent-encoded", b"xRegistry-name: %FF%FE", "header_error"),
    header("HTTP-61: an overlong encoding", b"xRegistry-name: %C0%A0", "header_error"),
    header("HTTP-61: bytes above ASCII as they are", b"xRegistry-name: \xff", "header_error"),
    header("HTTP-46: the document as a header", b"xRegistry-schema: {}", "extra_xregistry_header"),
    header("HTTP-46: its media type as a header", b"xRegistry-contenttype: a/b", "extra_xregistry_header"),
    header("HTTP-46: headers beside metadata", b"xRegistry-name: a", "extra_xregistry_header", DETAILS),
    header("HTTP-48: a number that is none", b"xRegistry-epoch: one", "invalid_attribute"),
    header("HTTP-48: one header twice", b"xRegistry-name: a\r\nxRegistry-name: b", "header_error"),
    header("HTTP-48: a map without a key", b"xRegistry-labels: a", "invalid_attribute"),
    header("ENT-12: a map with a key that none may have", b"xRegistry-labels.-: a", "invalid_attribute"),
    header("HTTP-47: a URL beside a document", b"xRegistry-schemaurl: http://x", "bad_request"),
    header("HTTP-49: another id", b"xRegistry-schemaid: other", "mismatched_id"),
    header("ENT-71: a media type that is none", b"Content-Type: nonsense", "invalid_attribute"),
]
PATHS = [
    path("C-8: a type that the model lacks", "PUT", "/nope/x", 404, "not_found"),
    path("HTTP-10: an encoded slash makes no segment", "PUT", "/schemagroups%2Fx", 404, "not_found"),
    path("ENT-30: an id with a slash", "PUT", "/schemagroups/a%2Fb", 400, "malformed_id"),
    path("ENT-30: an id with a percent sign", "PUT", "/schemagroups/a%2525b", 400, "malformed_id"),
    path("ENT-30: an id with a NUL", "PUT", "/schemagroups/a%00b", 400, "malformed_id"),
    path("HTTP-10: a path that is no UTF-8", "PUT", "/schemagroups/%ff%fe", 400, "bad_request"),
    path("ENT-30: an id with a line break", "PUT", "/schemagroups/a%0d%0aX-Y:%20z", 400, "malformed_id"),
    path("ENT-30: an id that ends in a line break", "PUT", "/schemagroups/a%0a", 400, "malformed_id"),
    path("ENT-30: an id of 129 characters", "PUT", f"/schemagroups/{'x' * 129}", 400, "malformed_id"),
    path("ENT-30: two dots are no way up", "PUT", "/schemagroups/..", 400, "malformed_id"),
    path("ENT-30: nor are they encoded", "PUT", "/schemagroups/%2e%2e/schemas/x", 400, "malformed_id"),
    path("ENT-30: an empty id", "PUT", "/schemagroups//schemas/x", 400, "malformed_id"),
    path("HTTP-20: $details twice", "PUT", f"{DETAILS}$details", 400, "malformed_id"),
    path("HTTP-20: $details of a collection", "GET", "/schemagroups$details", 400, "bad_details"),
    path("HTTP-3: the way out of our own paths", "GET", "/-/../model", 404, "api_not_found"),
    path("HTTP-3: a path of ours that is not there", "GET", "/-/nope", 404, "api_not_found"),
    path("HTTP-3: a path beyond the tree", "GET", f"{DOCUMENT}/versions/1/x/y", 404, "not_found"),
    path("HTTP-3: a method of another protocol", "PROPFIND", "/", 405, "action_not_supported"),
    path("HTTP-3: a method that the path does not take", "DELETE", "/", 405, "action_not_supported"),
    path("FLAG-1: a flag with one value, twice", "DELETE", f"{GROUP}?epoch=1&epoch=2", 400, "bad_flag"),
    path("ENT-52: a flag that is no epoch", "DELETE", f"{GROUP}?epoch=%00", 400, "invalid_attribute"),
    path("ENT-30: a Version with a NUL to compare", "GET", f"/-/compare{DOCUMENT}?left=%00", 404, "not_found"),
    path("SUB-714: consent for an id with a NUL", "POST", "/-/subscriptions/a%00b/consent/x", 404, "api_not_found"),
    path("FLAG-33: an inline path that leads nowhere", "GET", "/?inline=%ff.%00", 400, "bad_inline"),
]
BYTES = [
    Row("no HTTP", b"hello\r\n\r\n", 400, NOT_HTTP),
    Row("no HTTP: a method that nobody knows", request("BREW", "/"), 400, NOT_HTTP),
    Row("no HTTP: TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, NOT_HTTP),
    Row("no HTTP: a space in the path", request("PUT", "/schemagroups/a b", b"{}"), 400, NOT_HTTP),
    Row("no HTTP: a NUL in the path", request("PUT", b"/schemagroups/a\0b", b"{}"), 400, NOT_HTTP),
    Row("no HTTP: a header without a name", request("PUT", GROUP, b"{}", b": x"), 400, NOT_HTTP),
    Row("no HTTP: a NUL in a header", request("PUT", GROUP, b"{}", b"X: a\0b"), 400, NOT_HTTP),
    Row("no HTTP: two lengths", request("PUT", GROUP, b"{}", b"Content-Length: 3"), 400, NOT_HTTP),
    Row("no HTTP: a negative length", request("PUT", GROUP, b"", b"Content-Length: -1"), 400, NOT_HTTP),
    Row(
        "no HTTP: a chunk without a size",
        request("PUT", GROUP, b"zz\r\n{}\r\n0\r\n\r\n", b"Transfer-Encoding: chunked"),
        400,
        NOT_HTTP,
    ),
]
FAULTS = [
    value("ENT-8: an exponent of a thousand digits", b'{"createdat": 1e' + b"9" * 1000 + b"}", "parsing_data"),
    path("ENT-52: an epoch of a thousand digits", "DELETE", f"{GROUP}?epoch={'9' * 1000}", 400, "mismatched_epoch"),
    Row(
        "ENT-33: a Version id that is none, beside Versions",
        request("POST", f"{GROUP}/schemas", b'{"new": {"versionid": [1], "versions": {"1": {}}}}'),
        400,
        "malformed_id",
    ),
]
FAULTS += [
    Row(
        f"ENT-82: a default Version with a NUL, by {method}",
        request(method, f"{DOCUMENT}/meta", b'{"defaultversionid": "\\u0000", "defaultversionsticky": true}'),
        400,
        "unknown_id",
    )
    for method in ("PUT", "PATCH")
]
ROWS = [*JSON, *VALUES, *HEADERS, *PATHS, *BYTES, *FAULTS]


class Served(NamedTuple):
    url: str
    client: httpx.Client

    def visible_state(self) -> object:
        """The last position of the log, and the whole registry as returned by a read."""
        return self.client.get("/-/readyz").json()["head"], self.client.get("/?inline").text


@pytest.fixture(scope="module")
def served(shared_store_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A registry with one schema."""
    place = tmp_path_factory.mktemp("malformed")
    with serving(shared_store_url, place) as found, httpx.Client(base_url=found.url) as client:
        assert client.put(DOCUMENT, content=b"x", headers={"xRegistry-format": "Text"}).status_code == 201
        yield Served(found.url, client)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.rule} {number}" for number, row in enumerate(ROWS)])
def test_it_is_refused_and_changes_nothing(served: Served, row: Row) -> None:
    before = served.visible_state()
    answer = exchange(served.url, row.sent)
    assert answer.status == row.status, answer
    if row.problem:
        assert answer.content_type.startswith(("application/json", "application/problem+json"))
        assert json.loads(answer.body)["type"].rpartition("#")[2] == row.problem
    assert served.visible_state() == before


@pytest.mark.parametrize(
    "sent",
    [
        request("PUT", GROUP, b'{"name": "cut off"}')[:-3],
        request("PUT", GROUP, b'13\r\n{"name": "cut off"}', b"Transfer-Encoding: chunked"),
        request("PUT", GROUP, b"{}")[:20],
    ],
)
def test_a_request_that_is_cut_off_changes_nothing(served: Served, sent: bytes) -> None:
    # ENT-4: an incomplete request is not executed
    before = served.visible_state()
    assert exchange(served.url, sent, hang_up=True).status in (0, 400)
    assert served.visible_state() == before
