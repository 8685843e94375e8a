"""Every JWT identifies a caller or is refused, and keys are fetched within limits of time and size."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from annals.api.auth import issuer_requests, jwt_keys
from annals.api.auth.credentials import InvalidCredential, RequestCredential, Scheme
from annals.api.auth.issuer_requests import MAX_BYTES
from annals.api.auth.jwt import CACHE_SIZE, MAX_TOKEN_LENGTH, JwtVerifier
from annals.api.auth.jwt_claims import ClaimSettings
from annals.api.auth.jwt_keys import (
    MAX_KEYS,
    MAX_REFRESH_SECONDS,
    MAX_STALE_SECONDS,
    MIN_REFRESH_SECONDS,
    IssuerKeys,
    parse_key_set,
)
from annals.api.settings.settings import Settings
from annals.api.subscriptions.wiring import build_guard_for_url
from annals.domain.access.caller_names import check_name
from annals.domain.access.roles import Caller, Role
from annals.projections.outgoing.destination_guard import DestinationGuard
from tests.support.examples import examples
from tests.support.registries.in_process import create, serving

KEY: Final = ec.generate_private_key(ec.SECP256R1())
CLAIMS: Final = {"iss": "i", "aud": "a", "sub": "jo"}
_JWS: Final = jwt.PyJWS()


def jwk(key: Any, kid: str | None = "k", **more: Any) -> dict[str, Any]:
    """The public part of a key."""
    kinds: dict[type, Any] = {
        ec.EllipticCurvePrivateKey: jwt.algorithms.ECAlgorithm,
        rsa.RSAPrivateKey: jwt.algorithms.RSAAlgorithm,
        ed25519.Ed25519PrivateKey: jwt.algorithms.OKPAlgorithm,
    }
    kind = next(made for type, made in kinds.items() if isinstance(key, type))
    made = json.loads(kind.to_jwk(key.public_key()))
    made.pop("key_ops", None)
    return {**made, **({"kid": kid} if kid else {}), **more}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the public key of an issuer."""
    found = tmp_path_factory.mktemp("jwks") / "jwks.json"
    found.write_text(json.dumps({"keys": [jwk(KEY)]}))
    return found


@pytest.fixture(scope="module")
def tokens(file: Path) -> JwtVerifier:
    return JwtVerifier(IssuerKeys(str(file)), ClaimSettings("i", "a"))


def signed(payload: bytes, key: Any = KEY, algorithm: str = "ES256", **header: Any) -> str:
    """A token with any bytes as its claims."""
    return _JWS.encode(payload, key, algorithm, headers={"kid": "k", **header})


def token(**claims: Any) -> str:
    content = {**CLAIMS, "exp": int(time.time()) + 300, **claims}
    return signed(json.dumps({name: value for name, value in content.items() if value is not ...}).encode())


def bearer(**claims: Any) -> RequestCredential:
    return RequestCredential(Scheme.BEARER, token(**claims))


def each(name: str, *values: Any) -> Iterator[dict[str, Any]]:
    """For each value, claims or a header with this value of the member `name`."""
    return ({name: value} for value in values)


def named(tokens: JwtVerifier, token: str) -> Caller | None:
    """The caller that a token identifies, or None if it is refused."""
    try:
        found = asyncio.run(tokens.identify(RequestCredential(Scheme.BEARER, token)))
    except InvalidCredential:
        return None
    return found.caller if found else None


