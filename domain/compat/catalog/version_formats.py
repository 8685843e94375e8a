"""The format of each Version of a message definition; it stays the same when the format of its Group changes.

It is the Group's format as long as the Group declares one that suits the Version. Rules LEG-522, LEG-1203, § 12.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from domain.compat.catalog import METASCHEMAS
from domain.compat.catalog.groups import declared_formats
from domain.compat.legacy_apis import without_members
from domain.values.json_text import Json

#: The façade member of a Version with the format of its document, where the attributes do not declare it.
FORMAT: Final = "format"


def version_format(attributes: Mapping[str, Json], facade: Mapping[str, Any], of_group: str) -> str:
    """The format of a Version's document, existing or generated. facade: the legacy data of the Version.

    Messages that were written through the registry use the format of their own attributes, where the Group's format has
    no metaschema.
    """
    recorded, said = facade.get(FORMAT), declared_formats(attributes)
    if isinstance(recorded, str) and (recorded in said or recorded not in METASCHEMAS):
        return recorded
    if not said or of_group in said or (of_group not in METASCHEMAS and "document" not in facade):
        return of_group
    return said[0]


def recorded_format(format: str | None, attributes: Mapping[str, Json]) -> str | None:
    """The format to store next to the attributes of a new document; None where the attributes declare it."""
    return None if format in declared_formats(attributes) else format


def without_document(attributes: Mapping[str, Json], facade: Mapping[str, Any], format: str, of_group: str) -> Any:
    """The legacy data of a Version whose stored document is outdated: without the document, but with its format."""
    left = without_members(facade, "document", "contenttype")
    return left if version_format(attributes, left, of_group) == format else {**left, FORMAT: format}
