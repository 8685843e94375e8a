"""Authentication of callers by bearer tokens of a fixed list, or by JWTs of an issuer.

Spec: RFC 6750, "Authenticated Requests", "The WWW-Authenticate Response Header Field".
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

from annals.api.auth import json_settings
from annals.api.auth.caller_names import check_name
from annals.api.http.access_log.access_log import CURRENT_CALLER
from annals.api.http.request import Request
from annals.domain.access.places import check_places
from annals.domain.access.roles import ANONYMOUS, Caller, Role, highest_role
from annals.domain.errors.http_errors import Unauthorized

BEARER_CHALLENGE: Final = (b"www-authenticate", b'Bearer realm="annals"')
INVALID_TOKEN_CHALLENGE: Final = (b"www-authenticate", b'Bearer realm="annals", error="invalid_token"')

_BEARER: Final = re.compile(r"bearer +([A-Za-z0-9._~+/=\-]+) *\Z", re.IGNORECASE)
_HASHED_TOKEN: Final = re.compile(r"sha256:([0-9a-fA-F]{64})\Z")


class TokenVerifier(Protocol):
    """A kind of bearer token."""

    async def caller(self, token: str) -> Caller | None:
        """The caller with a token; None for a token of another kind.

        Raises: Unauthorized for an invalid token of this kind.
        """


class Authenticator:
    """Authenticates requests.

    verifiers: without one, every caller is the same anonymous writer.
    """

    def __init__(self, *verifiers: TokenVerifier) -> None:
        self._verifiers = verifiers

    async def authenticate(self, request: Request) -> Request:
        """The request with its caller, whom its log line then names. Raises: Unauthorized."""
        caller = await self.caller(request)
        CURRENT_CALLER.set(caller)
        return request if caller is request.caller else replace(request, caller=caller)

    async def caller(self, request: Request) -> Caller:
        """The caller of a request. Raises: Unauthorized."""
        if not self._verifiers:
            return ANONYMOUS
        token = _bearer_token(request)
        for verifier in self._verifiers:
            if (caller := await verifier.caller(token)) is not None:
                return caller
        raise Unauthorized(error_detail="the token is unknown")


class FixedCallerAuthenticator(Authenticator):
    """Gives every request the same caller, for example that of the command line."""

    def __init__(self, caller: Caller) -> None:
        super().__init__()
        self._caller = caller

    async def caller(self, request: Request) -> Caller:
        return self._caller


class FixedTokenVerifier:
    """The tokens of a setting, stored as SHA-256 only, so that a look-up reveals nothing about other tokens."""

    def __init__(self, callers: Mapping[str, Caller]) -> None:
        self._callers = callers

    async def caller(self, token: str) -> Caller | None:
        return self._callers.get(_hash_token(token))

    def callers_named(self, name: str) -> list[Caller]:
        """The callers with a name, for all of their tokens."""
        return [caller for caller in self._callers.values() if caller.name == name]


def parse_fixed_tokens(setting: str) -> FixedTokenVerifier:
    """The tokens that a setting lists. setting: JSON text, or the path of a file with it.

    The JSON is an object. Its keys are tokens, or `sha256:` and the token's hash in hex. Its values are objects with
    `name`, `role` and `groups`, where `groups` has further roles by place: the xid of a Group, or a
    pattern of them. Raises: ValueError.
    """
    entries = json.loads(json_settings.load_json_text(setting))
    if not isinstance(entries, dict):
        raise ValueError("an object of tokens is needed")
    return FixedTokenVerifier({_token_hash(token): _parse_caller(entry) for token, entry in entries.items()})


def parse_group_roles(value: Any) -> dict[str, Role]:
    """Roles by place, in lower case (ACC-60). Raises: ValueError if the value does not map places to roles."""
    if not isinstance(value, dict):
        raise ValueError('"groups" has to be an object with places as its keys, such as {"/dirs/team-*": "writer"}')
    roles: dict[str, Role] = {}
    for place, role in zip(check_places(value), value.values(), strict=True):
        roles[place] = highest_role(roles.get(place), Role(role)) or Role(role)
    return roles


def _parse_caller(entry: Any) -> Caller:
    if not isinstance(entry, dict) or "name" not in entry or set(entry) - {"name", "role", "groups"}:
        raise ValueError('a token needs an object with a "name" and, if wanted, a "role" and "groups"')
    role = entry.get("role")
    return Caller(
        check_name(entry["name"]), Role(role) if role is not None else None, parse_group_roles(entry.get("groups", {}))
    )


def _token_hash(token: str) -> str:
    match = _HASHED_TOKEN.match(token)
    return match[1].lower() if match else _hash_token(token)


def _hash_token(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _bearer_token(request: Request) -> str:
    header = request.header(b"authorization")
    if header is None:
        raise Unauthorized(error_detail="the request has no Authorization header")
    match = _BEARER.match(header)
    if match is None:
        raise Unauthorized(error_detail='the Authorization header is not of the form "Bearer <token>"')
    return match[1]