#: The time when tests are collected; they may run much later.
NOW: Final = time.time()
DAY: Final = 86_400
_GOOD: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"exp": NOW + DAY + 0.5},
    {"exp": 253402300799},
    {"nbf": 0, "iat": NOW - 5},
    {"aud": ["b", "a"]},
    {"aud": ["b"] * 19 + ["a"]},
    {"sub": "x" * 128},
    {"sub": "consoles"},
    {"more": [[[[[[[[[0]]]]]]]]]},
)
#: Claims that ACC-14, ACC-15 and ACC-22 to ACC-24 refuse.
_BAD: Final[tuple[dict[str, Any], ...]] = (
    *each("exp", ..., True, "9999999999", None, 10**400, -1, 253402300800, [], {}, NOW - 31),
    *each("nbf", True, "0", None, -1, 10**400, NOW + DAY, {}),
    *each("iat", True, "0", None, -1, 10**400, NOW + DAY, {}),
    *each("iss", ..., "I", ["i"], {}, None, 5),
    *({"aud": value} for value in (..., "b", [], ["a"] * 21, [["a"]], ["a", 5], {"a": "a"}, None)),
    *each("sub", ..., "", "x" * 129, 5, None, [], {}, " jo", "jo\n", "j\0o", "jo\u0085"),
    *({"sub": value} for value in ("console", "Console", "ＣＯＮＳＯＬＥ", "anonymous", "anyone", "SYSTEM")),  # noqa: RUF001
    *({"sub": value} for value in ("link:a", "links/a", "Key:a", "claim:a", "caller:a", "ﬁ\u2007".strip() + " ")),
    {"more": [[[[[[[[[[0]]]]]]]]]]},
    {"more": "x" * MAX_TOKEN_LENGTH},
)


@pytest.mark.parametrize("claims", _GOOD)
def test_claims_that_name_a_caller(tokens: JwtVerifier, claims: dict[str, Any]) -> None:
    found = named(tokens, token(**claims))
    assert found is not None and found.name == claims.get("sub", "jo")


@pytest.mark.parametrize("claims", _BAD)
def test_claims_that_are_refused(tokens: JwtVerifier, claims: dict[str, Any]) -> None:
    """ACC-14, ACC-15, ACC-22, ACC-23, ACC-24: they are refused despite a valid signature."""
    assert named(tokens, token(**claims)) is None


@pytest.mark.parametrize(
    ("claims", "role", "groups"),
    [
        ({"role": "writer"}, Role.WRITER, {}),
        ({"role": ["other", "reader"]}, Role.READER, {}),
        ({"role": ["reader"] * 101}, None, {}),
        *(
            (claims, None, {})
            for claims in each("role", {}, [], 5, True, None, "Writer", ["writer", {}], [["writer"]], [5])
        ),
        ({"xregistry_groups": {"/dirs/D": "reader"}}, None, {"/dirs/d": Role.READER}),
        ({"xregistry_groups": {"/dirs/d": "reader", "/dirs/e": "none"}}, None, {}),
        ({"xregistry_groups": {f"/dirs/{n}": "reader" for n in range(101)}}, None, {}),
        *(
            (claims, None, {})
            for claims in each("xregistry_groups", [], "x", 5, {"d": "reader"}, {"/dirs/d": {}}, {"": []})
        ),
    ],
)
def test_claims_of_roles(tokens: JwtVerifier, claims: dict[str, Any], role: Role | None, groups: Any) -> None:
    """ACC-25: a claim with a wrong type or an invalid entry gives no role and no error."""
    assert named(tokens, token(**claims)) == Caller("jo", role, groups)


@pytest.mark.parametrize(
    "header",
    [
        *({"typ": value} for value in ("at+jwt", "application/at+jwt", "JWT", "jwt")),
        {"jku": "https://elsewhere/keys", "jwk": jwk(KEY), "x5u": "x", "x5c": ["x"]},
    ],
)
def test_headers_that_do_not_matter(tokens: JwtVerifier, header: dict[str, Any]) -> None:
    """ACC-21: keys and URLs of keys in the header are ignored."""
    payload = json.dumps({**CLAIMS, "exp": NOW + DAY}).encode()
    assert named(tokens, signed(payload, **header)) is not None


