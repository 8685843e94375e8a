"""Names of schema formats in Schema Registry 0.2, and their names in the registry.

A name without a row in the table is the same in both. Rules LEG-504, LEG-701, LEG-702, § 7.
"""

from __future__ import annotations

import re
from typing import Final

#: The registry's name of each format, then its legacy names. They match in any letter case; answers use the first one.
_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "Avro/1.11.0": ("avro",),
    "JsonSchema/draft-07": ("json-schema", "jsonschema"),
    "XSD/1.1": ("xsd", "xsd11"),
    "XSD/1.0": ("xsd10",),
    "Protobuf/3": ("protobuf", "protobuf3"),
    "Protobuf/2": ("protobuf2",),
    "JsonStructure/draft-04": ("json-structure",),
}
_REGISTRY_NAMES: Final = {older: name for name, all in _NAMES.items() for older in all}
_LEGACY_NAMES: Final = {name.casefold(): all[0] for name, all in _NAMES.items()}
#: One parameter of a media type, starting at its semicolon. An unclosed quoted string extends to the end of the text.
_PARAMETER: Final = re.compile(r';[ \t]*([^\s=;"]+)=("(?:[^"\\]|\\.)*(?:"|\\?\Z)|[^\s;"]*)|"(?:[^"\\]|\\.)*(?:"|\\?\Z)')
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def registry_format(name: str) -> str:
    """The registry's name of a format that a legacy client names."""
    return _REGISTRY_NAMES.get(name.casefold(), name)


def legacy_format(name: str) -> str:
    """The legacy name of a format of the registry. `registry_format` turns it back into an equal name."""
    return _LEGACY_NAMES.get(name.casefold(), name)


def displayed_format(name: str, *spellings: str | None) -> str:
    """The name under which the legacy API shows a format: the first of the spellings that still means it."""
    return next(
        (spelling for spelling in spellings if spelling is not None and is_same_format(spelling, name)),
        legacy_format(name),
    )


def is_same_format(first: str, other: str) -> bool:
    """Whether two spellings name the same format; the registry ignores letter case in names (CM-14)."""
    return registry_format(first).casefold() == registry_format(other).casefold()


def format_parameter(contenttype: str) -> str | None:
    """The `format` parameter of a media type; None where it is missing or empty.

    Raises: ValueError where two `format` parameters differ.
    """
    names = {
        _ESCAPED.sub(r"\1", match[2][1:-1]) if match[2].startswith('"') else match[2]
        for match in _PARAMETER.finditer(contenttype)
        if (match[1] or "").casefold() == "format"
    }
    if len(names) > 1:
        raise ValueError("its media type names two formats")
    return next(iter(names), None) or None
