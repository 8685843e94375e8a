"""TLS of the server, and authentication by client certificate, with certificates of `openssl`."""

from __future__ import annotations

import json
import logging
import shutil
import socket
import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pydantic import ValidationError

from annals.api.auth import certificates
from annals.api.settings.settings import Settings
from tests.support.certificates import Authority, Issued
from tests.support.console import Annals, annals, folder, logs
from tests.support.polling import until
from tests.support.registries.in_process import Api, create
from tests.support.registries.in_process import serving as in_process
from tests.support.serving import Served, serving

__all__ = ["annals", "folder", "logs"]

CLIENTS: dict[str, Any] = {
    "O=Example,CN=ci": {"name": "ci", "role": "writer"},
    "dns:Build.Example": {"name": "build", "role": "reader"},
    "uri:spiffe://example/app": {"name": "app", "groups": {"/dirs/d": "writer"}},
    "email:ada@example": {"name": "ada", "role": "admin"},
}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def issued(authority: Authority) -> dict[str, Issued]:
    """Certificates of the server and of clients."""
    other = Authority(authority.folder / "other", "other")
    return {
        "server": authority.issue("server", "/CN=server", "IP:127.0.0.1"),
        "next": authority.issue("next", "/CN=next", "IP:127.0.0.1"),
        "ci": authority.issue("ci", "/CN=ci/O=Example"),
        "build": authority.issue("build", "/CN=any", "DNS:build.example"),
        "app": authority.issue("app", "/CN=any", "URI:spiffe://example/app", "DNS:unlisted.example"),
        "ada": authority.issue("ada", "/CN=any", "email:ada@example"),
        "nobody": authority.issue("nobody", "/CN=ci", "DNS:ci"),
        "expired": authority.issue("expired", "/CN=ci/O=Example", days=-1),
        "other": other.issue("ci", "/CN=ci/O=Example"),
    }


@pytest.fixture(scope="module")
def served(
    authority: Authority, issued: dict[str, Issued], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Served, Path]]:
    """A server with TLS that requests client certificates, and its folder."""
    home = tmp_path_factory.mktemp("served")
    (home / "clients.json").write_text(json.dumps(CLIENTS))
    for number, name in enumerate(("cert.pem", "key.pem")):
        shutil.copy(issued["server"][number], home / name)
    settings = {
        "ANNALS_TLS_CERT": str(home / "cert.pem"),
        "ANNALS_TLS_KEY": str(home / "key.pem"),
        "ANNALS_TLS_CLIENT_CA": str(authority.certificate),
        "ANNALS_TLS_CLIENTS": str(home / "clients.json"),
        "ANNALS_TOKENS": '{"t": {"name": "n", "role": "reader"}}',
    }
    with serving(f"sqlite:///{home}/annals.db", home, **settings) as running:
        yield running, home


def client(authority: Authority, certificate: Issued | None = None) -> httpx.Client:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if certificate is not None:
        context.load_cert_chain(certificate.certificate, certificate.key)
    return httpx.Client(verify=context, trust_env=False)


def who(running: Served, authority: Authority, certificate: Issued | None, **headers: str) -> Any:
    with client(authority, certificate) as http:
        answer = http.get(f"{running.url}/-/whoami", headers=headers)
    return (answer.json()["name"], answer.json()["authenticator"]) if answer.status_code == 200 else answer.status_code


def test_callers_by_certificate(served: tuple[Served, Path], authority: Authority, issued: dict[str, Issued]) -> None:
    """ACC-91: by subject or alternative name; one without an entry is 401; other credentials work without one."""
    running, _ = served
    assert running.url.startswith("https://127.0.0.1:")
    for name in ("ci", "build", "app", "ada"):
        assert who(running, authority, issued[name]) == (name, "certificate")
    assert who(running, authority, issued["nobody"]) == 401
    assert who(running, authority, None) == ("anonymous", None)
    token = {"authorization": "Bearer t"}
    assert who(running, authority, None, **token) == ("n", "tokens")
    # ACC-11: if both are sent, the header decides, even if it is bad
    assert who(running, authority, issued["ci"], **token) == ("n", "tokens")
    assert who(running, authority, issued["nobody"], **token) == ("n", "tokens")
    assert who(running, authority, issued["ci"], authorization="Bearer bad") == 401
    # ACC-92: the header Client-Cert is ignored unless it comes from a trusted proxy
    assert who(running, authority, None, client_cert=der_header(issued["ci"])) == ("anonymous", None)
    with client(authority, issued["ci"]) as http:
        first = http.put(f"{running.url}/schemagroups/g", json={})
        assert (first.status_code, http.put(f"{running.url}/schemagroups/g", json={}).status_code) == (201, 200)
        assert first.headers["strict-transport-security"] == "max-age=31536000"


