"""Limits of failed attempts and rates, and metrics and log lines of refused requests."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from annals.api.auth.limits import failed_attempts
from annals.api.auth.limits.failed_attempts import MAX_ENTRIES, WINDOW_SECONDS, FailedAttempts
from annals.api.auth.limits.request_rates import RequestRates
from annals.domain.errors.http_errors import TooManyAttempts, TooManyRequests
from annals.domain.model.builtin import default_source
from tests.api.auth.test_basic import ENTRIES, basic
from tests.api.auth.test_jwt import KEY, jwk, token
from tests.support.registries.in_process import Api, create, serving

TOKENS = json.dumps({"t": {"name": "n", "role": "admin"}})
GOOD = {"authorization": "Bearer t"}


class Attempts:
    """Failed attempts with a clock that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.failed = FailedAttempts(lambda: self.now)

    def wait(self, address: str, name: str = "") -> int:
        try:
            self.failed.check(address, name)
        except TooManyAttempts as refused:
            return int(refused.arguments["retry_after"])
        return 0

    def fail(self, times: int, address: str, name: str = "") -> None:
        for _ in range(times):
            self.failed.add(address, name)
            self.now += 1


def test_failures_of_a_name() -> None:
    """ACC-110: five in five minutes by address and name; other names and addresses are not affected."""
    attempts = Attempts()
    attempts.fail(4, "192.0.2.1", "ada")
    assert attempts.wait("192.0.2.1", "ada") == 0
    attempts.fail(1, "192.0.2.1", "ada")
    assert attempts.wait("192.0.2.1", "ada") == WINDOW_SECONDS - 5
    assert attempts.wait("192.0.2.1", "bob") == attempts.wait("192.0.2.2", "ada") == attempts.wait("192.0.2.1") == 0
    attempts.now = WINDOW_SECONDS
    assert attempts.wait("192.0.2.1", "ada") == 0
    attempts.fail(1, "192.0.2.1", "ada")
    assert attempts.wait("192.0.2.1", "ada") == 0, "the others of the five are still within the time, the first is not"


def test_failures_of_an_address() -> None:
    """ACC-110: fifty by address, regardless of the names."""
    attempts = Attempts()
    for number in range(49):
        attempts.fail(1, "192.0.2.1", f"n{number}")
    assert attempts.wait("192.0.2.1") == 0
    attempts.fail(1, "192.0.2.1")
    assert attempts.wait("192.0.2.1") == attempts.wait("192.0.2.1", "new") == WINDOW_SECONDS - 50
    assert attempts.wait("192.0.2.2", "n1") == 0


@pytest.mark.parametrize(
    ("address", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("192.0.2.1", "192.0.2.2", False),
        ("", "unknown", False),
    ],
)
def test_networks_of_ipv6(address: str, other: str, same: bool) -> None:
    """ACC-110: addresses of an IPv6 network (/64) count as one client."""
    attempts = Attempts()
    attempts.fail(50, address)
    assert (attempts.wait(other) > 0) == same


def test_the_oldest_entries_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """ACC-110: at most 10,000 entries are stored, with at most 256 characters of a name."""
    assert MAX_ENTRIES == 10_000
    monkeypatch.setattr(failed_attempts, "MAX_ENTRIES", 100)
    attempts = Attempts()
    for number in range(300):
        attempts.fail(1, f"192.0.2.{number % 200}", "x" * 10_000)
    assert len(attempts.failed._failures) == 100
    assert max(len(name or "") for _, name in attempts.failed._failures) == 256


@pytest.fixture
def api(sqlite_url: str, tmp_path: Path) -> Iterator[Api]:
    create(sqlite_url)
    (tmp_path / "passwords.json").write_text(json.dumps(ENTRIES))
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [jwk(KEY)]}))
    options: dict[str, Any] = {"basic_file": str(tmp_path / "passwords.json"), "jwt_keys": str(tmp_path / "jwks.json")}
    with serving(sqlite_url, tokens=TOKENS, trusted_proxies="127.0.0.1", cors_origins="*", **options) as api:
        yield api


