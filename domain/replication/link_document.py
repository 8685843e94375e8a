"""The document of a link: validated, with defaults, and with its secret values separated (LEG-901)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from annals.domain.errors.http_errors import InvalidLink
from annals.domain.replication.link import EVENTS, KAFKA, LOG, MODES, PULL, PUSH
from annals.domain.subscriptions import filters
from annals.domain.subscriptions.error_places import ErrorPlace
from annals.domain.subscriptions.filters import FilterError
from annals.domain.subscriptions.member_types import (
    BOOLEAN,
    TEXT,
    Member,
    MemberTable,
    MemberType,
    choice_type,
    map_type,
    number_type,
    object_type,
    parse_line,
    parse_members,
    parse_object,
)
from annals.domain.subscriptions.sink_uris import is_loopback_host
from annals.domain.values import xid as xids
from annals.domain.values.json_text import Json

#: Properties that the server sets; in a request they are ignored.
SERVER_MEMBERS: Final = ("id", "status")
#: The prefix of the names of secret values.
CREDENTIAL: Final = "credential."
#: Members that no response shows.
SECRET: Final = ("token", "password")

#: Ids of links; they are part of paths and of the names under which other systems know the links.
ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._~\-]{0,63}\Z")
_TOPIC_URL: Final = re.compile(
    r"(?:kafka|ssl)://[A-Za-z0-9.\-_]+:[0-9]{1,5}(?:,[A-Za-z0-9.\-_]+:[0-9]{1,5})*/[A-Za-z0-9._\-]{1,249}\Z"
)
#: Default seconds between checks of the other registry. A log is read as a continuous stream, and
#: repairs are rare.
_DEFAULT_INTERVALS: Final[Mapping[str, float]] = {PULL: 60, PUSH: 60, EVENTS: 3600}
_MAX_INTERVAL: Final = 7 * 86400


@dataclass(frozen=True, slots=True)
class LinkDocument:
    """A requested link. attributes: its public form. secrets: values by name."""

    attributes: Mapping[str, Json]
    secrets: Mapping[str, str] = field(repr=False)


def parse_link(body: Any) -> LinkDocument:
    """The link of a document. Raises: InvalidLink."""
    root = ErrorPlace(problem=InvalidLink)
    settable = {name: value for name, value in parse_object(body, root).items() if name not in SERVER_MEMBERS}
    members = parse_members(settable, PROPERTIES, root)
    dialect, mode = str(members["dialect"]), str(members["mode"])
    if mode not in MODES[dialect]:
        raise root.child("mode").error("value", f"the dialect {dialect} takes only: {', '.join(MODES[dialect])}")
    _check_url(str(members["url"]), dialect, "credential" in members, root.child("url"))
    _check_scope(members, root)
    _check_names(members["names"], root.child("names"))
    members.setdefault("interval", _DEFAULT_INTERVALS.get(mode, 60))
    secrets = _take_secrets(members)
    return LinkDocument({name: members[name] for name in PROPERTIES if name in members}, secrets)


def _check_url(url: str, dialect: str, has_credential: bool, place: ErrorPlace) -> None:
    if dialect == KAFKA:
        if not _TOPIC_URL.match(url):
            raise place.error("value", "kafka://<host>:<port>/<topic> is needed, or ssl:// for TLS")
        return
    try:
        url_parts = urlsplit(url)
        is_valid = url_parts.scheme in ("http", "https") and bool(url_parts.hostname) and (url_parts.port or 1) > 0
    except ValueError:
        is_valid = False
    if not is_valid or url_parts.query or url_parts.fragment or url_parts.username is not None:
        raise place.error("value", "an absolute http or https URL is needed, without user, query and fragment")
    if has_credential and url_parts.scheme == "http" and not is_loopback_host(str(url_parts.hostname)):
        raise place.error("plaintext", "credentials are sent over TLS only: use https")


def _check_scope(members: dict[str, Any], root: ErrorPlace) -> None:
    """Checks that a link to a log has Groups in its scope and no renamed Groups.

    A log is copied event by event: nothing in it can be renamed, and no Resource can be copied without its Group.
    """
    if members["dialect"] not in (LOG, KAFKA):
        return
    if members["scope"].get("resources"):
        raise root.child("scope", "resources").error("value", "a link that follows a log selects Groups only")
    if members["names"]:
        raise root.child("names").error("value", "a link that follows a log cannot rename Groups")


def _check_names(names: dict[str, str], place: ErrorPlace) -> None:
    """Checks that Groups keep their type, and that no two of them get one name."""
    remote_by_local: dict[str, str] = {}
    for remote, local in names.items():
        if xids.segments(remote)[0] != xids.segments(local)[0]:
            raise place.child(remote).error("value", "a Group can get another id only, not another type")
        if (other := remote_by_local.setdefault(local.lower(), remote)) != remote:
            raise place.child(remote).error("value", f"{local} is the name of {other} already")


def _take_secrets(members: dict[str, Any]) -> dict[str, str]:
    """Removes the secret values from the members and returns them."""
    credential = members.get("credential")
    if credential is None:
        return {}
    secrets = {CREDENTIAL + name: credential[name] for name in SECRET if name in credential}
    members["credential"] = {name: value for name, value in credential.items() if name not in SECRET}
    return secrets


def _check_credential(members: dict[str, Any], place: ErrorPlace) -> None:
    is_bearer = members["type"] == "bearer"
    for name in ("username", "password") if is_bearer else ("token",):
        if name in members:
            raise place.child(name).error("unknown", f"the member is unknown in a credential {members['type']}")
    if not is_bearer and "username" not in members:
        raise place.child("username").error("required", "it is needed")


def _parse_url(value: Any, place: ErrorPlace) -> str:
    return parse_line(value, place).rstrip("/")


def _parse_id(value: Any, place: ErrorPlace) -> str:
    text = parse_line(value, place)
    if not ID.match(text):
        raise place.error("value", "it is not the id of a link")
    return text


def _xid_type(length: int, entity_kind: str) -> MemberType:
    def parse(value: Any, place: ErrorPlace) -> str:
        text = parse_line(value, place).rstrip("/")
        segments = xids.segments(text) if text.startswith("/") else ()
        names, ids = segments[::2], segments[1::2]
        if len(segments) != length or not all(map(xids.NAME.match, names)) or not all(map(xids.ID.match, ids)):
            raise place.error("value", f"it is not the xid of a {entity_kind}")
        return text

    return MemberType("xid", parse)


def _list_type(item_type: MemberType) -> MemberType:
    def parse(value: Any, place: ErrorPlace) -> list[Json]:
        if not isinstance(value, list) or not value:
            raise place.error("type", "an array that is not empty is needed")
        return [item_type.parse(item, place.child(index)) for index, item in enumerate(value)]

    return MemberType("array", parse, {"item": {"type": item_type.type}})


def _parse_filters(value: Any, place: ErrorPlace) -> list[Json]:
    if not isinstance(value, list) or not value:
        raise place.error("type", "an array that is not empty is needed")
    try:
        filters.compile_filters(value, place.pointer)
    except FilterError as error:
        raise InvalidLink.at_pointer("filter", error.pointer, error.reason) from None
    return value


_GROUP_XID_TYPE: Final = _xid_type(2, "Group")
_SCOPE_MEMBERS: Final[MemberTable] = {
    "groups": Member(_list_type(_GROUP_XID_TYPE)),
    "resources": Member(_list_type(_xid_type(4, "Resource"))),
    "filters": Member(MemberType("array", _parse_filters)),
}
_CREDENTIAL_MEMBERS: Final[MemberTable] = {
    "type": Member(choice_type("bearer", "basic"), "bearer"),
    "token": Member(MemberType("string", parse_line, {"secret": True})),
    "username": Member(TEXT),
    "password": Member(MemberType("string", parse_line, {"secret": True})),
}
#: The properties, in the order in which responses have them.
PROPERTIES: Final[MemberTable] = {
    "url": Member(MemberType("url", _parse_url), required=True),
    "dialect": Member(choice_type(*MODES), LOG),
    "mode": Member(choice_type(*dict.fromkeys(mode for modes in MODES.values() for mode in modes)), PULL),
    "scope": Member(object_type(_SCOPE_MEMBERS), {}),
    "names": Member(map_type(_GROUP_XID_TYPE, _GROUP_XID_TYPE), {}),
    "interval": Member(number_type(0.05, _MAX_INTERVAL)),
    "conflicts": Member(choice_type("rename", "skip"), "rename"),
    "remote": Member(MemberType("string", _parse_id)),
    "credential": Member(object_type(_CREDENTIAL_MEMBERS, _check_credential)),
    "enabled": Member(BOOLEAN, True),
}