@pytest.mark.parametrize("name", ["other", "expired"])
def test_certificates_of_another_authority(
    served: tuple[Served, Path], authority: Authority, issued: dict[str, Issued], name: str
) -> None:
    """ACC-91: the handshake fails for a certificate of another authority, or an expired one."""
    with pytest.raises(httpx.TransportError), client(authority, issued[name]) as http:
        http.get(f"{served[0].url}/-/whoami")


@pytest.mark.parametrize(("name", "reason"), [("other", "unable to get local issuer"), ("expired", "has expired")])
def test_a_failed_handshake_is_logged(
    authority: Authority, issued: dict[str, Issued], tmp_path: Path, name: str, reason: str
) -> None:
    """ACC-91, ACC-112: the client learns nothing, so the log of the server says why."""
    settings = tls_settings(issued, ANNALS_TLS_CLIENT_CA=str(authority.certificate))
    with serving(f"sqlite:///{tmp_path}/annals.db", tmp_path, **settings) as running:
        for _ in range(3):
            with suppress(httpx.TransportError), client(authority, issued[name]) as http:
                http.get(f"{running.url}/-/whoami")
        until(lambda: "a TLS handshake failed: " in (tmp_path / "serve.log").read_text())
    lines = [line for line in (tmp_path / "serve.log").read_text().splitlines() if "handshake failed" in line]
    assert reason in lines[0] and len(lines) < 4


def test_clients_that_begin_no_handshake(authority: Authority, issued: dict[str, Issued], tmp_path: Path) -> None:
    """ACC-114: connections are counted before their handshake, and the log says when there are too many."""
    settings = tls_settings(issued, ANNALS_MAX_CONNECTIONS="4", ANNALS_HEADER_SECONDS="600")
    with serving(f"sqlite:///{tmp_path}/annals.db", tmp_path, **settings) as running, client(authority) as http:
        assert http.get(f"{running.url}/-/livez").status_code == 200
        used = len(open_files(running))
        with silent_connections(running.url, 300):
            until(lambda: len(open_files(running)) > used + 100)
            assert http.get(f"{running.url}/-/livez").status_code == 200, "an open connection is not affected"
            assert len(open_files(running)) < used + 200
            until(lambda: "too many connections are open" in (tmp_path / "serve.log").read_text())
            with pytest.raises(httpx.TransportError), client(authority) as another:
                another.get(f"{running.url}/-/livez")


def test_handshakes_that_take_too_long(authority: Authority, issued: dict[str, Issued], tmp_path: Path) -> None:
    """ACC-112: a connection is closed if its handshake is not done in time, and others find room again."""
    settings = tls_settings(issued, ANNALS_MAX_CONNECTIONS="4", ANNALS_HEADER_SECONDS="2")
    with (
        serving(f"sqlite:///{tmp_path}/annals.db", tmp_path, **settings) as running,
        silent_connections(running.url, 300) as connections,
    ):
        until(lambda: "too many connections are open" in (tmp_path / "serve.log").read_text())
        assert all(is_closed(connection) for connection in connections)
        with client(authority) as http:
            assert http.get(f"{running.url}/-/livez").status_code == 200


def open_files(served: Served) -> list[Path]:
    return [*Path(f"/proc/{served.process.pid}/fd").iterdir()]


@contextmanager
def silent_connections(url: str, count: int) -> Iterator[list[socket.socket]]:
    """So many open connections that send nothing."""
    address = httpx.URL(url)
    with ExitStack() as opened:
        yield [
            opened.enter_context(socket.create_connection((address.host, address.port or 0), timeout=60))
            for _ in range(count)
        ]


