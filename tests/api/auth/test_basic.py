"""Basic authentication with the file of passwords."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from argon2 import PasswordHasher, Type
from pydantic import ValidationError

from annals.api.auth.basic import CONCURRENT_HASHINGS, MAX_WAITING, PasswordVerifier, parse_passwords
from annals.api.auth.credentials import InvalidCredential, RequestCredential, Scheme
from annals.api.auth.password_hashes import check_hash
from annals.api.settings.settings import Settings
from tests.support.registries.in_process import Api, create, serving
from tests.support.serving import ROOT, environment

_CHEAP: Final = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
ADA: Final = _CHEAP.hash("correct horse")
UNICODE: Final = _CHEAP.hash("pässwörd:€")
ENTRIES: Final[dict[str, Any]] = {
    "ada": {"password": ADA, "role": "admin"},
    "jörg": {"password": UNICODE, "groups": {"/dirs/d": "writer"}},
}


def basic(name: str, password: str, encoding: str = "utf-8") -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode(encoding)).decode()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("passwords") / "passwords.json"
    found.write_text(json.dumps(ENTRIES))
    return found


@pytest.fixture(scope="module")
def api(file: Path) -> Iterator[Api]:
    url = f"sqlite:///{file.parent}/annals.db"
    create(url)
    with serving(url, basic_file=str(file), tokens='{"t": {"name": "t", "role": "reader"}}') as api:
        yield api


@pytest.mark.parametrize(
    ("authorization", "name"),
    [
        (basic("ada", "correct horse"), "ada"),
        (basic("ada", "correct horse").replace("Basic", "bASIC"), "ada"),
        (basic("jörg", "pässwörd:€"), "jörg"),
        (basic("jörg", "pässwörd:€", "cp1252"), None),
        (basic("ada", "correct horse "), None),
        (basic("ada", ""), None),
        (basic("Ada", "correct horse"), None),
        (basic("nobody", "correct horse"), None),
        (basic("", "correct horse"), None),
        (basic("ada", "x" * 1025), None),
        (basic("\ud83d".encode("utf-16", "surrogatepass").decode("latin-1"), "x"), None),
        (basic("t", "t"), None),
        ("Basic", None),
        ("Basic ====", None),
        ("Basic " + base64.b64encode(b"ada").decode(), None),
        (basic("ada", "correct horse") + " x", None),
    ],
)
def test_names_and_passwords(api: Api, authorization: str, name: str | None) -> None:
    """ACC-30, ACC-34: names and passwords are UTF-8; a password may have colons; a token is no password."""
    answer = api.send("GET", "/-/whoami", authorization=authorization)
    assert (answer.json().get("name"), answer.status_code) == (name, 200 if name else 401)
    if name is None:
        assert answer.headers.get_list("www-authenticate") == [
            'Bearer realm="annals"',
            'Basic realm="annals", charset="UTF-8"',
        ]


def test_pages_get_no_challenge_that_opens_a_dialog(api: Api) -> None:
    """ACC-18: a script of a browser gets no challenge of Basic."""
    answer = api.send("GET", "/", sec_fetch_mode="cors")
    assert (answer.status_code, answer.headers.get_list("www-authenticate")) == (401, ['Bearer realm="annals"'])


def test_a_token_as_password_in_one_api_only(api: Api) -> None:
    """ACC-12: Confluent's API also accepts a token as the password, in addition to the passwords of the file."""
    for path, credential, status in (
        ("/compat/confluent/schemas/types", basic("anyone", "t"), 200),
        ("/compat/confluent/schemas/types", basic("ada", "correct horse"), 200),
        ("/compat/confluent/schemas/types", basic("ada", "wrong"), 401),
        ("/", basic("anyone", "t"), 401),
    ):
        assert api.send("GET", path, authorization=credential).status_code == status, (path, credential)


def test_roles_of_entries(api: Api) -> None:
    """ACC-30."""
    jo = {"authorization": basic("jörg", "pässwörd:€")}
    assert api.send("PUT", "/dirs/d", {}, **jo).status_code in (200, 201)
    assert api.send("PUT", "/dirs/e", {}, **jo).status_code == 403
    assert api.send("PUT", "/dirs/e", {}, authorization=basic("ada", "correct horse")).status_code in (200, 201)


def phc(kind: str = "argon2id", version: int = 19, m: int = 65536, t: int = 3, p: int = 4) -> str:
    return f"${kind}$v={version}$m={m},t={t},p={p}${'A' * 22}${'A' * 43}"


