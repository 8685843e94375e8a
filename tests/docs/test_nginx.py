"""The guide's configuration of nginx, in front of a served registry.

Only addresses and paths of files are replaced in it. `direct` requests go to the server itself, from its trusted proxy.
"""

from __future__ import annotations

import json
import re
import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

import pytest

from tests.support.brokers.certificates import issue_certificate
from tests.support.certificates import Authority
from tests.support.guides import blocks_of
from tests.support.nginx import nginx
from tests.support.polling import until
from tests.support.ports import free_port
from tests.support.serving import ROOT, serving

pytestmark = pytest.mark.uses("nginx")

HOST: Final = "registry.example.com"
#: No trusted proxy. All addresses of 127.0.0.0/8 are those of the machine itself.
CLIENT: Final = "127.0.0.2"
SUBJECTS: Final = "/compat/confluent/subjects"
SCHEMA: Final = "/schemagroups/g/schemas"
JSON_SCHEMA: Final = {"xRegistry-format": "JsonSchema/draft-07", "Content-Type": "application/json"}
_PREFIX_LINE: Final = '\tproxy_set_header X-Forwarded-Prefix "";\n'


class Answer(NamedTuple):
    """A response. headers: by their names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Site(NamedTuple):
    """A registry behind nginx. prefix: its path at the proxy. certificate: a header with that of the caller `ci`."""

    port: int
    server_port: int
    prefix: str
    context: ssl.SSLContext
    certificate: str

    @property
    def url(self) -> str:
        return f"https://{HOST}{self.prefix}"

    def send(self, method: str, path: str, body: Any = None, token: str | None = "t", **headers: str) -> Answer:
        """The response to a request of the client to nginx. path: below the root of the registry, sent as it is."""
        with self.sent(method, self.prefix + path, body, token, **headers) as response:
            return answer_of(response)

    @contextmanager
    def sent(
        self, method: str, target: str, body: Any = None, token: str | None = "t", **headers: str
    ) -> Iterator[HTTPResponse]:
        """The response to a request of the client to nginx, before its body is read."""
        with closing(
            HTTPSConnection("127.0.0.1", self.port, timeout=30, source_address=(CLIENT, 0), context=self.context)
        ) as connection:
            yield responded(connection, method, target, body, {"Host": HOST} | credential(token) | headers)

    def direct(self, method: str, path: str, token: str | None = "t", **headers: str) -> Answer:
        """The response of the server itself to the request that nginx should send."""
        forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": HOST, "X-Forwarded-Prefix": self.prefix}
        with closing(HTTPConnection("127.0.0.1", self.server_port, timeout=30)) as connection:
            return answer_of(responded(connection, method, path, None, credential(token) | forwarded | headers))


def responded(connection: HTTPConnection, method: str, target: str, body: Any, headers: dict[str, str]) -> HTTPResponse:
    content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    connection.request(method, target, content, headers)
    return connection.getresponse()


def answer_of(response: HTTPResponse) -> Answer:
    return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())


def credential(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def blocks() -> tuple[str, str]:
    """The `server` block of the guide, and what replaces a part of it for a registry below a path."""
    page = (ROOT / "docs/guides/operation.md").read_text()
    whole, below_path = (block.text for block in blocks_of(page) if block.language == "nginx")
    return whole, below_path


def server_block(prefix: str) -> str:
    """The block for a registry at the root of its host, or below a path, as the guide says."""
    whole, below_path = blocks()
    if not prefix:
        return whole
    location = re.search(r"^\tlocation / \{\n.*?^\t\}\n", whole, re.DOTALL | re.MULTILINE)
    assert location and whole.count(_PREFIX_LINE) == 1
    return whole.replace(location[0], below_path).replace(_PREFIX_LINE, "")


@pytest.fixture(scope="module", params=["", "/annals"], ids=["root", "path"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("site")
    files, port = issue_certificate(home / "certificates", "127.0.0.1"), free_port()
    client = Authority(home / "clients").issue("ci", "/CN=ci")
    (home / "clients.json").write_text('{"CN=ci": {"name": "ci", "role": "writer"}}')
    settings = {
        "ANNALS_TRUSTED_PROXIES": "127.0.0.1",
        "ANNALS_TOKENS": '{"t": {"name": "t", "role": "admin"}}',
        "ANNALS_TLS_CLIENTS": str(home / "clients.json"),
        "ANNALS_DENIALS_KEPT": "100",
        "ANNALS_HOSTS": HOST,
    }
    with serving(f"sqlite:///{home / 'annals.db'}", home, **settings) as served:
        address = urlsplit(served.url).netloc
        server = (
            server_block(request.param)
            .replace("listen 443 ", f"listen 127.0.0.1:{port} ")
            .replace("/etc/ssl/registry.pem", str(files.certificate))
            .replace("/etc/ssl/private/registry.key", str(files.key))
            .replace("127.0.0.1:8080", address)
        )
        der = ssl.PEM_cert_to_DER_cert(client.certificate.read_text())
        context = ssl.create_default_context(cafile=str(files.ca))
        with nginx(home, server, port):
            yield Site(port, int(address.rpartition(":")[2]), request.param, context, f":{b64encode(der).decode()}:")


def test_names_of_subjects(site: Site) -> None:
    """A path is neither decoded nor normalised: a DELETE of `a/../c` does not delete `c`."""
    names = ["a b", "a%2Fb", "a%b", "a+b", "a/../c", "a//b", "a/b", "a;b", "a?b", "c", "ä"]
    for name in names:
        path = f"{SUBJECTS}/{quote(name, safe='')}/versions"
        assert site.send("POST", path, {"schema": json.dumps({"type": "string", "doc": name})}).status == 200, name
    assert site.direct("GET", SUBJECTS).json == names
    assert site.send("DELETE", f"{SUBJECTS}/a%2F..%2Fc").json == [1]
    assert site.direct("GET", SUBJECTS).json == [name for name in names if name != "a/../c"]


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/", 200),
        ("//schemagroups", 404),
        ("/schemagroups/a%2525b", 404),
        ("/schemagroups/../schemagroups", 404),
        ("/schemagroups/./x", 404),
        ("/schemagroups/x%20y%C3%A4", 404),
        ("/schemagroups?limit=1&filter=name%3D%2A", 200),
        ("/schemagroups?limit=1&x=%3F?y&z=a%26b%2525", 200),
        ("/capabilities?", 200),
        (f"{SCHEMA}/none$details?asof=%22", 400),
        (f"{SCHEMA}/none%24details", 404),
    ],
)
def test_targets_arrive_byte_for_byte(site: Site, target: str, status: int) -> None:
    """nginx adds nothing, drops nothing, and decodes nothing: the answer is that of the server to the same target."""
    through, direct = site.send("GET", target), site.direct("GET", target)
    assert (through.status, through.body) == (status, direct.body)
    assert through.headers.get("link") == direct.headers["link"]


def test_a_document_with_its_details(site: Site) -> None:
    """`$` is no variable of nginx, and URLs in answers are those that clients use."""
    site.send("PUT", f"{SCHEMA}/s", {"type": "string"}, **JSON_SCHEMA)
    details = site.send("GET", f"{SCHEMA}/s$details")
    assert (details.status, details.json["self"]) == (200, f"{site.url}{SCHEMA}/s$details")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Forwarded": "host=evil.example;proto=http"},
        {"X-Forwarded-Host": "evil.example"},
        {"X-Forwarded-Proto": "http"},
        {"X-Forwarded-Port": "81"},
        {"X-Forwarded-Prefix": "/evil"},
    ],
)
def test_clients_do_not_choose_the_root(site: Site, headers: dict[str, str]) -> None:
    # HTTP-1: absolute URLs are those that clients use
    assert site.send("GET", "/", **headers).json["self"] == f"{site.url}/"


def test_clients_do_not_choose_a_certificate(site: Site) -> None:
    # ACC-92: certificates are public, so anybody could send that of somebody else
    certificate = {"Client-Cert": site.certificate}
    assert site.direct("GET", "/-/whoami", None, **certificate).json["name"] == "ci"
    seen = site.send("GET", "/-/whoami", token=None, **certificate)
    assert (seen.status, seen.json["name"]) == (200, "anonymous")


def test_clients_do_not_choose_their_address(site: Site) -> None:
    # ACC-114: limits and denials have the address of the client, not that of the proxy or an invented one
    rows: tuple[dict[str, str], ...] = ({}, {"X-Forwarded-For": "192.0.2.1"}, {"Forwarded": "for=192.0.2.1"})
    for headers in rows:
        assert site.send("PUT", "/schemagroups/denied", {}, token=None, **headers).status == 401

    def addresses() -> list[str]:
        return [row["address"] for row in site.direct("GET", "/-/denials").json]

    until(lambda: len(addresses()) == len(rows))
    assert addresses() == [CLIENT] * len(rows)


def test_a_document_of_three_megabytes(site: Site) -> None:
    """A body is limited by the server, and not by nginx's one megabyte."""
    document = json.dumps({"title": "t" * 3_000_000}).encode()
    assert site.send("PUT", f"{SCHEMA}/large", document, **JSON_SCHEMA).status == 201
    assert site.send("GET", f"{SCHEMA}/large").body == document