def test_too_many_attempts(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """ACC-110: 429 before any hashing, also for unknown names; by the address that trusted proxies report."""
    hashed: list[str] = []

    def refuse(hash: str, password: str) -> bool:
        hashed.append(password)
        return False

    monkeypatch.setattr("annals.api.auth.basic.verify_hash", refuse)
    attacker = {"x_forwarded_for": "198.51.100.7"}
    for name in ("ada", "nobody"):
        for count in range(8):
            path = "/compat/confluent/schemas/types" if count % 2 else "/dirs"
            answer = api.send("GET", path, authorization=basic(name, f"guess {count}"), **attacker)
            assert answer.status_code == (401 if count < 5 else 429)
        assert 290 <= int(answer.headers["retry-after"]) <= 300
        assert len(hashed) == 5
        hashed.clear()
    assert (
        api.send("GET", "/", authorization=basic("ada", "x"), **attacker).json()["type"].endswith("#too_many_attempts")
    )
    monkeypatch.undo()
    good = {"authorization": basic("ada", "correct horse")}
    assert api.send("GET", "/dirs", **good, **attacker).status_code == 429
    assert api.send("GET", "/dirs", **good, x_forwarded_for="198.51.100.8").status_code == 200
    assert api.send("GET", "/dirs", **GOOD, **attacker).status_code == 200
    for _ in range(40):
        api.send("GET", "/", authorization="Bearer guess", **attacker)
    assert api.send("GET", "/", **GOOD, **attacker).status_code == 429
    assert api.send("GET", "/", authorization="nonsense", **attacker).status_code == 429
    assert api.send("GET", "/-/livez", **attacker).status_code == 200


@pytest.mark.parametrize(
    ("credential", "status"),
    [
        (token(exp=5), 200),
        (token(exp=5)[:-4] + "AAAA", 429),
        (token(exp=5, nbf=2**33), 429),
        (token(exp=0, sub=""), 429),
    ],
    ids=["expired", "forged", "never valid", "of nobody"],
)
def test_expired_tokens_are_no_guesses(api: Api, credential: str, status: int) -> None:
    """ACC-110: the tokens of an office, which has one address, may expire while programs still send them."""
    for _ in range(50):
        assert api.send("GET", "/", authorization=f"Bearer {credential}").status_code == 401
    assert api.send("GET", "/", **GOOD).status_code == status


def test_guesses_at_the_same_time(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """ACC-110: only five are checked, so a right password among the others is not detected."""

    def check(hash: str, password: str) -> bool:
        time.sleep(0.005)
        return password == "guess 19"

    monkeypatch.setattr("annals.api.auth.basic.verify_hash", check)

    async def guess() -> list[int]:
        requests = [
            api.client.get("/dirs", headers={"authorization": basic("ada", f"guess {number}")}) for number in range(20)
        ]
        return [answer.status_code for answer in await asyncio.gather(*requests)]

    statuses = api.runner.run(guess())
    assert statuses.count(401) == 5 and statuses.count(429) == 15


def test_no_body_is_read(api: Api) -> None:
    """ACC-114: a request that is 401 or 429 is answered before its body is read."""

    async def status(authorization: str, path: str) -> int:
        sent: list[Any] = []

        async def receive() -> Any:
            raise AssertionError("the body is read")

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"h"), (b"authorization", authorization.encode()), (b"content-length", b"1000000")]
        scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
        more = {"headers": headers, "scheme": "http", "server": ("h", 80), "client": ("198.51.100.9", 1)}
        await api.app({**scope, **more, "root_path": ""}, receive, send)
        return int(sent[0]["status"])

    paths = ("/dirs", "/subscriptions", "/-/links", "/-/subscriptions/preview", "/-/import")
    for path in (*paths, "/compat/confluent/subjects/s/versions", "/compat/schemaregistry/v0.2/v0.2/schemagroups"):
        assert api.runner.run(status("Bearer guess", path)) == 401
    for _ in range(50):
        api.runner.run(status("Bearer guess", "/"))
    for path in (*paths, "/compat/confluent/subjects/s/versions"):
        assert api.runner.run(status("Bearer t", path)) == 429


