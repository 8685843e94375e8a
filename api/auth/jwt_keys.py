"""The public keys of a JWT issuer, from a file or a URL, reloaded as they change (ACC-20, ACC-27, ACC-28).

Spec: RFC 7517.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from annals.api.auth.issuer_requests import FETCH_SECONDS, MAX_BYTES, send
from annals.domain.values.json_text import loads
from annals.projections.outgoing.resolver import Resolver

_LOG: Final = logging.getLogger("annals.callers")

#: Minimum seconds between two reads of the keys, and seconds after which they are read again in any case.
MIN_REFRESH_SECONDS: Final = 10.0
MAX_REFRESH_SECONDS: Final = 600.0
#: Seconds for which keys stay valid while the source cannot be read.
MAX_STALE_SECONDS: Final = 86400.0
#: Maximum number of keys in a key set, and minimum bits of an RSA key.
MAX_KEYS: Final = 100
MIN_RSA_BITS: Final = 2048

#: Accepted algorithms by type of key. All are asymmetric signatures: never a shared secret or no signature.
_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_ALGORITHMS_BY_KEY_TYPE: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("RSA", ""): _RSA,
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
ALGORITHMS: Final = frozenset(name for names in _ALGORITHMS_BY_KEY_TYPE.values() for name in names)

#: Keys by id, if they have one, and by algorithm. Several may have none, for example while an issuer changes its key.
KeySet = Mapping[tuple[str | None, str], Sequence[Any]]


class IssuerKeys:
    """The keys of one issuer. Belongs to one event loop.

    source: a path or a URL. resolver: decides which addresses a URL may lead to; None for a path.
    """

    def __init__(self, source: str, resolver: Resolver | None = None) -> None:
        self._source = source
        self._resolver = resolver
        self._keys: KeySet = {}
        #: Increases when the keys may have changed, so that checks by the old ones can be forgotten.
        self.version = 0
        self._content: bytes | None = None
        self._last_attempt: float | None = None
        self._last_success: float | None = None
        self._load_task: asyncio.Task[None] | None = None

    async def find(self, id: str | None, algorithm: str) -> Sequence[Any]:
        """The keys with an id for an algorithm. Without an id, those that have none, or the only key.

        Known keys are returned at once. Only a request for an unknown one waits for a read of the source.
        """
        keys = self._find_keys(id, algorithm)
        if self._is_due(bool(keys)):
            self._start_load()
        if not keys and self._load_task is not None and not self._load_task.done():
            await asyncio.shield(self._load_task)
            keys = self._find_keys(id, algorithm)
        return keys

    async def refresh(self) -> None:
        """Reads the keys again if they are old, so that tokens of a removed key are not good for longer (ACC-28).

        It does not read them before the first token has come.
        """
        if self._last_attempt is not None and self._is_due(True):
            self._start_load()

    def _start_load(self) -> None:
        self._last_attempt = time.monotonic()
        self._load_task = asyncio.get_running_loop().create_task(self._load())

    def _find_keys(self, id: str | None, algorithm: str) -> Sequence[Any]:
        if id is None and len({id for id, _ in self._keys}) == 1:
            (id,) = {id for id, _ in self._keys}
        return self._keys.get((id, algorithm), ())

    def _is_due(self, is_known: bool) -> bool:
        if self._load_task is not None and not self._load_task.done():
            return False
        if self._last_attempt is None:
            return True
        age = time.monotonic() - self._last_attempt
        return age > MAX_REFRESH_SECONDS or (not is_known and age > MIN_REFRESH_SECONDS)

    async def _load(self) -> None:
        """Reads the keys. If that fails, the known keys stay valid for a day, and the log has the reason."""
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                content = await self._fetch()
                if content != self._content:
                    self._keys = await asyncio.to_thread(parse_key_set, content)
                    self._content = content
                    self.version += 1
            self._last_success = time.monotonic()
        except Exception as error:  # a failure of the issuer must not fail a request
            message = " ".join(str(error).split()) or type(error).__name__
            _LOG.warning("the keys of JWTs cannot be read from %s: %s", self._shown_source, message[:500])
            if self._last_success is not None and time.monotonic() - self._last_success > MAX_STALE_SECONDS:
                self._keys, self._content = {}, None
                self.version += 1

    @property
    def _shown_source(self) -> str:
        """The source without the query of a URL, which may have a secret."""
        return self._source if self._resolver is None else self._source.partition("?")[0]

    async def _fetch(self) -> bytes:
        """The content of the source. Raises: ValueError, OSError, RequestFailed."""
        if self._resolver is None:
            return await asyncio.to_thread(_read_file, Path(self._source))
        response = await send(self._source, self._resolver, "GET", accept="application/jwk-set+json, application/json")
        if response.status != 200:
            raise ValueError(f"it answers {response.status}")
        return response.body


def _read_file(file: Path) -> bytes:
    with file.open("rb") as opened_file:
        content = opened_file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES} bytes")
    return content


def is_url(source: str) -> bool:
    """Whether the source is a URL.

    Raises: ValueError for a URL without TLS that is not on this machine, and for one with a user name or a password.
    """
    url_parts = urlsplit(source)
    if url_parts.scheme not in ("http", "https"):
        return False
    if "@" in url_parts.netloc:
        raise ValueError("the URL cannot have a user name or a password")
    if url_parts.scheme == "http" and url_parts.hostname not in _LOOPBACK_HOSTS:
        raise ValueError("name a file, an https URL, or an http URL of 127.0.0.1, [::1] or localhost")
    return True


_LOOPBACK_HOSTS: Final = frozenset(("127.0.0.1", "::1", "localhost"))


def parse_key_set(content: bytes) -> KeySet:
    """The keys of a JWKS that can verify signatures; others are skipped. Raises: ValueError."""
    document = loads(content)
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or not keys:
        raise ValueError("it is not a JSON object with a list of keys")
    if len(keys) > MAX_KEYS:
        raise ValueError(f"it has more than {MAX_KEYS} keys")
    key_set = defaultdict[tuple[str | None, str], list[Any]](list)
    for key_id, key in (item for jwk in keys if isinstance(jwk, dict) for item in _usable_keys(jwk).items()):
        key_set[key_id].append(key)
    if not key_set:
        raise ValueError("none of its keys can verify signatures")
    return key_set


def _usable_keys(jwk: Mapping[str, Any]) -> dict[tuple[str | None, str], Any]:
    """A key by id and algorithm; empty if the key has another use or is too short."""
    id, key_use, named_algorithm = jwk.get("kid"), jwk.get("use", "sig"), jwk.get("alg")
    kind = jwk.get("kty")
    key_type = (kind, jwk.get("crv") if kind != "RSA" else "")
    if (
        key_use != "sig"
        or not (id is None or isinstance(id, str))
        or not all(isinstance(member, str) for member in key_type)
    ):
        return {}
    names = [name for name in _ALGORITHMS_BY_KEY_TYPE.get(key_type, ()) if named_algorithm in (None, name)]  # type: ignore[arg-type]
    if not names:
        return {}
    import jwt  # takes long, with all of cryptography; each verb imports this file for its settings

    try:
        key = jwt.PyJWK(dict(jwk), names[0]).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError):
        return {}
    return {} if kind == "RSA" and key.key_size < MIN_RSA_BITS else {(id, name): key for name in names}