@pytest.mark.parametrize(
    ("hash", "taken"),
    [
        (ADA, True),
        (phc(), True),
        (phc(m=19 * 1024, t=2, p=1), True),
        (phc(m=256 * 1024, t=10, p=4), True),
        (phc(m=19 * 1024 - 1), False),
        (phc(m=256 * 1024 + 1), False),
        (phc(t=1), False),
        (phc(t=11), False),
        (phc(p=5), False),
        (phc(p=0), False),
        (phc(version=16), False),
        (phc("argon2i"), False),
        (phc("argon2d"), False),
        (PasswordHasher(2, 19 * 1024, 1, type=Type.I).hash("x"), False),
        ("$2b$12$" + "a" * 53, False),
        ("correct horse", False),
        ("", False),
        (None, False),
        (5, False),
        (phc() + "\n", False),
        (phc().replace("$m=", "$m=0"), False),
    ],
    ids=count(1),  # some hashes have random salts, and all processes of pytest-xdist must generate the same ids
)
def test_hashes(hash: Any, taken: bool) -> None:
    """ACC-31: argon2id with 19 to 256 MiB, 2 to 10 passes, up to 4 lanes; nothing else."""
    if taken:
        assert check_hash(hash) == hash
    else:
        with pytest.raises(ValueError, match="argon2id"):
            check_hash(hash)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "JSON|Expecting"),
        ("[]", "an object of names"),
        ('{"a": "x"}', 'the entry "a" needs an object with a "password"'),
        ('{"a": {"role": "reader"}}', 'needs an object with a "password"'),
        (json.dumps({"a": {"password": ADA, "rolle": "reader"}}), "needs an object"),
        (json.dumps({"a": {"password": ADA, "role": "king"}}), "king"),
        (json.dumps({"a": {"password": "secret"}}), "a hash of argon2id"),
        (json.dumps({"a:b": {"password": ADA}}), 'the name "a:b" has a colon'),
        (json.dumps({"console": {"password": ADA}}), "reserved"),
        (json.dumps({" a": {"password": ADA}}), "white space"),
        ('{"a": {"password": "x"}, "a": {"password": "x"}}', "twice"),
    ],
)
def test_files_that_are_refused_at_the_start(tmp_path: Path, content: str, reason: str) -> None:
    """ACC-14, ACC-15, ACC-30, ACC-34: the error names the entry and the rule."""
    (tmp_path / "f").write_text(content)
    with pytest.raises(ValidationError, match=reason) as refused:
        Settings(basic_file=str(tmp_path / "f"))
    assert "secret" not in str(refused.value)


def test_unknown_names_cost_the_same(file: Path) -> None:
    """ACC-32: an unknown name costs the same hashing, and gets the same error."""
    verifier = PasswordVerifier(lambda: parse_passwords(str(file)))

    async def refuse(name: str) -> str:
        with pytest.raises(InvalidCredential) as refused:
            await verifier.identify(RequestCredential(Scheme.BASIC, "wrong", name))
        return str(refused.value)

    async def seconds(name: str) -> float:
        """The shortest time of some checks."""
        times = []
        for _ in range(5):
            began = time.perf_counter()
            await refuse(name)
            times.append(time.perf_counter() - began)
        return min(times)

    async def compare() -> None:
        assert await refuse("ada") == await refuse("nobody")
        known, unknown = await seconds("ada"), await seconds("nobody")
        assert unknown > known / 3, "an unknown name is checked too"

    asyncio.run(compare())


def test_a_password_of_another_name_tells_nothing(tmp_path: Path) -> None:
    """ACC-32: a check for an unknown name is never cached, even with the password of another name."""
    (tmp_path / "f").write_text(json.dumps({"ada": ENTRIES["ada"]}))
    verifier = PasswordVerifier(lambda: parse_passwords(str(tmp_path / "f")))

    async def ask() -> None:
        for _ in range(2):
            with pytest.raises(InvalidCredential):
                await verifier.identify(RequestCredential(Scheme.BASIC, "correct horse", "nobody"))

    asyncio.run(ask())
    assert not verifier._good


def test_a_check_is_that_of_its_own_name_and_password(tmp_path: Path) -> None:
    """ACC-33: credentials whose name and password are equal only when joined share no check and no cached result."""
    (tmp_path / "f").write_text(json.dumps({"ada": {"password": ADA}, "mallory": {"password": UNICODE}}))
    verifier = PasswordVerifier(lambda: parse_passwords(str(tmp_path / "f")))

    async def ask(name: str, password: str) -> str | None:
        try:
            identity = await verifier.identify(RequestCredential(Scheme.BASIC, password, name))
        except InvalidCredential:
            return None
        return identity.caller.name if identity is not None else None

    async def ask_at_once() -> list[str | None]:
        pairs = [
            pair
            for part in (f"x{number}" for number in range(8))  # some of these names are checked against mallory's hash
            for pair in ((f"ada\0{part}", "pässwörd:€"), ("ada", f"{part}\0pässwörd:€"))
        ]
        return await asyncio.gather(*(ask(*pair) for pair in pairs))

    assert set(asyncio.run(ask_at_once())) == {None}