def is_closed(connection: socket.socket) -> bool:
    """Whether the server closes a connection without a word. Raises: TimeoutError if it does not within 60 s."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def tls_settings(issued: dict[str, Issued], **settings: str) -> dict[str, str]:
    server = issued["server"]
    return {"ANNALS_TLS_CERT": str(server.certificate), "ANNALS_TLS_KEY": str(server.key), **settings}


@pytest.mark.parametrize(
    ("version", "taken"), [("TLSv1", False), ("TLSv1_1", False), ("TLSv1_2", True), ("TLSv1_3", True)]
)
def test_versions(served: tuple[Served, Path], authority: Authority, version: str, taken: bool) -> None:
    """ACC-90: the server requires TLS 1.2 or newer."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    context.set_ciphers("ALL:@SECLEVEL=0")
    address = httpx.URL(served[0].url)
    with socket.create_connection((address.host, address.port or 0)) as plain:
        try:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
                assert taken and connection.version() == version.replace("_", ".")
        except (ssl.SSLError, ConnectionError):
            assert not taken


def resumed(
    running: Served, authority: Authority, certificate: Issued, version: str, session: ssl.SSLSession | None
) -> tuple[bool, ssl.SSLSession | None]:
    """Connects with a TLS session. Returns whether the server resumed it, and the session of the new connection."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    context.load_cert_chain(certificate.certificate, certificate.key)
    address = httpx.URL(running.url)
    if session is not None:
        context = CONTEXTS[version]
    CONTEXTS[version] = context
    with (
        socket.create_connection((address.host, address.port or 0)) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as connection,
    ):
        connection.sendall(b"GET /-/livez HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 200"
        return bool(connection.session_reused), connection.session


#: The context of each version: a session can only be resumed in its context.
CONTEXTS: dict[str, ssl.SSLContext] = {}
VERSIONS = ("TLSv1_2", "TLSv1_3")


def subject_of_server(running: Served, authority: Authority) -> str:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    address = httpx.URL(running.url)
    with (
        socket.create_connection((address.host, address.port or 0)) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        found = connection.getpeercert()
    assert found is not None
    subject: Any = found["subject"]
    return str(subject[0][0][1])


def test_new_files_serve_new_connections(
    served: tuple[Served, Path], authority: Authority, issued: dict[str, Issued]
) -> None:
    """ACC-19, ACC-90: without a restart; open connections continue; a broken file changes nothing."""
    running, home = served
    with client(authority) as http:
        assert http.get(f"{running.url}/-/livez").status_code == 200
        assert subject_of_server(running, authority) == "server"
        sessions = {each: resumed(running, authority, issued["ci"], each, None)[1] for each in VERSIONS}
        again = {each: resumed(running, authority, issued["ci"], each, sessions[each]) for each in VERSIONS}
        assert all(was_resumed for was_resumed, _ in again.values())
        (home / "cert.pem").write_text("broken")
        token = {"authorization": "Bearer t"}
        until(lambda: f'file_error{{file="{home}/cert.pem"}} 1.0' in metrics(http, running, token))
        assert subject_of_server(running, authority) == "server"
        for number, name in enumerate(("cert.pem", "key.pem")):
            shutil.copy(issued["next"][number], home / name)
        until(lambda: subject_of_server(running, authority) == "next")
        assert who(running, authority, issued["ci"]) == ("ci", "certificate"), "the new one asks for certificates too"
        assert f'file_error{{file="{home}/cert.pem"}} 0.0' in metrics(http, running, token)
        # Resuming an old session would skip the check of the client's certificate by a new authority.
        for each, (_, session) in again.items():
            assert not resumed(running, authority, issued["ci"], each, session)[0]
        (home / "clients.json").write_text(json.dumps({"O=Example,CN=ci": {"name": "renamed"}}))
        until(lambda: who(running, authority, issued["ci"]) == ("renamed", "certificate"))


def metrics(http: httpx.Client, running: Served, headers: dict[str, str]) -> str:
    return http.get(f"{running.url}/-/metrics", headers=headers).text


def test_a_refusal_under_tls(served: tuple[Served, Path], authority: Authority) -> None:
    """ACC-90, ACC-114: a request that is refused before it is complete gets a response under TLS too."""
    with client(authority) as http:
        answer = http.get(f"{served[0].url}/", headers={"x": "y" * 20_000})
    assert answer.status_code == 431


def der_header(files: Issued) -> str:
    return f":{b64encode(ssl.PEM_cert_to_DER_cert(files.certificate.read_text())).decode()}:"


@pytest.fixture
def proxied(sqlite_url: str, tmp_path: Path) -> Iterator[Api]:
    """A registry that trusts a proxy on this machine."""
    create(sqlite_url)
    (tmp_path / "clients.json").write_text(json.dumps(CLIENTS))
    with in_process(sqlite_url, tls_clients=str(tmp_path / "clients.json"), trusted_proxies="127.0.0.1") as api:
        yield api


def test_certificates_that_a_proxy_names(proxied: Api, issued: dict[str, Issued]) -> None:
    """ACC-91, ACC-92: a trusted proxy names the certificate in Client-Cert, which is empty for a client without one; an
    invalid or expired one is refused."""

    def named(*headers: str) -> Any:
        pairs = [("client-cert", header) for header in headers]
        answer = proxied.runner.run(proxied.client.get("/-/whoami", headers=pairs))
        return answer.json()["name"] if answer.status_code == 200 else answer.status_code

    assert named(der_header(issued["ci"])) == "ci"
    assert named(f" {der_header(issued['ada'])} ") == "ada"
    for headers in ((), ("",), ("::",), (" :: ",)):
        assert named(*headers) == "anonymous", headers
    for bad in (der_header(issued["nobody"]), der_header(issued["expired"]), ":AAAA:", "x", ":=:", ":", ":::", ": :"):
        assert named(bad) == 401, bad
    for several in ((der_header(issued["ci"]),) * 2, ("::", der_header(issued["ci"])), ("::", "::"), ("", "")):
        assert named(*several) == 401, several


def self_signed(subject: x509.Name, *alternatives: x509.GeneralName) -> bytes:
    """The DER of a certificate from 2020 to 2050."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(datetime(2020, 1, 1)).not_valid_after(datetime(2050, 1, 1))
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def subject(*parts: tuple[tuple[x509.ObjectIdentifier, str], ...]) -> x509.Name:
    """parts: the last one first, as in RFC 4514, each with its attributes."""
    return x509.Name(
        x509.RelativeDistinguishedName(x509.NameAttribute(oid, value) for oid, value in part)
        for part in reversed(parts)
    )


