"""The two legacy APIs: how each names Groups, Resources and paths, and the numbers of Versions.

A definition is a schema or a message definition. A number is the integer by which the legacy APIs identify a Version.
Rules LEG-101, LEG-200, LEG-405, LEG-1205.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from annals.domain.values import xid as xids

#: The private member of an entity that holds data which only the legacy APIs use; absent where there is none.
FACADE: Final = "facade"
#: Maximum digits of a number, and of a versionid that counts as a number: JSON readers keep all digits of these.
_MAX_NUMBER_DIGITS: Final = 18
_MAX_ID_DIGITS: Final = 15


@dataclass(frozen=True, slots=True)
class LegacyApi:
    """One of the legacy APIs.

    groups, resources: plurals of the types in the registry. path, children: their names in the paths of this API. base:
    the path prefix between the public URL and these paths. headers: prefix of the headers that carry attributes.
    events: prefix of the types of its events. lookup: the path that finds a Version by its URI.
    """

    name: str
    groups: str
    resources: str
    path: str
    children: str
    base: str
    headers: str
    events: str
    lookup: str

    @property
    def type(self) -> str:
        """The type of its definitions in the registry, such as `schemagroups.schemas`."""
        return f"{self.groups}.{self.resources}"


SCHEMAREGISTRY: Final = LegacyApi(
    name="schemaregistry",
    groups="schemagroups",
    resources="schemas",
    path="schemagroups",
    children="schemas",
    base="/compat/schemaregistry/v0.2",
    headers="Schema",
    events="io.cloudevents.schemaregistry",
    lookup="schema",
)
MESSAGECATALOG: Final = LegacyApi(
    name="messagecatalog",
    groups="messagegroups",
    resources="messages",
    path="messagecatalog",
    children="messagedefinitions",
    base="/compat/messagecatalog/v0.1",
    headers="Message",
    events="io.cloudevents.messagecatalog",
    lookup="messagedefinition",
)
LEGACY_APIS: Final = (SCHEMAREGISTRY, MESSAGECATALOG)

_APIS_BY_TYPE: Final[dict[str, LegacyApi]] = {
    type: family for family in LEGACY_APIS for type in (family.groups, family.type, f"{family.type}.versions")
}


def legacy_api_of(xid: str) -> LegacyApi | None:
    """The legacy API that shows the Group, Resource or Version of an xid; None for other xids and for collections."""
    return _APIS_BY_TYPE.get(xids.type_of(xid)) if xid.count("/") % 2 == 0 else None


def without_members(facade: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The legacy values of an entity without some of them."""
    return {name: value for name, value in facade.items() if name not in names}


def is_number(text: str) -> bool:
    """Whether a text is a valid number: decimal digits, at least 1, without leading zeros (LEG-209).

    The value fits in 64 bits, because databases and clients have no larger integers.
    """
    return len(text) <= _MAX_NUMBER_DIGITS and text.isdecimal() and text.isascii() and text[0] != "0"


def number_from_id(versionid: str) -> int:
    """The number that a versionid itself is, else 0. More digits make it a name, so that higher numbers stay free."""
    return int(versionid) if is_number(versionid) and len(versionid) <= _MAX_ID_DIGITS else 0


def version_number(versionid: str, private: Mapping[str, Any]) -> int:
    """The number of a Version: the recorded one, else the versionid itself where that is a number (LEG-405).

    private: private members of the Version. 0 for a Version without a numeric id that is older than the numbering.
    """
    recorded: int | None = private.get(FACADE, {}).get("number")
    return recorded if recorded is not None else int(versionid) if is_number(versionid) else 0


def document_hash(private: Mapping[str, Any]) -> str | None:
    """The hash of the entity's document: its own, or the one that a legacy API stores for a message; None for neither.

    private: private members of the entity.
    """
    recorded_hash: str | None = private.get("document") or private.get(FACADE, {}).get("document")
    return recorded_hash