def test_hashing_is_bounded_and_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ACC-33: two passwords are hashed at a time, 64 wait, others get 503; requests with tokens are not delayed."""
    running, is_answered, refused = [0, 0], threading.Event(), 100 - (CONCURRENT_HASHINGS + MAX_WAITING)

    def slow(hash: str, password: str) -> bool:
        running[0] += 1
        running[1] = max(running)
        assert is_answered.wait(60), "the request with a token waits for passwords"
        time.sleep(0.002)
        running[0] -= 1
        return False

    monkeypatch.setattr("annals.api.auth.basic.verify_hash", slow)
    (tmp_path / "f").write_text(json.dumps(ENTRIES))
    create(f"sqlite:///{tmp_path}/annals.db")
    tokens = '{"t": {"name": "t", "role": "reader"}}'
    options: dict[str, Any] = {"basic_file": str(tmp_path / "f"), "trusted_proxies": "127.0.0.1"}
    with serving(f"sqlite:///{tmp_path}/annals.db", tokens=tokens, **options) as api:

        async def get(authorization: str, address: str = "192.0.2.1") -> Any:
            headers = {"authorization": authorization, "x-forwarded-for": address}
            return await api.client.get("/", headers=headers)

        async def storm() -> list[Any]:
            # from many addresses, because the concurrent checks per address are limited
            senders = [(basic(f"n{number}", "x"), f"192.0.2.{number}") for number in range(100)]
            guesses = [asyncio.create_task(get(*sender)) for sender in senders]
            async with asyncio.timeout(60):
                while sum(guess.done() for guess in guesses) < refused:
                    await asyncio.sleep(0.01)
            assert (await get("Bearer t")).status_code == 200
            is_answered.set()
            return list(await asyncio.gather(*guesses))

        answers = api.runner.run(storm())
    busy = [answer for answer in answers if answer.status_code == 503]
    assert running[1] == CONCURRENT_HASHINGS
    assert len(busy) == refused
    assert all(answer.headers["retry-after"] == "1" for answer in busy)
    assert busy[0].json()["type"].endswith("#server_busy")


def test_a_good_password_is_remembered_for_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ACC-33: it is cached under a keyed hash, at most until its entry changes."""
    checks: list[str] = []

    def counted(hash: str, password: str) -> bool:
        checks.append(hash)
        return password == "good"

    monkeypatch.setattr("annals.api.auth.basic.verify_hash", counted)
    (tmp_path / "f").write_text(json.dumps({"ada": ENTRIES["ada"]}))
    passwords = parse_passwords(str(tmp_path / "f"))
    verifier = PasswordVerifier(lambda: passwords)
    now = [1000.0]
    monkeypatch.setattr("annals.api.auth.basic.time.monotonic", lambda: now[0])

    async def ask(password: str = "good") -> bool:
        try:
            return await verifier.identify(RequestCredential(Scheme.BASIC, password, "ada")) is not None
        except InvalidCredential:
            return False

    async def history() -> list[int]:
        found = []
        for seconds, password in ((0, "good"), (59, "good"), (0.5, "bad"), (0, "bad"), (2, "good")):
            now[0] += seconds
            assert await ask(password) == (password == "good")
            found.append(len(checks))
        passwords["ada"] = passwords["ada"]._replace(hash=UNICODE)
        assert await ask()
        return [*found, len(checks)]

    assert asyncio.run(history()) == [1, 1, 2, 3, 4, 5]
    assert not any(b"good" in key for key in verifier._good)


def typed(*lines: str, arguments: tuple[str, ...] = ("ada", "--role", "writer")) -> tuple[int, str]:
    """Runs `annals passwd`, and types lines at its terminal. Returns the exit code and the output."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "annals", "passwd", *arguments]
    with subprocess.Popen(
        command, stdin=follower, stderr=follower, stdout=subprocess.PIPE, cwd=ROOT, env=environment(), text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        os.close(follower)
        for line in lines:
            prompt = ""
            while not prompt.endswith(": "):  # before the prompt, the terminal would drop the input
                prompt += os.read(leader, 1000).decode()
            os.write(leader, f"{line}\n".encode())
        assert process.stdout is not None
        out = process.stdout.read()
    os.close(leader)
    return process.returncode, out


def test_passwd_prints_an_entry(tmp_path: Path) -> None:
    """ACC-30, ACC-31: it asks twice for the password; the server accepts the printed entry."""
    code, out = typed("s3cret", "s3cret")
    assert code == 0 and "s3cret" not in out
    (tmp_path / "f").write_text(out)
    verifier = PasswordVerifier(lambda: parse_passwords(str(tmp_path / "f")))
    found = asyncio.run(verifier.identify(RequestCredential(Scheme.BASIC, "s3cret", "ada")))
    assert found is not None and (found.caller.name, found.caller.role) == ("ada", "writer")


@pytest.mark.parametrize("arguments", [("a:b",), ("console",), ("ada", "--role", "king")])
def test_passwd_refuses_what_the_server_would(arguments: tuple[str, ...]) -> None:
    """ACC-14, ACC-15, ACC-34: before it asks for the password."""
    assert typed(arguments=arguments)[0] == 2