def _with_header(**header: Any) -> str:
    """A token with any header and a valid signature."""
    parts = ({"alg": "ES256", "kid": "k", **header}, {**CLAIMS, "exp": NOW + DAY})
    text = b".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
    signature = jwt.algorithms.ECAlgorithm(jwt.algorithms.ECAlgorithm.SHA256).sign(text, KEY)
    return (text + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


@pytest.mark.parametrize(
    "header",
    [
        *each("typ", "dpop+jwt", 5, None, {}, []),
        *({"crit": value} for value in ([], ["exp"], "exp", None)),
        *each("kid", "x" * 257, 5, None, {}, ["k"]),
        *each("alg", "none", "HS256", "es256", None, 5, [], {}, "ES384", "RS256"),
        {"b64": False},
        {"deep": [[[[[[[[[[0]]]]]]]]]]},
    ],
    ids=str,
)
def test_headers_that_are_refused(tokens: JwtVerifier, header: dict[str, Any]) -> None:
    """ACC-20, ACC-21, ACC-22: such headers are refused despite a valid signature."""
    assert named(tokens, _with_header(**header)) is None
    assert named(tokens, _with_header()) is not None


# --- any claims ------------------------------------------------------------------------------------------------------

_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from((10**400, -(10**400), 2**63, 253402300799, 0, -1))
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.text(max_size=200)
    | st.sampled_from(("admin", "console", "i", "a", "\ud800", "\0", "ﬁ", "x" * 9000)),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=20), inner, max_size=5),
    max_leaves=40,
)
_NAMES = ("exp", "nbf", "iat", "iss", "aud", "sub", "role", "xregistry_groups", "more", "jti")
_DEEP = st.integers(1, 3000).map(lambda depth: b'{"exp": 1, "role": ' + b"[" * depth + b"]" * depth + b"}")


@pytest.fixture(scope="module")
def statuses(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], int]]:
    """Sends a request with a token to a registry, and returns the status."""
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/annals.db"
    create(url)
    with (
        pytest.MonkeyPatch.context() as patch,
        serving(url, jwt_keys=str(file), jwt_issuer="i", jwt_audience="a") as api,
    ):
        patch.setattr("annals.api.auth.limits.failed_attempts.MAX_BY_ADDRESS", 10**6)
        yield lambda token: api.send("GET", "/", authorization=f"Bearer {token}").status_code


@settings(max_examples=examples(150), deadline=None)
@given(st.dictionaries(st.sampled_from(_NAMES), _VALUES, max_size=6), st.booleans())
def test_no_claims_are_an_error_of_the_server(
    statuses: Callable[[str], int], claims: dict[str, Any], whole: bool
) -> None:
    """ACC-26: claims of all types and sizes."""
    base = {**CLAIMS, "exp": NOW + DAY} if whole else {}
    assert statuses(signed(json.dumps({**base, **claims}).encode())) in (200, 401, 403)


@settings(max_examples=examples(100), deadline=None)
@given(_DEEP | st.binary(max_size=300), st.dictionaries(st.text(max_size=9), _VALUES, max_size=3))
def test_no_bytes_are_an_error_of_the_server(
    statuses: Callable[[str], int], payload: bytes, header: dict[str, Any]
) -> None:
    """ACC-26: payloads that are not JSON, and any headers."""
    assert statuses(signed(payload)) == 401
    text = base64.urlsafe_b64encode(json.dumps({"alg": "ES256", **header}).encode()).rstrip(b"=").decode()
    assert statuses(f"{text}.{text}.{text}") == 401
    raw = base64.urlsafe_b64encode(payload).rstrip(b"=").decode()
    assert statuses(f"{raw}.{raw}.{raw}") == 401


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["console", "CONSOLE", "Anyone", "system", "anonymous", "link:x", "links/x", "key:x"])
def test_fixed_tokens_have_no_reserved_names(name: str) -> None:
    """ACC-14, ACC-15: such a setting is refused, and the error names the rule."""
    with pytest.raises(ValidationError, match=f'the name "{name}" is reserved'):
        Settings(tokens=json.dumps({"t": {"name": name, "role": "admin"}}))
    with pytest.raises(ValidationError, match="the name of a caller"):
        Settings(tokens=json.dumps({"t": {"name": f" {name}"}}))


@given(st.text(max_size=140))
def test_names(name: str) -> None:
    """ACC-14: every accepted name can be stored in UTF-8 and in any database."""
    with suppress(ValueError):
        assert check_name(name).encode().decode() == name and "\0" not in name and 0 < len(name) <= 128


