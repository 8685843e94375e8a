"""JWTs of an issuer: verified with its keys; claims give the caller's name and roles.

Spec: RFC 7519, RFC 7515; RFC 8725 for what is refused.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from typing import Any, Final

import jwt
from jwt.utils import base64url_decode

from annals.api.auth.credentials import InvalidCredential, RequestCredential, Scheme
from annals.api.auth.identity import Identity
from annals.api.auth.jwt_claims import ClaimSettings, InvalidToken, caller_of_claims, member_words, parse_json_object
from annals.api.auth.jwt_keys import ALGORITHMS, IssuerKeys

#: Maximum characters of a token, and of the id of its key (ACC-21, ACC-22).
MAX_TOKEN_LENGTH: Final = 8192
MAX_KEY_ID_LENGTH: Final = 256
#: Accepted token types (`typ`), in any letter case and maybe after `application/` (RFC 9068, 4).
TOKEN_TYPES: Final = ("jwt", "at+jwt")
#: Number of verified tokens in the cache, and seconds for which they stay: verifying one costs as much as a read.
CACHE_SIZE: Final = 1024
CACHE_SECONDS: Final = 60.0
_JWS: Final = jwt.PyJWS()
#: How the base64 of a JSON object begins; passwords that may be tokens rarely do.
_JSON_START: Final = "ey"
_NOT_CACHED: Final[tuple[float, int, Identity | None]] = (0.0, 0, None)


class JwtVerifier:
    """The JWTs of one issuer."""

    name: Final = "jwt"
    schemes = frozenset((Scheme.BEARER,))

    def __init__(self, keys: IssuerKeys, claims: ClaimSettings) -> None:
        self._keys = keys
        self._claims = claims
        self._cache: OrderedDict[bytes, tuple[float, int, Identity]] = OrderedDict()

    async def identify(self, credential: RequestCredential) -> Identity | None:
        """See `CredentialVerifier`. Cost: about 100 µs for a token that is not in the cache."""
        token = credential.token
        if token is None or not token.startswith(_JSON_START) or token.count(".") != 2:
            return None
        token_hash = hashlib.sha256(token.encode()).digest()
        cached_until, cached_version, identity = self._cache.get(token_hash, _NOT_CACHED)
        if identity is not None and time.time() < cached_until and cached_version == self._keys.version:
            return identity
        try:
            identity = await self._verify(token)
        except InvalidToken as error:
            raise InvalidCredential(str(error), error.reason) from None
        assert identity.expires is not None, "a token without an expiry is refused"
        until = min(time.time() + CACHE_SECONDS, identity.expires)
        self._cache[token_hash] = until, self._keys.version, identity
        while len(self._cache) > CACHE_SIZE:
            self._cache.popitem(last=False)
        return identity

    def listed(self) -> tuple[Identity, ...]:
        """See `CredentialVerifier`: only the issuer has a list."""
        return ()

    async def _verify(self, token: str) -> Identity:
        """Who has a token. Raises: InvalidToken."""
        claims = await verify_signature(token, self._keys)
        caller, expires = caller_of_claims(claims, self._claims, time.time())
        origin = f"the JWTs of {self._claims.issuer or 'any issuer'}"
        return Identity(caller, self.name, expires, origin, claims=member_words(claims, self._claims))


async def verify_signature(token: str, keys: IssuerKeys) -> dict[str, Any]:
    """The claims of a token that one of the keys has signed. They are not checked yet. Raises: InvalidToken."""
    if len(token) > MAX_TOKEN_LENGTH:
        raise InvalidToken(f"it has more than {MAX_TOKEN_LENGTH} characters")
    if token.count(".") != 2:
        raise InvalidToken("it does not have three parts")
    header, claims = (_decode_part(part) for part in token.split(".")[:2])
    algorithm, id = _parse_header(header)
    message = "no key of the issuer has its kid and alg"
    for key in await keys.find(id, algorithm):
        try:
            _JWS.decode(token, key, [algorithm])
            return claims
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            message = str(error)
    raise InvalidToken(message)


def unverified_claims(token: str) -> dict[str, Any]:
    """The claims of a token, which anybody may have written. Raises: InvalidToken."""
    if len(token) > MAX_TOKEN_LENGTH or token.count(".") != 2:
        raise InvalidToken(f"it does not have three parts and up to {MAX_TOKEN_LENGTH} characters")
    return _decode_part(token.split(".")[1])


def _decode_part(text: str) -> dict[str, Any]:
    """The JSON object of one part of a token. Raises: InvalidToken."""
    try:
        return parse_json_object(base64url_decode(text))
    except ValueError as error:
        raise InvalidToken(f"a part of it is not base64url: {error}") from None


def _parse_header(header: dict[str, Any]) -> tuple[str, str | None]:
    """The algorithm of the signature and the id of the key. Keys and URLs in the header are ignored.

    Raises: InvalidToken.
    """
    algorithm, id, type = header.get("alg"), header.get("kid"), header.get("typ", TOKEN_TYPES[0])
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise InvalidToken("its alg is not accepted")
    if "kid" in header and not (isinstance(id, str) and len(id) <= MAX_KEY_ID_LENGTH):
        raise InvalidToken(f"its kid is not a text of up to {MAX_KEY_ID_LENGTH} characters")
    if not isinstance(type, str) or type.lower().removeprefix("application/") not in TOKEN_TYPES:
        raise InvalidToken("its typ is not that of an access token")
    if "crit" in header:
        raise InvalidToken("it has critical headers that this server does not know")
    return algorithm, id
