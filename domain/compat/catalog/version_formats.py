"""The format of each Version of a message definition; it stays the same when the format of its Group changes.

It is the Group's format as long as the Group declares one that suits the Version. Rules LEG-522, LEG-1203, § 12.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from annals.domain.compat.catalog import METASCHEMAS
from annals.domain.compat.catalog.groups import declared_formats
from annals.domain.compat.legacy_apis import without_members
from annals.domain.values.json_text import Json

#: The façade member of a Version with the format of its document, where the attributes do not declare it.
FORMAT: Final = "format"


def version_format(attributes: Mapping[str, Json], facade: Mapping[str, Any], group_format: str) -> str:
    """The format of a Version's document, existing or generated. facade: the legacy data of the Version.

    Messages that were written through the registry use the format of their own attributes, where the Group's format has
    no metaschema.
    """
    recorded, declared = facade.get(FORMAT), declared_formats(attributes)
    if isinstance(recorded, str) and (recorded in declared or recorded not in METASCHEMAS):
        return recorded
    if not declared or group_format in declared or (group_format not in METASCHEMAS and "document" not in facade):
        return group_format
    return declared[0]


def recorded_format(format: str | None, attributes: Mapping[str, Json]) -> str | None:
    """The format to store next to the attributes of a new document; None where the attributes declare it."""
    return None if format in declared_formats(attributes) else format


def without_document(attributes: Mapping[str, Json], facade: Mapping[str, Any], format: str, group_format: str) -> Any:
    """The legacy data of a Version whose stored document is outdated: without the document, but with its format."""
    remaining = without_members(facade, "document", "contenttype")
    return remaining if version_format(attributes, remaining, group_format) == format else {**remaining, FORMAT: format}
