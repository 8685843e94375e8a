"""`sinkcredential`: who a sink is shown, by kind of credential (subscriptions 3)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from domain.jsontext import Json
from domain.model.timestamps import utc
from domain.subscriptions import sinks
from domain.subscriptions.kinds import Kind, Member, Table, line, matching, object_of, one_of, read
from domain.subscriptions.places import Place
from domain.subscriptions.settings import renamed
from domain.subscriptions.sinks import HTTP

#: What stands before the names of secret values.
PREFIX: Final = "sinkcredential."
EXPIRES: Final = "accesstokenexpiresutc"
ENDPOINT: Final = "refreshtokenendpoint"
#: Members that no answer shows.
SECRET: Final = frozenset(("secret", "accesstoken", "refreshtoken"))
#: Members without which a stored secret is for somebody else (SUB-304).
BINDING: Final = ("credentialtype", "identifier", ENDPOINT)


def _time(given: Any, place: Place) -> str:
    try:
        found = utc(line(given, place))
        datetime.fromisoformat(found)
    except (ValueError, OverflowError) as error:
        raise place.refused("value", str(error)) from None
    return found


def _endpoint(given: Any, place: Place) -> str:
    found = sinks.address(given, HTTP, place)
    if not found.tls:
        raise place.refused("value", "an https URL is needed")
    return str(given)


_TYPE: Final = Member(one_of("PLAIN", "ACCESSTOKEN", "REFRESHTOKEN"), required=True)
_LINE: Final = Kind("string", line)
_SECRET: Final = Member(Kind("string", line, {"secret": True}))
_TOKEN: Final[Table] = {
    "accesstoken": _SECRET,
    EXPIRES: Member(Kind("timestamp", _time), required=True),
    "accesstokentype": Member(matching(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+", "it is no type of a token"), "bearer"),
}
#: The members of each kind; those that are secret are needed too, here or in what is stored.
TABLES: Final[Mapping[str, Table]] = {
    "PLAIN": {"credentialtype": _TYPE, "identifier": Member(_LINE, required=True), "secret": _SECRET},
    "ACCESSTOKEN": {"credentialtype": _TYPE, **_TOKEN},
    "REFRESHTOKEN": {
        "credentialtype": _TYPE,
        **_TOKEN,
        "refreshtoken": _SECRET,
        ENDPOINT: Member(Kind("url", _endpoint), required=True),
    },
}
_NAMES: Final = frozenset(name for table in TABLES.values() for name in table)


def credential(given: Any, protocol: str, place: Place) -> dict[str, Json]:
    """The credential with its defaults, as far as it is given, secret values still in it. Raises: InvalidSubscription.

    Names are understood in any letter case (SUB-106).
    """
    members = object_of(given, place)
    aliases = {name: name.lower() for name in members if name not in _NAMES and name.lower() in _NAMES}
    members = renamed(members, aliases, place)
    type = _TYPE.kind.parse(members["credentialtype"], place.at("credentialtype")) if _typed(members, place) else ""
    found = read(members, TABLES[type], place)
    if protocol == HTTP and ":" in found.get("identifier", ""):
        raise place.at("identifier").refused("value", "HTTP allows no colon in it")
    return found


def missing(found: Mapping[str, Json]) -> list[str]:
    """The names of the secret members that a credential needs and does not say."""
    return [name for name in TABLES[found["credentialtype"]] if name in SECRET and name not in found]


def expired(found: Mapping[str, Json], now: datetime) -> bool:
    """Whether its token was good until a time that has passed."""
    return EXPIRES in found and datetime.fromisoformat(found[EXPIRES]) <= now


def _typed(members: Mapping[str, Any], place: Place) -> bool:
    if "credentialtype" not in members:
        raise place.at("credentialtype").refused("required", "it is needed")
    return True