def test_rates() -> None:
    """Reads and writes of a caller are counted separately; the requests of one second may arrive at the same time."""
    now = [0.0]
    rates = RequestRates(10, 0.5, lambda: now[0])

    def waits(caller: str, is_read: bool, count: int) -> list[int]:
        found = []
        for _ in range(count):
            try:
                rates.count(caller, is_read)
                found.append(0)
            except TooManyRequests as refused:
                found.append(int(refused.arguments["retry_after"]))
        return found

    assert waits("a", True, 12) == [0] * 10 + [1, 1]
    assert waits("b", True, 1) == [0]
    assert waits("a", False, 2) == [0, 2]
    now[0] = 0.2
    assert waits("a", True, 3) == [0, 0, 1]
    now[0] = 2.3
    assert waits("a", False, 2) == [0, 2]
    assert not RequestRates(None, None).is_on and RequestRates(None, 1).is_on


def test_rates_over_http(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """429 with the rate and Retry-After, by address for anonymous callers; Confluent's API has the same limits."""
    monkeypatch.setattr(RequestRates.__init__, "__defaults__", (lambda: 0.0,))  # all requests within one moment
    create(sqlite_url)
    options: dict[str, Any] = {"rate_writes": 2, "trusted_proxies": "127.0.0.1"}
    with serving(sqlite_url, **options) as api:
        here, there = {"x_forwarded_for": "192.0.2.1"}, {"x_forwarded_for": "192.0.2.2"}
        statuses = [api.send("PUT", "/dirs/d", {}, **here).status_code for _ in range(4)]
        assert statuses == [201, 200, 429, 429]
        answer = api.send("PUT", "/dirs/d", {}, **here)
        assert (answer.headers["retry-after"], answer.json()["args"]["rate"]) == ("1", "2")
        assert answer.json()["type"].endswith("#too_many_requests")
        assert api.send("PUT", "/dirs/d", {}, **there).status_code == 200
        assert {api.send("GET", "/dirs", **here).status_code for _ in range(9)} == {200}
        facade = api.send("PUT", "/compat/confluent/config", {}, **here)
        assert (facade.status_code, facade.headers["retry-after"]) == (429, "1")


def test_sign_ins_have_a_rate(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sign-in is stored; the caller of a token is counted at every door."""
    monkeypatch.setattr(RequestRates.__init__, "__defaults__", (lambda: 0.0,))  # all requests within one moment
    create(sqlite_url)
    with serving(sqlite_url, tokens=TOKENS, rate_writes=2, rate_reads=2) as api:
        form = {"content_type": "application/x-www-form-urlencoded", "sec_fetch_site": "same-origin"}
        statuses = [api.send("POST", "/ui/login", b"token=t", **form).status_code for _ in range(4)]
        assert statuses == [303, 303, 429, 429]
        assert [api.send("GET", "/-/whoami", **GOOD).status_code for _ in range(4)] == [200, 200, 429, 429]


def test_a_bad_credential_counts_once(api: Api) -> None:
    """ACC-110: also if the request asks to wait for a position."""
    bad = {"authorization": basic("ada", "guess")}
    statuses = [api.send("GET", "/-/whoami?waitfor=0", **bad).status_code for _ in range(6)]
    assert statuses == [401] * 5 + [429]


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    names = ("address", "method", "path", "reason", "caller", "detail", "left_out")
    return [
        {name: getattr(record, name) for name in names if hasattr(record, name)}
        for record in caplog.records
        if record.name == "annals.denials"
    ]


def test_denials_are_logged_and_counted(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    """ACC-111, ACC-112: one line for each denial, with the name of a failed sign-in only if the name exists."""
    caplog.set_level(logging.INFO, "annals")
    place = {"x_forwarded_for": "192.0.2.9"}
    jo = basic("jörg", "pässwörd:€")
    api.send("GET", "/dirs/d?secret=1", authorization=basic("ada", "wrong"), **place)
    api.send("GET", "/", authorization=basic("mallory", "wrong"), **place)
    api.send("GET", "/", authorization=f"Bearer {token(exp=5)}", **place)
    api.send("GET", "/", authorization="Bearer guess", **place)
    api.send("PUT", "/dirs/e", {}, authorization=jo, **place)
    api.send("PUT", "/dirs/e", {}, origin="https://evil.example", sec_fetch_site="cross-site", **place)
    api.send("GET", "/dirs/e", sec_fetch_dest="script", **place)
    api.send("GET", "/dirs/e", host="evil.example", **place)
    at = {"address": "192.0.2.9", "method": "GET", "path": "/"}
    wrong = {"detail": "the name or the password is wrong"}
    assert lines(caplog) == [
        {**at, "path": "/dirs/d", "reason": "basic: password", "caller": "ada", **wrong},
        {**at, "reason": "basic: unknown", **wrong},
        {**at, "reason": "jwt: expired", "detail": "it has expired"},
        {**at, "reason": "credential: unknown", "detail": "no authenticator that is on knows this bearer credential"},
        {**at, "method": "PUT", "path": "/dirs/e", "reason": "forbidden", "caller": "jörg"},
        {**at, "method": "PUT", "path": "/dirs/e", "reason": "cross_origin"},
        {**at, "path": "/dirs/e", "reason": "forbidden_destination"},
        {**at, "path": "/dirs/e", "reason": "misdirected_request"},
    ]
    metrics = api.send("GET", "/-/metrics", **GOOD).text
    for line in (
        'annals_auth_failures_total{authenticator="basic",reason="password"} 1.0',
        'annals_auth_failures_total{authenticator="basic",reason="unknown"} 1.0',
        'annals_auth_failures_total{authenticator="jwt",reason="expired"} 1.0',
        'annals_auth_failures_total{authenticator="unknown",reason="unknown"} 1.0',
        'annals_denied_total{kind="forbidden"} 1.0',
        'annals_denied_total{kind="cross_origin"} 2.0',
        'annals_denied_total{kind="host"} 1.0',
    ):
        assert line in metrics, line


def test_lines_are_bounded(api: Api, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """ACC-112: ten a second for each reason; the next line has the number of omitted lines."""
    now = [100.0]
    monkeypatch.setattr("annals.api.http.access_log.rate_by_reason.time.monotonic", lambda: now[0])
    for number in range(30):
        api.send("GET", "/dirs", host="evil.example")
        if number == 24:
            now[0] += 1
    assert [line.get("left_out") for line in lines(caplog)] == [None] * 10 + [15] + [None] * 4


def test_credentials_are_nowhere(
    sqlite_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ACC-113: after good and bad credentials, no log, table, metric, response or export contains a credential."""
    caplog.set_level(logging.DEBUG)
    create(sqlite_url)
    marker = "Mark3rSecret"
    entry = {"password": ENTRIES["ada"]["password"], "role": "admin"}
    (tmp_path / "passwords.json").write_text(json.dumps({"ada": entry}))
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [jwk(KEY)]}))
    monkeypatch.setattr("annals.api.auth.basic.verify_hash", lambda hash, password: password == f"{marker}pass")
    monkeypatch.setattr(failed_attempts, "MAX_BY_ADDRESS", 10**6)
    tokens = json.dumps({f"{marker}token": {"name": "n", "role": "admin"}})
    good_jwt, bad_jwt = token(role="admin", jti=marker), token(jti=marker, exp=marker)
    marked = base64.urlsafe_b64encode(marker.encode()).decode()
    credentials = [
        *(f"Bearer {secret}" for secret in (f"{marker}token", f"{marker}bad", good_jwt, bad_jwt)),
        f"Bearer ey{marker}.{marked}.x",
        *(f"Bearer {token(jti=marker, aud=audience)}" for audience in (marker, [marker], {marker: 1})),
        basic("ada", f"{marker}pass"),
        basic("ada", f"{marker}bad"),
        basic(f"{marker}name", f"{marker}bad"),
        f"{marker} {marker}",
        f"Basic {marker}",
    ]  # fmt: skip
    secrets = [marker, marked, good_jwt, bad_jwt, *(text.partition(" ")[2] for text in credentials)]
    paths = ("/", "/dirs", "/export", "/-/whoami", "/-/metrics", "/-/log", "/-/docs", "/compat/confluent/subjects")
    options: dict[str, Any] = {
        "basic_file": str(tmp_path / "passwords.json"),
        "jwt_keys": str(tmp_path / "jwks.json"),
        "tokens": tokens,
        "denials_kept": 1000,
    }
    with serving(sqlite_url, **options) as api:
        shown = []
        for authorization in credentials:
            api.send("PUT", "/dirs/d", {}, authorization=authorization)
            api.send("PUT", "/dirs/d/files/f", b"x", authorization=authorization)
            answers = [api.send("GET", path, authorization=authorization) for path in paths]
            shown += [answer.text + str(answer.headers) for answer in answers]
        assert api.send("GET", "/dirs/d", authorization=credentials[0]).status_code == 200
    stored = b"".join(file.read_bytes() for file in Path(tmp_path).glob("**/annals.db*"))
    logged = "\n".join(str(record.__dict__) for record in caplog.records if record.name != "asyncio")
    for secret in filter(None, secrets):
        assert secret not in logged, secret
        assert secret.encode() not in stored, secret
        assert not [text for text in shown if secret in text], secret
    assert stored