# --- keys ------------------------------------------------------------------------------------------------------------

_RSA: Final = rsa.generate_private_key(65537, 2048)
_SHORT: Final = rsa.generate_private_key(65537, 1024)
_ED: Final = ed25519.Ed25519PrivateKey.generate()
_P384: Final = ec.generate_private_key(ec.SECP384R1())


@pytest.mark.parametrize(
    ("key", "usable"),
    [
        (jwk(KEY), {"ES256"}),
        (jwk(_P384), {"ES384"}),
        (jwk(_ED), {"EdDSA"}),
        (jwk(_RSA), {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
        (jwk(_RSA, alg="PS384", use="sig"), {"PS384"}),
        (jwk(_RSA, alg="ES256"), set()),
        (jwk(_RSA, alg=5), set()),
        (jwk(_RSA, use="enc"), set()),
        (jwk(_SHORT), set()),
        (jwk(KEY, crv="P-521"), set()),
        (jwk(KEY, kid=5), set()),  # type: ignore[arg-type]
        ({"kty": "oct", "k": "eA", "kid": "k"}, set()),
        ({"kty": ["RSA"], "kid": "k"}, set()),
        ({"kty": "RSA", "n": 5, "e": {}, "kid": "k"}, set()),
    ],
)
def test_what_keys_may_be_used_with(key: dict[str, Any], usable: set[str]) -> None:
    """ACC-20: the algorithms that match the type of the key and its `alg`; no shared secret, no RSA below 2048 bits."""
    found = parse_key_set(json.dumps({"keys": [key, jwk(KEY, "other")]}).encode())
    assert {algorithm for id, algorithm in found if id != "other"} == usable


@pytest.mark.parametrize(("algorithm", "key"), [("PS256", _RSA), ("RS512", _RSA), ("EdDSA", _ED), ("ES384", _P384)])
def test_each_kind_of_key(tmp_path: Path, algorithm: str, key: Any) -> None:
    """ACC-20, ACC-21: a token may omit the key id if there is only one key."""
    (tmp_path / "jwks").write_text(json.dumps({"keys": [jwk(key)]}))
    tokens = JwtVerifier(IssuerKeys(str(tmp_path / "jwks")), ClaimSettings("i", "a"))
    payload = json.dumps({**CLAIMS, "exp": NOW + DAY}).encode()
    assert named(tokens, signed(payload, key, algorithm)) is not None
    assert named(tokens, _JWS.encode(payload, key, algorithm)) is not None


def test_keys_without_ids_are_tried_one_after_the_other(tmp_path: Path) -> None:
    """ACC-20: an issuer without key ids has two keys while it changes them."""
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(3)]
    (tmp_path / "jwks").write_text(json.dumps({"keys": [jwk(key, "") for key in keys[:2]]}))
    tokens = JwtVerifier(IssuerKeys(str(tmp_path / "jwks")), ClaimSettings("i", "a"))
    payload = json.dumps({**CLAIMS, "exp": NOW + DAY}).encode()
    assert [named(tokens, _JWS.encode(payload, key, "ES256")) is not None for key in keys] == [True, True, False]


def _answer(body: bytes, head: str = "200 OK", more: str = "") -> bytes:
    return f"HTTP/1.1 {head}\r\ncontent-length: {len(body)}\r\n{more}\r\n".encode() + body


_SET: Final = json.dumps({"keys": [jwk(KEY)]}).encode()
#: The response of an issuer, and its pause in seconds between two bytes; negative: only between bytes of the body.
_BROKEN: Final[dict[str, tuple[bytes, float]]] = {
    "a dripping head": (_answer(_SET), 0.5),
    "a dripping body": (_answer(_SET), -0.5),
    "too many bytes": (_answer(_SET + b" " * MAX_BYTES), 0),
    "too many keys": (_answer(json.dumps({"keys": [jwk(KEY, str(n)) for n in range(MAX_KEYS + 1)]}).encode()), 0),
    "a redirect": (_answer(b"", "302 Found", "location: http://127.0.0.1:1/\r\n"), 0),
    "an error": (_answer(_SET, "500 Oh"), 0),
    "no JSON": (_answer(b"["), 0),
    "deep JSON": (_answer(b"[" * 100_000), 0),
    "nothing": (b"", 0),
}


@contextmanager
def issuer(content: bytes, pause: float = 0.0) -> Iterator[tuple[str, list[float]]]:
    """The URL of a server that sends these bytes to every client, and the times of requests. pause: as in `_BROKEN`."""
    request_times: list[float] = []

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65536)
            request_times.append(time.monotonic())
            slow = content
            if pause < 0:
                head, _, slow = content.partition(b"\r\n\r\n")
                connection.sendall(head + b"\r\n\r\n")
            for at in range(0, len(slow), 1 if pause else len(slow) or 1):
                connection.sendall(slow[at : at + 1] if pause else slow)
                time.sleep(abs(pause))

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/keys", request_times