CN, ORG, UID = (NameOID.COMMON_NAME, "ci"), (NameOID.ORGANIZATION_NAME, "Example"), (NameOID.USER_ID, "7")
MAIL, SERIAL = (NameOID.EMAIL_ADDRESS, "q@example.com"), (NameOID.SERIAL_NUMBER, "4")


@pytest.mark.parametrize(
    ("key", "parts", "is_known"),
    [
        ("cn=ci,o=Example", [(CN,), (ORG,)], True),
        ("CN=ci, O=Example", [(CN,), (ORG,)], True),
        (" CN = ci , O = Example", [(CN,), (ORG,)], True),
        ("O=Example,CN=ci", [(CN,), (ORG,)], False),
        ("CN=ci+UID=7,O=Example", [(CN, UID), (ORG,)], True),
        ("UID=7+CN=ci,O=Example", [(CN, UID), (ORG,)], True),
        ("uid=7 + cn=ci,O=Example", [(CN, UID), (ORG,)], True),
        ("CN=ci,UID=7,O=Example", [(CN, UID), (ORG,)], False),
        ("SERIALNUMBER=4,CN=ci", [(SERIAL,), (CN,)], True),
        ("serialNumber=4,CN=ci", [(SERIAL,), (CN,)], True),
        ("2.5.4.5=4,CN=ci", [(SERIAL,), (CN,)], True),
        ("emailAddress=q@example.com", [(MAIL,)], True),
        ("organizationName=Example", [(ORG,)], True),
        (r"CN=a\, o = b,O=Example", [((NameOID.COMMON_NAME, "a, o = b"),), (ORG,)], True),
        (r"CN=a\\, o = b", [((NameOID.COMMON_NAME, "a\\"),), ((NameOID.ORGANIZATION_NAME, "b"),)], True),
        ("CN=CI,O=Example", [(CN,), (ORG,)], False),
    ],
)
def test_spellings_of_a_subject(
    tmp_path: Path, key: str, parts: list[tuple[tuple[x509.ObjectIdentifier, str], ...]], is_known: bool
) -> None:
    """ACC-91, RFC 4514: names of attributes in either letter case; the attributes of one part have no order."""
    assert is_client(tmp_path, key, self_signed(subject(*parts))) == is_known


