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
#: The format of a Resource whose versions have different types.
MIXED_FORMAT: Final = "Confluent"
#: The media types of stored documents (CSR-419).
CONTENT_TYPES: Final = {AVRO: "application/json", JSON: "application/json", PROTOBUF: "text/plain"}


def type_of_format(format: str) -> str | None:
    """The type of documents in a format, whatever its release; None for other formats."""
    return _TYPES_BY_FAMILY.get(format.partition("/")[0].lower())


def common_format(release: str, current: str | None) -> str:
    """The format of all versions of a subject. release: of a new version; current: of those before it, if any."""
    if current is None or current.lower() == release.lower():
        return release
    family = release.partition("/")[0]
    return family if current.partition("/")[0].lower() == family.lower() else MIXED_FORMAT