@pytest.mark.parametrize("broken", _BROKEN)
def test_keys_come_in_bounded_time_and_size(broken: str, caplog: pytest.LogCaptureFixture) -> None:
    """ACC-27: 5 s in all, 256 KiB, 100 keys, no redirect; else all tokens are refused, and the reason is logged."""
    with issuer(*_BROKEN[broken]) as (url, request_times):
        began = time.monotonic()
        assert (
            named(JwtVerifier(IssuerKeys(url, DestinationGuard("127.0.0.1")), ClaimSettings("i", "a")), token()) is None
        )
        assert time.monotonic() - began < 20 and len(request_times) == 1
    assert len([record for record in caplog.records if url in record.getMessage()]) == 1


def test_key_fetches_are_shared_and_do_not_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """ACC-27, ACC-28: waiting requests share one fetch, and only requests with an unknown key wait."""
    for module in (issuer_requests, jwt_keys):
        monkeypatch.setattr(module, "FETCH_SECONDS", 60.0)
    with issuer(_answer(_SET), pause=0.008) as (url, request_times):
        tokens = JwtVerifier(IssuerKeys(url, DestinationGuard("127.0.0.1")), ClaimSettings("i", "a"))

        async def several() -> None:
            first = [tokens.identify(bearer(jti=number)) for number in range(9)]
            assert {found.caller.name for found in await asyncio.gather(*first) if found} == {"jo"}
            assert len(request_times) == 1
            monkeypatch.setattr("annals.api.auth.jwt_keys.MAX_REFRESH_SECONDS", -1.0)
            began = time.monotonic()
            assert (await tokens.identify(bearer(jti=10))) is not None
            waited = time.monotonic() - began
            with pytest.raises(InvalidCredential):  # waits for the fetch that is running
                await tokens.identify(RequestCredential(Scheme.BEARER, signed(b"{}", kid="another")))
            assert waited < time.monotonic() - began and len(request_times) == 2

        asyncio.run(several())


def test_keys_that_cannot_be_read_again_are_good_for_a_day(tmp_path: Path) -> None:
    """ACC-28: a failed fetch keeps the old keys for 24 h."""
    file = tmp_path / "jwks"
    file.write_bytes(_SET)
    keys = IssuerKeys(str(file))

    async def known_after(seconds: float) -> bool:
        for name in ("_last_attempt", "_last_success"):
            if (last := getattr(keys, name)) is not None:
                setattr(keys, name, last - seconds)
        await keys.find("k", "ES256")
        assert keys._load_task is not None
        await keys._load_task  # the fetch runs in the background
        return bool(await keys.find("k", "ES256"))

    async def days() -> list[bool]:
        found = [await known_after(0)]
        file.unlink()
        found += [
            await known_after(seconds)
            for seconds in (MAX_REFRESH_SECONDS + 1, MAX_STALE_SECONDS - 2 * MAX_REFRESH_SECONDS, MAX_REFRESH_SECONDS)
        ]
        file.write_bytes(_SET)
        return [*found, await known_after(MIN_REFRESH_SECONDS + 1)]

    assert asyncio.run(days()) == [True, True, True, False, True]


