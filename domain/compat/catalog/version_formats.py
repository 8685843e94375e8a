"""The format of each Version of a message definition, which stays its own when that of its Group changes.

It is the Group's as long as the Group says one that goes with the Version. Rules LEG-522, LEG-1203, § 12.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from domain.compat.catalog import METASCHEMAS
from domain.compat.catalog.groups import declared_formats
from domain.values.json_text import Json

#: The façade's member of a Version with the format of its document, where its attributes do not say it.
FORMAT: Final = "format"


def version_format(attributes: Mapping[str, Json], facade: Mapping[str, Any], of_group: str) -> str:
    """The format that a Version's document has, or is made in. facade: what only the older APIs know of the Version.

    Messages of the registry's own are shown by their attributes where the Group is of a format without a metaschema.
    """
    recorded, said = facade.get(FORMAT), declared_formats(attributes)
    if isinstance(recorded, str) and (recorded in said or recorded not in METASCHEMAS):
        return recorded
    if not said or of_group in said or (of_group not in METASCHEMAS and "document" not in facade):
        return of_group
    return said[0]


def recorded_format(format: str | None, attributes: Mapping[str, Json]) -> str | None:
    """What of a new document's format has to be kept beside the attributes that were made of it."""
    return None if format in declared_formats(attributes) else format


def without_document(attributes: Mapping[str, Json], facade: Mapping[str, Any], format: str, of_group: str) -> Any:
    """What an older API knows of a Version that says something else than its document now; its format stays."""
    left = {name: value for name, value in facade.items() if name not in ("document", "contenttype")}
    return left if version_format(attributes, left, of_group) == format else {**left, FORMAT: format}