def test_many_guesses_at_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """ACC-110: running checks count as failures, by name and by address; other addresses are not affected."""
    hashed: list[str] = []

    def check(hash: str, password: str) -> bool:
        hashed.append(password)
        time.sleep(0.05)
        return password == "right"

    monkeypatch.setattr("annals.api.auth.basic.verify_hash", check)

    async def send_all(attempts: list[tuple[str, str, str]]) -> list[int]:
        requests = [
            api.client.get("/dirs", headers={"authorization": basic(name, password), "x-forwarded-for": address})
            for name, password, address in attempts
        ]
        return [answer.status_code for answer in await asyncio.gather(*requests)]

    # one name: five of a hundred guesses are checked, and a request from another address does not wait for the others
    guesses = [("ada", f"guess{number}", "192.0.2.1") for number in range(100)]
    statuses = api.runner.run(send_all([*guesses, ("ada", "right", "192.0.2.2")]))
    assert (len(hashed), statuses[-1], set(statuses[:-1]) <= {401, 429}) == (6, 200, True)
    assert statuses.count(429) >= 95
    # many names: fifty are checked, and the queue has room for other addresses; the cached good password is not hashed
    hashed.clear()
    names = [(f"name{number}", "guess", "192.0.2.3") for number in range(200)]
    statuses = api.runner.run(send_all([*names, ("ada", "right", "192.0.2.4")]))
    assert (len(hashed), statuses[-1], 503 in statuses) == (50, 200, False)
    # many requests with the same good credential all succeed, without another hashing
    hashed.clear()
    assert set(api.runner.run(send_all([("ada", "right", "192.0.2.5")] * 100))) == {200}
    assert hashed == []