def test_the_log_has_no_secret_of_the_url_of_keys(caplog: pytest.LogCaptureFixture) -> None:
    """ACC-113: a query may have one, and anybody can cause a read by a token; a password is refused at the start."""
    settings = Settings(jwt_keys="http://127.0.0.1:1/jwks?token=swordfish", sinks_allow="127.0.0.1")
    keys = IssuerKeys(str(settings.jwt_keys), build_guard_for_url(str(settings.jwt_keys), settings))
    assert asyncio.run(keys.find("k", "ES256")) == ()
    assert "from http://127.0.0.1:1/jwks:" in caplog.text and "swordfish" not in caplog.text
    with pytest.raises(ValidationError, match="user name or a password"):
        Settings(jwt_keys="https://me:swordfish@keys.example/jwks")


@pytest.mark.parametrize("url", ["http://keys.example/jwks", "http://10.0.0.1/jwks", "http:///jwks"])
def test_keys_come_through_tls_or_from_this_machine(url: str) -> None:
    """ACC-27: other URLs are refused as settings."""
    with pytest.raises(ValidationError, match="name a file, an https URL, or an http URL of"):
        Settings(jwt_keys=url)


def test_tokens_of_a_removed_key_are_refused(tmp_path: Path) -> None:
    """ACC-28: keys are fetched every 10 minutes, and cached checks are dropped when the keys change."""
    file = tmp_path / "jwks"
    file.write_text(json.dumps({"keys": [jwk(KEY), jwk(_P384, "other")]}))
    keys = IssuerKeys(str(file))
    tokens = JwtVerifier(keys, ClaimSettings("i", "a"))
    credential = bearer()

    async def is_good() -> bool:
        try:
            return await tokens.identify(credential) is not None
        except InvalidCredential:
            return False

    async def history() -> list[bool]:
        await keys.refresh()
        assert keys._load_task is None, "nothing is read before the first token"
        found = [await is_good()]
        file.write_text(json.dumps({"keys": [jwk(_P384, "other")]}))
        found.append(await is_good())
        assert keys._last_attempt is not None
        keys._last_attempt -= MAX_REFRESH_SECONDS + 1
        await keys.refresh()
        await asyncio.gather(*filter(None, [keys._load_task]))
        return [*found, await is_good()]

    assert asyncio.run(history()) == [True, True, False]


def test_checks_are_remembered(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ACC-29: at most 1,024 checks are cached, each for a minute, and never beyond `exp`."""
    tokens = JwtVerifier(IssuerKeys(str(file)), ClaimSettings("i", "a"))
    checked: list[str] = []
    verify = tokens._verify

    async def counted(token: str) -> Any:
        checked.append(token)
        return await verify(token)

    monkeypatch.setattr(tokens, "_verify", counted)
    start, now = int(time.time()), [0.0]
    monkeypatch.setattr("annals.api.auth.jwt.time.time", lambda: start + now[0])

    async def checks_until(exp: float, *times: float) -> list[int]:
        credential = bearer(exp=start + exp)
        found: list[int] = []
        for at in times:
            now[0] = at
            with suppress(InvalidCredential):
                await tokens.identify(credential)
            found.append(len(checked))
        checked.clear()
        return found

    async def history() -> None:
        assert await checks_until(3000, 0, 59, 61, 62) == [1, 1, 2, 2]
        assert await checks_until(100, 62, 99, 101, 102) == [1, 1, 2, 3], "in the leeway each request is checked"
        for number in range(CACHE_SIZE + 5):
            await tokens.identify(bearer(jti=number, exp=start + 9000))

    asyncio.run(history())
    assert len(tokens._cache) == CACHE_SIZE == 1024


def test_the_claim_with_the_name(file: Path) -> None:
    """ACC-14, ACC-15: a configured claim other than `sub` has the same rules."""
    tokens = JwtVerifier(IssuerKeys(str(file)), ClaimSettings("i", "a", name="person.login"))
    found = named(tokens, token(person={"login": "ada"}))
    assert found is not None and found.name == "ada"
    for person in ({"login": "console"}, {}, None, {"login": 5}):
        assert named(tokens, token(person=person)) is None