def test_attributes_in_headers(site: Site) -> None:
    """Names with dots and underscores, and 100 kB of headers, arrive in both directions."""
    labels = {f"xregistry-labels.next_step.{number}": "v" * 4_000 for number in range(25)}
    assert site.send("PUT", f"{SCHEMA}/labels", {}, **JSON_SCHEMA, **labels).status == 201
    read = site.send("GET", f"{SCHEMA}/labels")
    assert (read.status, {name: read.headers.get(name) for name in labels}) == (200, labels)


def test_a_request_target_of_fifteen_kilobytes(site: Site) -> None:
    """Filters can be long; the limit is ANNALS_MAX_REQUEST_LINE."""
    assert site.send("GET", f"/schemagroups?x={'y' * 15_000}").status == 200


def test_tags_stay_strong(site: Site) -> None:
    # HTTP-8: a weak tag would never satisfy If-Match
    site.send("PUT", "/schemagroups/tagged", {})
    read = site.send("GET", "/schemagroups/tagged", **{"Accept-Encoding": "gzip"})
    assert site.send("PATCH", "/schemagroups/tagged", {"name": "n"}, **{"If-Match": read.headers["etag"]}).status == 200


def test_an_event_arrives_at_once(site: Site) -> None:
    # EV-79: nginx does not hold events back until its buffer is full
    position = site.send("PUT", "/schemagroups/before", {}).headers["annals-position"]
    target = f"{site.prefix}/-/events?after={position}"
    with site.sent("GET", target, Accept="text/event-stream") as stream:
        assert (stream.status, stream.getheader("content-type")) == (200, "text/event-stream")
        site.send("PUT", "/schemagroups/later", {})
        events = (json.loads(line[5:]) for line in iter(stream.readline, b"") if line.startswith(b"data:"))
        # Creating a Group changes the Registry as well.
        assert [next(events)["subject"] for _ in range(2)] == ["/", "/schemagroups/later"]