FACADE_PATHS: Final = {
    "GET": (
        "/compat/schemaregistry/v0.2/schemagroups/shut",
        "/compat/schemaregistry/v0.2/schemagroups/nowhere/schemas",
        "/compat/confluent/subjects/:.shut:s/versions",
        "/compat/confluent/contexts/.nowhere/subjects/s/versions/1",
        "/compat/confluent/subjects/s/versions",  # the caller does not see the Group of the default context
        "/ui/explore/schemagroups/shut",
    ),
    "POST": ("/compat/confluent/subjects/:.shut:s",),
}
#: Paths that are 404 for other reasons.
OTHER_FACADE_PATHS: Final = {
    "GET": (
        "/compat/schemaregistry/v0.2/schemagroups/seen/schemas/none",
        "/compat/schemaregistry/v0.2/nothing",
        "/compat/confluent/subjects/:.seen:none/versions",
        "/compat/confluent/schemas/ids/99",
        "/compat/confluent/nothing",
        "/ui/explore/schemagroups/seen/schemas/none",
        "/ui/nothing",
    ),
    "POST": ("/compat/confluent/subjects/:.seen:none",),
}


def test_reads_of_hidden_groups_by_other_doors_are_counted(sqlite_url: str) -> None:
    """ACC-111: reads of hidden Groups through the legacy APIs, Confluent's API and pages, by the Group in the path."""
    callers = {"part": {"name": "part", "groups": {"/schemagroups/seen": "reader"}}}
    create(sqlite_url, default_source())
    with serving(sqlite_url, tokens=json.dumps(json.loads(TOKENS) | callers)) as api:
        for group in ("shut", "seen"):
            api.done("PUT", f"/schemagroups/{group}", {}, **GOOD)
        part = {"authorization": "Bearer part"}

        def hidden() -> float:
            metrics = api.send("GET", "/-/metrics", **GOOD).text
            return sum(float(line.split()[1]) for line in metrics.splitlines() if 'denied_total{kind="hidden"}' in line)

        def not_found(paths: dict[str, tuple[str, ...]]) -> list[float]:
            counts = []
            for method, path in ((method, path) for method, each in paths.items() for path in each):
                before, body = hidden(), b'{"schema": "\\"int\\""}' if method == "POST" else None
                answer = api.send(method, path, body, **part)
                assert answer.status_code == 404, path
                assert api.send(method, path, body, **GOOD).status_code in (200, 404)
                counts.append(hidden() - before)
            return counts

        assert not_found(FACADE_PATHS) == [1.0] * 7
        assert not_found(OTHER_FACADE_PATHS) == [0.0] * 8


