"""The three types of schemas, and the formats of the registry in which they are stored (CSR-405, CSR-418)."""

from __future__ import annotations

from typing import Final

AVRO: Final = "AVRO"
JSON: Final = "JSON"
PROTOBUF: Final = "PROTOBUF"
#: In the order in which `/schemas/types` lists them.
SCHEMA_TYPES: Final = (JSON, PROTOBUF, AVRO)

_FAMILIES: Final = {AVRO: "Avro", JSON: "JsonSchema", PROTOBUF: "Protobuf"}
_TYPES_BY_FAMILY: Final = {family.lower(): type for type, family in _FAMILIES.items()}
#: The formats of new subjects whose first text declares no release.
_DEFAULT_FORMATS: Final = {AVRO: "Avro/1.11.0", JSON: "JsonSchema/draft-07", PROTOBUF: "Protobuf/2"}
#: The format of a Resource whose versions have different types; the registry does not check its documents.
MIXED_FORMAT: Final = "Confluent"
#: The media types of stored documents (CSR-419).
CONTENT_TYPES: Final = {AVRO: "application/json", JSON: "application/json", PROTOBUF: "text/plain"}


def type_of_format(format: str) -> str | None:
    """The type of documents in a format, whatever its release; None for other formats."""
    return _TYPES_BY_FAMILY.get(format.partition("/")[0].lower())


def is_mixed(format: str) -> bool:
    """Whether a format is that of subjects with versions of different types."""
    return format.lower() == MIXED_FORMAT.lower()


def common_format(current: str | None, type: str, declared: str | None) -> str:
    """The format of all versions of a subject with a new one (CSR-418).

    current: of those before it, None if there are none. declared: the one that the new text declares, None if none.
    """
    if current is None:
        return declared or _DEFAULT_FORMATS[type]
    if type_of_format(current) != type:
        return MIXED_FORMAT
    return current if declared is None or _release(declared) == _release(current) else _FAMILIES[type]


def _release(format: str) -> str:
    """The release that a format names, the same for all of its spellings: `draft/2020-12`, `draft-2020-12`; 3, 3.0."""
    return format.partition("/")[2].lower().replace("draft/", "draft-").removesuffix(".0")