def test_discovery_at_the_root_of_the_host(site: Site) -> None:
    """Clients look for `/.xregistry` at the root of a host, also where the registry is below a path."""
    with site.sent("GET", "/.xregistry", token=None) as response:
        assert answer_of(response).json == {"registries": [site.url]}


def test_the_root_without_a_slash(site: Site) -> None:
    # The public URL has none, and a redirect would turn a POST into a GET.
    with site.sent("GET", site.prefix or "/") as response:
        assert (response.status, answer_of(response).json["self"]) == (200, f"{site.url}/")


def test_another_spelling_of_the_path(site: Site) -> None:
    """nginx finds the location by the decoded path, and the prefix in the path as it was sent, so it refuses this."""
    with site.sent("GET", "/%61nnals/capabilities") as response:
        assert response.status == (400 if site.prefix else 404)


@pytest.mark.usefixtures("site")
def test_nginx_waits_longer_than_feeds_and_imports() -> None:
    """`wait` is at most 60 seconds, as long as nginx waits by default."""
    minutes = re.findall(r"^\tproxy_read_timeout (\d+)m;$", blocks()[0], re.MULTILINE)
    assert [int(number) > 1 for number in minutes] == [True]


@pytest.mark.usefixtures("site")
def test_nginx_speaks_the_version_of_http_that_has_chunks() -> None:
    """Streams are chunked (RFC 9112, "Chunked Transfer Coding"), and nginx's default is HTTP/1.0."""
    assert "\tproxy_http_version 1.1;\n" in blocks()[0]
