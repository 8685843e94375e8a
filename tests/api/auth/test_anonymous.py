"""Callers without a credential: their rights depend only on the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from annals.domain.model.builtin import default_source
from tests.support.console import Annals, annals, folder, logs
from tests.support.registries.in_process import create, serving

__all__ = ["annals", "folder", "logs"]

TOKENS = '{"t": {"name": "n", "role": "admin"}}'
OPEN: dict[str, Any] = {}
READ: dict[str, Any] = {"read_only_anonymous": True}
CLOSED: dict[str, Any] = {"tokens": TOKENS}
BOTH: dict[str, Any] = {**READ, **CLOSED}

#: Settings, the role, and the status of a read, a write, and a request for admins.
ROWS = [
    ("ACC-120", OPEN, "writer", 200, 200, 403),
    ("ACC-120", READ, "reader", 200, 403, 403),
    ("ACC-121", CLOSED, None, 401, 401, 401),
    ("ACC-121", BOTH, "reader", 200, 401, 401),
]


@pytest.mark.parametrize(("rule", "options", "role", "reads", "writes", "administers"), ROWS)
def test_roles_of_anonymous(
    sqlite_url: str, rule: str, options: dict[str, Any], role: str | None, reads: int, writes: int, administers: int
) -> None:
    """ACC-120, ACC-121: callers without a credential have the role of the settings; refused writes are not recorded."""
    create(sqlite_url)
    with serving(sqlite_url, ids="first") as api:
        api.done("PUT", "/dirs/d/files/f", {})
    with serving(sqlite_url, **options) as api:
        assert api.send("GET", "/-/whoami").json()["role"] == role
        for path in ("/", "/dirs", "/dirs/d/files/f", "/export", "/model", "/-/history/dirs/d", "/-/log", "/-/events"):
            assert api.send("GET", path).status_code == reads, path
        before = api.send("GET", "/-/log/head", authorization="Bearer t").content
        for path in ("/dirs/d", "/capabilities"):
            assert api.send("PATCH", path, {}).status_code == writes, path
        assert api.send("GET", "/-/links").status_code == administers
        if writes != 200:
            assert api.send("GET", "/-/log/head", authorization="Bearer t").content == before


@pytest.mark.parametrize(("options", "status"), [(READ, 403), (BOTH, 401), (OPEN, 200)])
@pytest.mark.parametrize("path", ["/subscriptions", "/-/metrics"])
def test_what_anonymous_readers_do_not_read(sqlite_url: str, options: dict[str, Any], status: int, path: str) -> None:
    """ACC-123: subscriptions and metrics; anonymous writers and callers with a credential can read them."""
    create(sqlite_url)
    with serving(sqlite_url, **options) as api:
        assert api.send("GET", path).status_code == status
        if path == "/subscriptions" and status != 200:
            assert api.send("POST", path, {"sink": "http://127.0.0.1:1"}).status_code == status
            assert api.send("POST", "/-/subscriptions/preview", {}).status_code == status
        if options is BOTH:
            assert api.send("GET", path, authorization="Bearer t").status_code == 200


@pytest.mark.parametrize(("options", "status"), [(READ, 403), ({**BOTH, "api_keys": True}, 401), (OPEN, 403)])
def test_what_anonymous_callers_never_read(sqlite_url: str, options: dict[str, Any], status: int) -> None:
    """ACC-123: links, keys, grants and settings; administrators can read them."""
    create(sqlite_url)
    paths = ["/-/links", "/-/grants", "/-/settings"]
    if "api_keys" in options:  # without them, there is no list of keys
        paths.append("/-/keys")
    with serving(sqlite_url, **options) as api:
        for path in paths:
            assert api.send("GET", path).status_code == status, path
            if "tokens" in options:
                assert api.send("GET", path, authorization="Bearer t").status_code == 200, path


def test_a_401_says_what_to_send(sqlite_url: str) -> None:
    """ACC-18, ACC-121: also if anonymous callers may read; a bad credential is never anonymous (ACC-11)."""
    create(sqlite_url)
    with serving(sqlite_url, **BOTH) as api:
        answer = api.send("PUT", "/dirs/d", {})
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="annals"')
        assert answer.json()["type"].endswith("#unauthorized")
        assert api.send("GET", "/", authorization="Bearer wrong").status_code == 401


@pytest.mark.parametrize(
    ("host", "options", "refused"),
    [
        ("0.0.0.0", {}, True),
        ("::", {}, True),
        ("192.0.2.7", {}, True),
        ("registry.example", {}, True),
        ("0.0.0.0", {"ANNALS_READ_ONLY_ANONYMOUS": "true"}, True),
        ("0.0.0.0", {"ANNALS_TOKENS": TOKENS}, False),
        ("0.0.0.0", {"ANNALS_JWT_KEYS": "https://issuer.example/keys"}, False),
        ("0.0.0.0", {"ANNALS_OPEN": "true"}, False),
        ("127.0.0.1", {}, False),
        ("127.1.2.3", {}, False),
        ("::1", {}, False),
        ("localhost", {}, False),
    ],
)
def test_no_open_server_by_accident(
    monkeypatch: pytest.MonkeyPatch, annals: Annals, folder: Path, host: str, options: dict[str, str], refused: bool
) -> None:
    """ACC-122: exit code 2 and one line that names the remedies, before the store is created."""
    for name, value in options.items():
        monkeypatch.setenv(name, value)
    if not refused:
        monkeypatch.setattr("annals.api.cli.server.bind_socket", _stop)
    ended = annals("serve", "--host", host, "--port", "0")
    if refused:
        *_, line = ended.err.splitlines()
        assert (ended.code, len(ended.err.splitlines())) == (2, 1)
        for way in ("ANNALS_TOKENS", "ANNALS_API_KEYS", "127.0.0.1", "--open", "ANNALS_OPEN=true", host):
            assert way in line
        assert not [*folder.iterdir()]
    else:
        assert "the socket" in ended.err
        assert ("anybody who reaches" in ended.err) == ("ANNALS_OPEN" in options)


def _stop(*_: object) -> None:
    from annals.api.cli.outcome import UsageError

    raise UsageError("the socket is not of interest")


def test_the_flags(monkeypatch: pytest.MonkeyPatch, annals: Annals, folder: Path) -> None:
    """ACC-122: --open and --read-only-anonymous have the effect of the settings."""
    monkeypatch.setattr("annals.api.cli.server.bind_socket", _stop)
    ended = annals("serve", "--host", "0.0.0.0", "--open", "--read-only-anonymous")
    assert "anybody who reaches 0.0.0.0:8080 may read" in ended.err


def test_hosts_are_checked_where_anonymous_callers_read(sqlite_url: str) -> None:
    """ACC-87, ACC-121: pages of other sites must not read what needs no credential."""
    create(sqlite_url)
    for options, status in ((BOTH, 421), (CLOSED, 401)):
        with serving(sqlite_url, public_url=None, **{"hosts": None, **options}) as api:
            assert api.send("GET", "/", host="evil.example").status_code == status


def test_an_open_server_reads_no_credential(sqlite_url: str) -> None:
    """ACC-10, ACC-120: without authenticators, clients that send a credential are anonymous too."""
    create(sqlite_url)
    with serving(sqlite_url) as api:
        for authorization in ("Bearer x", "Basic x", "x"):
            assert api.send("GET", "/-/whoami", authorization=authorization).json()["name"] == "anonymous"


def test_anonymous_readers_of_the_facade(sqlite_url: str) -> None:
    """ACC-121: a read with a body counts as a read; a 401 for a write names all schemes."""
    create(sqlite_url, default_source())
    path = "/compat/confluent/subjects/s/versions"
    with serving(sqlite_url, **BOTH) as api:
        assert api.send("GET", "/compat/confluent/subjects").status_code == 200
        assert api.send("POST", "/compat/confluent/subjects/s", {"schema": '"int"'}).status_code == 404
        refused = api.send("POST", path, {"schema": '"int"'})
        assert (refused.status_code, refused.json()["error_code"]) == (401, 401)
        assert [value[:5] for value in refused.headers.get_list("www-authenticate")] == ["Beare", "Basic"]
