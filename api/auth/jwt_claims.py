"""The caller that the claims of a JWT name; invalid claims are refused (ACC-23 to ACC-26)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from annals.api.auth.caller_entries import parse_group_roles
from annals.api.auth.credentials import EXPIRED
from annals.domain.access.caller_names import check_name
from annals.domain.access.roles import Caller, Role, highest_role
from annals.domain.values.json_text import InvalidJson, loads

#: Seconds by which clocks may differ, and the last second of the year 9999.
LEEWAY: Final = 30
MAX_TIME: Final = 253402300799
#: Maximum nesting of a token's JSON.
MAX_DEPTH: Final = 10
#: Maximum number of audiences, and of roles and Groups, in a token.
MAX_AUDIENCES: Final = 20
MAX_ROLES: Final = 100


class InvalidToken(Exception):
    """A token that names no caller. The message says why, for the log. reason: a word for metrics."""

    def __init__(self, message: str, reason: str = "invalid") -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ClaimSettings:
    """Required claim values, and the claims that have the roles and the name of the caller.

    role, groups, name: a dot leads into an object. members: the claim with words that grants can name, such as teams.
    """

    issuer: str | None = None
    audience: str | None = None
    role: str = "role"
    groups: str = "xregistry_groups"
    name: str = "sub"
    members: str = "groups"


def parse_json_object(text: bytes) -> dict[str, Any]:
    """The JSON object of one part of a token. Raises: InvalidToken."""
    try:
        members = loads(text)
    except InvalidJson as error:
        raise InvalidToken(str(error)) from None
    if not isinstance(members, dict):
        raise InvalidToken("a part of it is not a JSON object")
    if _is_deeper(members, MAX_DEPTH):
        raise InvalidToken(f"its JSON nests more than {MAX_DEPTH} deep")
    return members


def caller_of_claims(claims: Mapping[str, Any], claim_settings: ClaimSettings, now: float) -> tuple[Caller, float]:
    """The caller that the claims name, and the expiry. Times are in seconds since 1970.

    Raises: InvalidToken; with the reason EXPIRED if the token was valid before.
    """
    expires = _time_claim(claims, "exp")
    if expires is None:
        raise InvalidToken("exp is missing")
    for name in ("nbf", "iat"):
        if (_time_claim(claims, name) or 0) > now + LEEWAY:
            raise InvalidToken(f"{name} is in the future")
    if claim_settings.issuer is not None and claims.get("iss") != claim_settings.issuer:
        raise InvalidToken("iss is not the issuer that the settings name")
    if claim_settings.audience is not None and claim_settings.audience not in audiences_of(claims):
        raise InvalidToken("aud does not have the audience that the settings name")
    try:
        name = check_name(_claim(claims, claim_settings.name))
    except ValueError as error:
        raise InvalidToken(f"{claim_settings.name}: {error}") from None
    if expires + LEEWAY <= now:
        raise InvalidToken("it has expired", EXPIRED)
    return Caller(
        name, _parse_role(_claim(claims, claim_settings.role)), _parse_groups(_claim(claims, claim_settings.groups))
    ), expires


def member_words(claims: Mapping[str, Any], claim_settings: ClaimSettings) -> tuple[str, ...]:
    """The words of the claim that grants can name, a string or a list of strings; none for any other value."""
    value = _claim(claims, claim_settings.members)
    words = value if isinstance(value, list) else [value]
    return tuple(words) if len(words) <= MAX_ROLES and all(isinstance(word, str) for word in words) else ()


def _is_deeper(value: Any, max_depth: int) -> bool:
    level = [value]
    for _ in range(max_depth):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return any(isinstance(item, dict | list) for item in level)


def _children(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _time_claim(claims: Mapping[str, Any], name: str) -> float | None:
    """The time in a claim; None if absent. Raises: InvalidToken if the claim is not a time."""
    if name not in claims:
        return None
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not 0 <= value <= MAX_TIME:
        raise InvalidToken(f"{name} is not a number of seconds from 0 to {MAX_TIME}")
    return float(value)


def audiences_of(claims: Mapping[str, Any]) -> list[str]:
    """The audiences of a token. Raises: InvalidToken."""
    value: Any = claims.get("aud")
    audiences = value if isinstance(value, list) else [value]
    if len(audiences) > MAX_AUDIENCES or not all(isinstance(audience, str) for audience in audiences):
        raise InvalidToken(f"aud is neither a text nor a list of up to {MAX_AUDIENCES} texts")
    return audiences


def _parse_role(value: Any) -> Role | None:
    """The highest role in a claim, which is a string or a list of strings. Unknown words are roles of other systems."""
    role_names = value if isinstance(value, list) else [value]
    if len(role_names) > MAX_ROLES or not all(isinstance(role_name, str) for role_name in role_names):
        return None
    return highest_role(*(Role(role_name) for role_name in role_names if role_name in _ROLE_NAMES))


_ROLE_NAMES: Final = frozenset(map(str, Role))


def _parse_groups(value: Any) -> dict[str, Role]:
    """Roles by Group; empty if any entry is not a Group with a role."""
    if not isinstance(value, dict) or len(value) > MAX_ROLES:
        return {}
    try:
        return parse_group_roles(value)
    except ValueError:
        return {}


def _claim(claims: Mapping[str, Any], path: str) -> Any:
    """The value of a claim. A claim whose own name contains the dots has precedence."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
