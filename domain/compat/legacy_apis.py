"""The two older APIs side by side: what each calls the Groups, Resources and paths that it shows.

A definition is a schema or a message definition; a number is the integer version that the older APIs know it under.
Rules LEG-101, LEG-405, LEG-1205; the tables of the path rows S1 to S13 and M1 to M13.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from domain.values import xid as xids

#: The private member of an entity with what only the older APIs know of it; absent where that is nothing.
FACADE: Final = "facade"
#: Digits of a number, and of an id that is taken for one: readers of JSON have all digits of so many.
_LONGEST: Final = 18
_LONGEST_ID: Final = 15


@dataclass(frozen=True, slots=True)
class LegacyApi:
    """One of the older APIs.

    groups, resources: plurals of the registry's types. path, children: what its own paths call them. base: what stands
    between them and the public URL. headers: what those that carry attributes begin with. events: the same of the types
    of its events. lookup: the path that finds a Version by its URI.
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
        """The type of its definitions in the registry."""
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

_BY_TYPE: Final[dict[str, LegacyApi]] = {
    type: family for family in LEGACY_APIS for type in (family.groups, family.type, f"{family.type}.versions")
}


def legacy_api_of(xid: str) -> LegacyApi | None:
    """The family that shows the Group, Resource or Version of an xid; None for all else, collections included."""
    return _BY_TYPE.get(xids.type_of(xid)) if xid.count("/") % 2 == 0 else None


def legacy_api_of_type(type: str) -> LegacyApi | None:
    """The same by the type of an entity (`schemagroups.schemas.versions`)."""
    return _BY_TYPE.get(type)


def is_number(text: str) -> bool:
    """Whether a text is how a number is written: decimal, from 1 on, without leading zeros (LEG-209).

    It is one of 64 bits, as databases and clients have no others.
    """
    return len(text) <= _LONGEST and text.isdecimal() and text.isascii() and text[0] != "0"


def number_from_id(versionid: str) -> int:
    """The number that an id is by itself, 0 for none. A longer one is a name, or numbers could not go on behind it."""
    return int(versionid) if is_number(versionid) and len(versionid) <= _LONGEST_ID else 0


def version_number(versionid: str, private: Mapping[str, Any]) -> int:
    """The number of a Version, which says it itself only where its id does not (LEG-405).

    private: of its entity. 0 for one that was written before numbers were given and whose id is none.
    """
    stated: int | None = private.get(FACADE, {}).get("number")
    return stated if stated is not None else int(versionid) if is_number(versionid) else 0


def document_hash(private: Mapping[str, Any]) -> str | None:
    """The hash of the document that an entity's private members refer to: its own, or the one that an older API keeps
    of a message. None for most, which have none.
    """
    found: str | None = private.get("document") or private.get(FACADE, {}).get("document")
    return found