@pytest.mark.parametrize(
    ("key", "name", "is_known"),
    [
        ("email:ada@Example.com", x509.RFC822Name("ada@example.COM"), True),
        ("email:Ada@example.com", x509.RFC822Name("ada@example.com"), False),
        ("uri:SPIFFE://Example.com/app", x509.UniformResourceIdentifier("spiffe://example.COM/app"), True),
        ("uri:https://Me@example.com:1", x509.UniformResourceIdentifier("https://Me@EXAMPLE.com:1"), True),
        ("uri:https://me@example.com", x509.UniformResourceIdentifier("https://Me@example.com"), False),
        ("uri:spiffe://example.com/App", x509.UniformResourceIdentifier("spiffe://example.com/app"), False),
        ("uri:URN:example:a", x509.UniformResourceIdentifier("urn:example:a"), True),
        ("uri:urn:example:A", x509.UniformResourceIdentifier("urn:example:a"), False),
    ],
)
def test_letter_case_of_alternative_names(tmp_path: Path, key: str, name: x509.GeneralName, is_known: bool) -> None:
    """ACC-91, RFC 5280 "URIs" and "Email Addresses": only scheme and host are compared without regard to case."""
    assert is_client(tmp_path, key, self_signed(subject((CN,)), name)) == is_known


def is_client(folder: Path, key: str, der: bytes) -> bool:
    """Whether a file with one entry has the certificate."""
    (folder / "clients.json").write_text(json.dumps({key: {"name": "n"}}))
    entries = certificates.parse_clients(str(folder / "clients.json"))
    return any(name in entries for name in certificates.read_certificate(b64encode(der).decode()).names)


def test_a_refused_certificate_is_named(proxied: Api, caplog: pytest.LogCaptureFixture) -> None:
    """ACC-91, ACC-112: the log has its names, shortened and without control characters; the client learns nothing."""
    name = subject(((NameOID.COMMON_NAME, "a\x1b\x7f"),), ((NameOID.ORGANIZATION_NAME, "o" * 300),))
    alternatives = [x509.DNSName(f"host{number}.example") for number in range(6)]
    header = f":{b64encode(self_signed(name, *alternatives)).decode()}:"
    with caplog.at_level(logging.INFO, logger="annals.denials"):
        refused = proxied.send("GET", "/-/whoami", client_cert=header)
    assert refused.status_code == 401 and "host0" not in refused.text + str(refused.headers)
    [line] = [record.getMessage() + str(vars(record)) for record in caplog.records if "host0" in str(vars(record))]
    assert r'"CN=a\u001b\u007f,O=ooo' in line.replace("\\\\", "\\") and "o" * 151 not in line
    assert '"dns:host3.example", and 2 more' in line and "host4" not in line


def test_a_certificate_with_an_impossible_date(proxied: Api) -> None:
    """ACC-91: a date that no calendar has is refused like all else that is no certificate."""
    der = self_signed(subject((CN,)))
    assert b"20500101000000Z" in der
    header = f":{b64encode(der.replace(b'20500101000000Z', b'00000101000000Z')).decode()}:"
    assert proxied.send("GET", "/-/whoami", client_cert=header).status_code == 401


