"""`sinkcredential`: the credentials that are sent to a sink, by kind (subscriptions 3)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from annals.domain.subscriptions import sink_uris
from annals.domain.subscriptions.error_places import ErrorPlace
from annals.domain.subscriptions.member_types import (
    TEXT,
    Member,
    MemberTable,
    MemberType,
    choice_type,
    parse_line,
    parse_members,
    parse_object,
    parse_time,
    pattern_type,
)
from annals.domain.subscriptions.protocol_settings import rename_aliases
from annals.domain.subscriptions.sink_uris import AMQP, HTTP
from annals.domain.values.json_text import Json

#: The prefix of the names of secret values.
PREFIX: Final = "sinkcredential."
EXPIRES: Final = "accesstokenexpiresutc"
ENDPOINT: Final = "refreshtokenendpoint"
#: Members that no response shows.
SECRET_MEMBERS: Final = frozenset(("secret", "accesstoken", "refreshtoken"))
#: Members that identify the owner of a secret: if one of them changes, the stored secret is no longer valid (SUB-304).
BINDING: Final = ("credentialtype", "identifier", ENDPOINT)


def _parse_expiry(value: Any, place: ErrorPlace) -> str:
    timestamp = parse_time(value, place)
    try:
        datetime.fromisoformat(timestamp)
    except ValueError as error:
        raise place.error("value", str(error)) from None
    return timestamp


def _parse_endpoint(value: Any, place: ErrorPlace) -> str:
    sink = sink_uris.parse_sink(value, HTTP, place)
    if not sink.tls:
        raise place.error("value", "an https URL is needed")
    return str(value)


def _parse_token(value: Any, place: ErrorPlace) -> str:
    """A token that fits into a header at its end."""
    token = parse_line(value, place)
    if token != token.strip():
        raise place.error("value", "a token cannot begin or end with a blank")
    return token


_TYPE: Final = Member(choice_type("PLAIN", "ACCESSTOKEN", "REFRESHTOKEN"), required=True)
_SECRET: Final = Member(MemberType("string", parse_line, {"secret": True}))
_ACCESS_TOKEN: Final = MemberType("string", _parse_token, {"secret": True})
_TOKEN: Final[MemberTable] = {
    "accesstoken": Member(_ACCESS_TOKEN),
    EXPIRES: Member(MemberType("timestamp", _parse_expiry), required=True),
    "accesstokentype": Member(pattern_type(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+", "it is not the type of a token"), "bearer"),
}
#: The members of each kind; the secret ones are required too, in the request or in the stored subscription.
CREDENTIAL_MEMBERS: Final[Mapping[str, MemberTable]] = {
    "PLAIN": {"credentialtype": _TYPE, "identifier": Member(TEXT, required=True), "secret": _SECRET},
    "ACCESSTOKEN": {"credentialtype": _TYPE, **_TOKEN},
    "REFRESHTOKEN": {
        "credentialtype": _TYPE,
        **_TOKEN,
        "refreshtoken": _SECRET,
        ENDPOINT: Member(MemberType("url", _parse_endpoint), required=True),
    },
}
_NAMES: Final = frozenset(name for table in CREDENTIAL_MEMBERS.values() for name in table)


def parse_credential(value: Any, protocol: str, place: ErrorPlace) -> dict[str, Json]:
    """The credential with its defaults, including secret values. Raises: InvalidSubscription.

    Names may have any letter case (SUB-106).
    """
    members = parse_object(value, place)
    aliases = {name: name.lower() for name in members if name not in _NAMES and name.lower() in _NAMES}
    members = rename_aliases(members, aliases, place)
    type = (
        _TYPE.kind.parse(members["credentialtype"], place.child("credentialtype"))
        if _check_type(members, place)
        else ""
    )
    credential = parse_members(members, CREDENTIAL_MEMBERS[type], place)
    if protocol == AMQP and type != "PLAIN":
        raise place.child("credentialtype").error("value", "AMQP takes a name and a password, not a token")
    if protocol == HTTP and ":" in credential.get("identifier", ""):
        raise place.child("identifier").error("value", "HTTP does not allow a colon in it")
    return credential


def missing_secrets(credential: Mapping[str, Json]) -> list[str]:
    """The names of the secret members that a credential needs and lacks."""
    return [
        name
        for name in CREDENTIAL_MEMBERS[credential["credentialtype"]]
        if name in SECRET_MEMBERS and name not in credential
    ]


def is_expired(credential: Mapping[str, Json], now: datetime) -> bool:
    """Whether its token has expired."""
    return EXPIRES in credential and datetime.fromisoformat(credential[EXPIRES]) <= now


def _check_type(members: Mapping[str, Any], place: ErrorPlace) -> bool:
    if "credentialtype" not in members:
        raise place.child("credentialtype").error("required", "it is needed")
    return True
