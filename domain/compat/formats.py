"""Names of schema formats: what Schema Registry 0.2 calls them, and what the registry does.

A name that the older API has no table row for is the same in both. Rules LEG-504, LEG-701, LEG-702, § 7.
"""

from __future__ import annotations

import re
from typing import Final

#: The registry's name of each format, and the older names in any letter case, the one to be shown first.
_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "Avro/1.11.0": ("avro",),
    "JsonSchema/draft-07": ("json-schema", "jsonschema"),
    "XSD/1.1": ("xsd", "xsd11"),
    "XSD/1.0": ("xsd10",),
    "Protobuf/3": ("protobuf", "protobuf3"),
    "Protobuf/2": ("protobuf2",),
    "JsonStructure/draft-04": ("json-structure",),
}
_MAPPED: Final = {older: name for name, all in _NAMES.items() for older in all}
_SPELLED: Final = {name.casefold(): all[0] for name, all in _NAMES.items()}
#: One parameter of a media type, from its semicolon on. A quoted string that does not end is taken whole.
_PARAMETER: Final = re.compile(r';[ \t]*([^\s=;"]+)=("(?:[^"\\]|\\.)*(?:"|\\?\Z)|[^\s;"]*)|"(?:[^"\\]|\\.)*(?:"|\\?\Z)')
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def registry_format(name: str) -> str:
    """The registry's name of a format that a client of the older API spells so."""
    return _MAPPED.get(name.casefold(), name)


def legacy_format(name: str) -> str:
    """How the older API spells a format that a client of the registry named; `mapped` gives an equal one back."""
    return _SPELLED.get(name.casefold(), name)


def displayed_format(name: str, *spellings: str | None) -> str:
    """How the older API shows a format of the registry: in the first of the spellings that still means it."""
    return next((each for each in spellings if each is not None and is_same_format(each, name)), legacy_format(name))


def is_same_format(one: str, other: str) -> bool:
    """Whether two spellings mean one format; the registry's names have no case (CM-14)."""
    return registry_format(one).casefold() == registry_format(other).casefold()


def format_parameter(contenttype: str) -> str | None:
    """The `format` parameter of a media type; None without one, and for an empty one.

    Raises: ValueError where there are two that differ.
    """
    given = {
        _ESCAPED.sub(r"\1", found[2][1:-1]) if found[2].startswith('"') else found[2]
        for found in _PARAMETER.finditer(contenttype)
        if (found[1] or "").casefold() == "format"
    }
    if len(given) > 1:
        raise ValueError("its media type names two formats")
    return next(iter(given), None) or None
