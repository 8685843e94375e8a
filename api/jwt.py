"""JWTs of an issuer: checked against its keys, with the caller's name and roles in their claims.

Spec: RFC 7519, RFC 7517; RFC 8725 for what is not accepted.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import jwt

from api.callers import roles_of_groups
from domain.refusals import Unauthorized
from domain.roles import Caller, Role, highest

_LOG: Final = logging.getLogger("annals.callers")

#: A key that its holder can only sign with, never a shared secret or no signature at all.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
#: Seconds between two looks at a URL with keys, and after how many it is looked at again anyway.
SOONEST: Final = 10.0
LATEST: Final = 600.0
#: Seconds by which clocks may differ.
LEEWAY: Final = 30
#: How many tokens are remembered as checked, and for how many seconds: checking one costs as much as a read.
REMEMBERED: Final = 1024
FOR: Final = 60.0


@dataclass(frozen=True, slots=True)
class Claims:
    """What tokens have to say, and where they say roles. role, groups: dots lead into objects."""

    issuer: str | None = None
    audience: str | None = None
    role: str = "role"
    groups: str = "xregistry_groups"


class Keys:
    """An issuer's public keys by their ids, from a file or an https URL, read again when an unknown one turns up."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._read: float | None = None
        self._turn = asyncio.Lock()

    async def find(self, id: str | None) -> jwt.PyJWK | None:
        """The key with an id; without one, the only key there is."""
        if self._is_due(id):
            async with self._turn:
                if self._is_due(id):
                    await self._load()
        if id is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(id)

    def _is_due(self, id: str | None) -> bool:
        if self._read is None:
            return True
        age = time.monotonic() - self._read
        return age > LATEST or (id not in self._keys and age > SOONEST)

    async def _load(self) -> None:
        """Reads the keys; where that fails, those known go on being used and the log says why."""
        self._read = time.monotonic()
        try:
            found = jwt.PyJWKSet.from_json(await self._text())
        # What is JSON but no set of keys is told by an AttributeError or a TypeError only.
        except (OSError, ValueError, AttributeError, TypeError, httpx.HTTPError, jwt.PyJWTError) as error:
            _LOG.warning("the keys of JWTs cannot be read from %s: %s", self._source, error or type(error).__name__)
            return
        self._keys = {key.key_id: key for key in found.keys}

    async def _text(self) -> str:
        if not self._source.startswith(("http://", "https://")):
            return await asyncio.to_thread(Path(self._source).read_text)
        async with httpx.AsyncClient(timeout=5) as client:
            return (await client.get(self._source)).raise_for_status().text


class IssuedTokens:
    """The JWTs of one issuer."""

    def __init__(self, keys: Keys, claims: Claims) -> None:
        self._keys = keys
        self._claims = claims
        self._known: OrderedDict[bytes, tuple[float, Caller]] = OrderedDict()

    async def caller(self, token: str) -> Caller | None:
        """See `callers.Tokens`. Cost: some 100 µs for a token that is not remembered."""
        if token.count(".") != 2:
            return None
        hash = hashlib.sha256(token.encode()).digest()
        until, caller = self._known.get(hash, (0.0, None))
        return caller if time.time() < until else await self._check(token, hash)

    async def _check(self, token: str, hash: bytes) -> Caller:
        try:
            header = jwt.get_unverified_header(token)
            key = await self._keys.find(header.get("kid"))
            if key is None:
                raise Unauthorized(error_detail="its key is not known")
            claims = self._decoded(token, key)
            caller = self._caller(claims)
        except jwt.PyJWTError as error:
            raise Unauthorized(error_detail=f"this one is not good: {error}".rstrip(".")) from None
        self._known[hash] = min(time.time() + FOR, float(claims["exp"])), caller
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return caller

    def _decoded(self, token: str, key: jwt.PyJWK) -> dict[str, Any]:
        wanted = self._claims
        return jwt.decode(
            token,
            key,
            algorithms=[name for name in ALGORITHMS if name == key.algorithm_name],
            issuer=wanted.issuer,
            audience=wanted.audience,
            leeway=LEEWAY,
            options={"require": ["exp", "sub"], "verify_aud": wanted.audience is not None},
        )

    def _caller(self, claims: Mapping[str, Any]) -> Caller:
        try:
            groups = roles_of_groups(_at(claims, self._claims.groups) or {})
        except ValueError:
            groups = {}
        return Caller(str(claims["sub"]), _role(_at(claims, self._claims.role)), groups)


def _role(value: Any) -> Role | None:
    """The highest role that a claim names, in a text or a list of texts; other words are somebody else's roles."""
    words = value if isinstance(value, list) else [value]
    return highest(*(Role(word) for word in words if word in _ROLES))


_ROLES: Final = frozenset(map(str, Role))


def _at(claims: Mapping[str, Any], path: str) -> Any:
    """The value of a claim. A name that has dots itself is tried first."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