@pytest.mark.parametrize("path", ["/dirs/shut", "/dirs/nowhere", "/-/history/dirs/shut", "/dirs/shut/files/f$details"])
def test_reads_of_hidden_groups_are_counted(sqlite_url: str, path: str) -> None:
    """ACC-111: whether the Group exists or not; other 404s are not counted."""
    callers = {"part": {"name": "part", "groups": {"/dirs/seen": "reader"}}}
    create(sqlite_url)
    with serving(sqlite_url, tokens=json.dumps(json.loads(TOKENS) | callers)) as api:
        api.done("PUT", "/dirs/shut/files/f", b"x", **GOOD)
        api.done("PUT", "/dirs/seen", {}, **GOOD)
        part = {"authorization": "Bearer part"}

        def hidden() -> list[str]:
            metrics = api.send("GET", "/-/metrics", **GOOD).text
            return [line for line in metrics.splitlines() if line.startswith('annals_denied_total{kind="hidden"}')]

        for seen in ("/dirs/seen", "/dirs/seen/files", "/dirs/seen/files/none", "/-/nothing", "/subscriptions/none"):
            api.send("GET", seen, **part)
        api.send("GET", "/dirs/nowhere", **GOOD)
        assert hidden() == []
        assert api.send("GET", path, **part).status_code == 404
        assert hidden() == ['annals_denied_total{kind="hidden"} 1.0']
