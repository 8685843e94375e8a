"""Values that name entities and types: `xid`, `xidtype`, and the `target` that restricts them.

Spec: core 1.0-rc4, "Data Types"; Registry Model 1.0-rc4, "attributes.<STRING>.target".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

from annals.domain.model.validation.value_errors import InvalidValue, InvalidXid, InvalidXref
from annals.domain.values import xid as xids

#: Plural names of the Resource types by plural name of their Group type.
Types = Mapping[str, Collection[str]]

_TARGET: Final = re.compile(r"/([^/\[\]]+)(?:/([^/\[\]]+)(/versions|\[/versions\])?)?\Z")
#: The text after `/<GROUPS>/<RESOURCES>` in a target, and the kinds of entity that it allows.
_KINDS_BY_SUFFIX: Final = {None: {"resource"}, "/versions": {"version"}, "[/versions]": {"resource", "version"}}


def check_xid(value: str, types: Types) -> str:
    """The value, if it is the xid of an entity of an existing type; the entity need not exist.

    Raises: InvalidXid.
    """
    _kind_of_xid(value, types)
    return value


def check_xref(value: str, types: Types) -> str:
    """The value, if it is the xid of a Resource, which need not exist. Raises: InvalidXref."""
    try:
        kind = _kind_of_xid(value, types)
    except InvalidXid as invalid_xid:
        raise InvalidXref(value, invalid_xid.detail) from None
    if kind != "resource":
        raise InvalidXref(value, "it does not name a Resource")
    return value


def check_xidtype(value: str, types: Types) -> str:
    """The value, if it names the Registry or an existing type. Raises: InvalidValue."""
    group, *remaining = xids.segments(value) or ("",)
    if value == xids.REGISTRY or (
        value.startswith("/") and group in types and _is_known_below(remaining, types[group])
    ):
        return value
    raise InvalidValue("it does not name a type of this registry such as /dirs or /dirs/files")


def target_exists(target: str, types: Types) -> bool:
    """Whether a definition's `target` has one of its forms, and names existing types."""
    match = _TARGET.match(target)
    return match is not None and match[1] in types and (match[2] is None or match[2] in types[match[1]])


def target_check(target: str, types: Types) -> Callable[[str], str]:
    """A check that a value is the xid of an entity that a target allows.

    The check raises InvalidXid, or InvalidValue for an entity of another kind.
    """
    match = _TARGET.match(target)
    assert match, "definitions are checked before they are compiled"
    group, resource = match[1], match[2]
    kinds = _KINDS_BY_SUFFIX[match[3]] if resource else {"group"}

    def check(value: str) -> str:
        kind, names = _kind_of_xid(value, types), xids.segments(value)
        if kind not in kinds or names[0] != group or (resource and names[2] != resource):
            raise InvalidValue(f"it does not match the target {target}")
        return value

    return check


def _is_known_below(names: list[str], resources: Collection[str]) -> bool:
    return not names or (names[0] in resources and names[1:] in ([], ["versions"]))


def _kind_of_xid(value: str, types: Types) -> str:
    """The kind of an xid: `registry`, `group`, `resource`, `meta` or `version`. Raises: InvalidXid."""
    if not value.startswith("/"):
        raise InvalidXid(value, "it does not start with /")
    names = xids.segments(value)
    if not all(xids.ID.match(name) for name in names[1::2]):
        raise InvalidXid(value, "it has an id with characters that ids do not have")
    match names:
        case ():
            return "registry"
        case (group, _) if group in types:
            return "group"
        case (group, _, resource, _) if resource in types.get(group, ()):
            return "resource"
        case (group, _, resource, _, "meta") if resource in types.get(group, ()):
            return "meta"
        case (group, _, resource, _, "versions", _) if resource in types.get(group, ()):
            return "version"
    raise InvalidXid(value, "it does not name an entity of a type that this registry has")