def test_the_end_of_a_certificate(proxied: Api, issued: dict[str, Issued], monkeypatch: pytest.MonkeyPatch) -> None:
    """ACC-16, ACC-91: the credential expires with its certificate, also during an open connection."""
    read = certificates.read_certificate(der_header(issued["ci"]).strip(":"))
    answer = proxied.send("GET", "/-/whoami", client_cert=der_header(issued["ci"])).json()
    assert answer["expires"] and answer["authenticator"] == "certificate"
    monkeypatch.setattr("annals.api.auth.certificates.time.time", lambda: read.ends)
    assert proxied.send("GET", "/-/whoami", client_cert=der_header(issued["ci"])).status_code == 401


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[]", "an object of subjects"),
        ('{"nonsense": {"name": "n"}}', "neither a subject such as CN=ci,O=Example nor"),
        ('{"dns:": {"name": "n"}}', "has no name after dns:"),
        ('{"CN=a": {"role": "reader"}}', 'needs an object with a "name"'),
        ('{"CN=a": {"name": "key:x"}}', "reserved"),
        ('{"CN=a": {"name": "n"}, "cn=a": {"name": "m"}}', "the same subject"),
        ('{"CN=a+UID=1": {"name": "n"}, "uid=1+CN=a": {"name": "m"}}', "the same subject"),
        ('{"CN=a,favouriteDrink=tea": {"name": "n"}}', "the unknown attribute favouriteDrink; write its OID"),
        ('{"dns:a.example": {"name": "n"}, "DNS:A.example": {"name": "m"}}', "the same subject"),
    ],
)
def test_files_that_are_refused_at_the_start(tmp_path: Path, content: str, reason: str) -> None:
    """ACC-14, ACC-15, ACC-91: the error names the entry and the rule."""
    (tmp_path / "f").write_text(content)
    with pytest.raises(ValidationError, match=reason):
        Settings(tls_clients=str(tmp_path / "f"))


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ({"cert": "server.pem", "key": "ci.key"}, "does not fit the certificate in"),
        ({"cert": "server.pem", "key": "none.key"}, "none.key cannot be read: No such file"),
        ({"cert": "server.key", "key": "server.key"}, "are not PEM files with a certificate and its key"),
        ({"cert": "server.pem"}, "are not PEM files with a certificate and its key"),
        ({"key": "server.key"}, "ANNALS_TLS_KEY needs ANNALS_TLS_CERT"),
        ({"client_ca": "authority.pem"}, "ANNALS_TLS_CLIENT_CA needs ANNALS_TLS_CERT"),
        ({"cert": "server.pem", "key": "server.key", "client_ca": "server.key"}, "is not a PEM file with certificates"),
        ({"cert": "server.pem", "key": "server.key", "clients": "clients.json"}, "needs ANNALS_TLS_CLIENT_CA, or"),
    ],
)
def test_settings_that_do_not_fit(
    monkeypatch: pytest.MonkeyPatch,
    annals: Annals,
    folder: Path,
    authority: Authority,
    issued: dict[str, Issued],
    files: dict[str, str],
    line: str,
) -> None:
    """ACC-90: exit 2 and one line, before anything is created."""
    (authority.folder / "clients.json").write_text(json.dumps(CLIENTS))
    for name, file in files.items():
        monkeypatch.setenv(f"ANNALS_TLS_{name.upper()}", str(authority.folder / file))
    ended = annals("serve", "--port", "0")
    assert (ended.code, len(ended.err.splitlines())) == (2, 1), ended.err
    assert line in ended.err and not [*folder.iterdir()]


@pytest.mark.parametrize(
    ("options", "warns"),
    [
        ({}, True),
        ({"PUBLIC_URL": "http://registry.example"}, True),
        ({"PUBLIC_URL": "https://registry.example"}, False),
        ({"HOST": "127.0.0.1"}, False),
        ({"TLS_CERT": "server.pem", "TLS_KEY": "server.key"}, False),
    ],
)
def test_passwords_in_clear(
    monkeypatch: pytest.MonkeyPatch,
    annals: Annals,
    folder: Path,
    authority: Authority,
    issued: dict[str, Issued],
    options: dict[str, str],
    warns: bool,
) -> None:
    """ACC-93: the start logs a warning if passwords would be sent unencrypted."""
    (folder / "passwords.json").write_text("{}")
    for name, value in {"HOST": "0.0.0.0", "BASIC_FILE": "passwords.json", **options}.items():
        path = str(authority.folder / value) if name.startswith("TLS") else value
        monkeypatch.setenv(f"ANNALS_{name}", path)
    monkeypatch.setattr("annals.api.cli.server.bind_socket", _stop)
    assert ("passwords travel in clear" in annals("serve").err) == warns


def _stop(*_: object) -> None:
    from annals.api.cli.outcome import UsageError

    raise UsageError("the socket is not of interest")


def test_who_a_certificate_would_be(
    monkeypatch: pytest.MonkeyPatch, annals: Annals, folder: Path, issued: dict[str, Issued]
) -> None:
    """ACC-91: `annals auth check --certificate` prints the caller."""
    (folder / "clients.json").write_text(json.dumps(CLIENTS))
    monkeypatch.setenv("ANNALS_TLS_CLIENTS", "clients.json")
    assert json.loads(annals("auth", "check", "--certificate", issued["app"].certificate).out)["name"] == "app"
    ended = annals("auth", "check", "--certificate", issued["nobody"].certificate)
    assert ended.code == 1 and 'alternative name of the certificate: "CN=ci", "dns:ci"' in ended.err
