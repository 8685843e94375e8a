"""The documents of API keys and grants that administrators send, checked (ACC-41, ACC-62)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from annals.domain.access.caller_names import MAX_LENGTH, check_name
from annals.domain.access.grants import ANYONE, CALLER_SUBJECT, CLAIM_SUBJECT
from annals.domain.access.places import MAX_PLACES, check_place
from annals.domain.access.roles import KEY_PREFIX, Role
from annals.domain.errors.http_errors import InvalidGrant, InvalidKey
from annals.domain.subscriptions.error_places import ErrorPlace
from annals.domain.subscriptions.member_types import (
    Member,
    MemberTable,
    MemberType,
    choice_type,
    integer_type,
    map_type,
    parse_line,
    parse_members,
    parse_object,
    parse_time,
    pattern_type,
)
from annals.domain.values import xid as xids
from annals.domain.values.json_text import Json

#: Members that the server sets; in a request they are ignored, so that an answer can be sent back.
SERVER_MEMBERS: Final = ("id", "createdat", "rotatedat", "lastused")


def parse_key_document(body: Any) -> dict[str, Json]:
    """The attributes of a new key. Raises: InvalidKey."""
    root = ErrorPlace(problem=InvalidKey)
    attributes = parse_members(_settable(body, root), KEY_MEMBERS, root)
    if "role" not in attributes and not attributes.get("groups"):
        raise root.child("role").error("required", 'a role is needed, or roles for Groups in "groups"')
    return attributes


def parse_rotation(body: Any) -> int:
    """The seconds for which the key before stays good (ACC-46). Raises: InvalidKey."""
    root = ErrorPlace(problem=InvalidKey)
    return int(str(parse_members(parse_object(body, root), _ROTATION_MEMBERS, root)["grace"]))


def parse_grant_document(body: Any) -> dict[str, Json]:
    """The attributes of a grant. Raises: InvalidGrant."""
    root = ErrorPlace(problem=InvalidGrant)
    return parse_members(_settable(body, root), GRANT_MEMBERS, root)


def _settable(body: Any, root: ErrorPlace) -> Mapping[str, Any]:
    return {name: value for name, value in parse_object(body, root).items() if name not in SERVER_MEMBERS}


def _parse_place(value: Any, place: ErrorPlace) -> str:
    try:
        return check_place(parse_line(value, place))
    except ValueError as error:
        raise place.error("value", str(error)) from None


def _parse_place_or_root(value: Any, place: ErrorPlace) -> str:
    return xids.REGISTRY if value == xids.REGISTRY else _parse_place(value, place)


def _parse_key_name(value: Any, place: ErrorPlace) -> str:
    text = parse_line(value, place)
    try:
        check_name(text)
    except ValueError as error:
        raise place.error("value", str(error)) from None
    if len(KEY_PREFIX + text) > MAX_LENGTH:
        raise place.error("value", f"it has more than {MAX_LENGTH - len(KEY_PREFIX)} characters")
    return text


def _parse_subject(value: Any, place: ErrorPlace) -> str:
    text = parse_line(value, place)
    names = [text.removeprefix(kind) for kind in (CALLER_SUBJECT, CLAIM_SUBJECT) if text.startswith(kind)]
    if text != ANYONE and not any(names):
        raise place.error("value", f"it is not {ANYONE}, {CALLER_SUBJECT}<name> or {CLAIM_SUBJECT}<word>")
    if len(text) > MAX_LENGTH + len(CALLER_SUBJECT):
        raise place.error("value", f"the name has more than {MAX_LENGTH} characters")
    return text


def _parse_groups(value: Any, place: ErrorPlace) -> Json:
    roles = _ROLES_BY_PLACE.parse(value, place)
    if isinstance(roles, dict) and len(roles) > MAX_PLACES:
        raise place.error("value", f"it has more than {MAX_PLACES} places")
    return roles


_ROLE: Final = choice_type(*Role)
_PLACE: Final = MemberType("place", _parse_place)
_ROLES_BY_PLACE: Final = map_type(_PLACE, _ROLE)
_TIME: Final = MemberType("timestamp", parse_time)
_NOTE: Final = pattern_type(".*", "", max_bytes=1024)

KEY_MEMBERS: Final[MemberTable] = {
    "name": Member(MemberType("string", _parse_key_name), required=True),
    "role": Member(_ROLE),
    "groups": Member(MemberType("map", _parse_groups, _ROLES_BY_PLACE.description_members)),
    "expires": Member(_TIME),
    "description": Member(_NOTE),
}
_ROTATION_MEMBERS: Final[MemberTable] = {"grace": Member(integer_type(0, 7 * 86400), 0)}
GRANT_MEMBERS: Final[MemberTable] = {
    "subject": Member(MemberType("string", _parse_subject), required=True),
    "role": Member(_ROLE, required=True),
    "at": Member(MemberType("place", _parse_place_or_root), required=True),
    "expires": Member(_TIME),
    "note": Member(_NOTE),
}
