"""The format that the versions of a subject share."""

from __future__ import annotations

import pytest

from annals.domain.confluent.schema_types import common_format

ROWS = [
    (None, "AVRO", None, "Avro/1.11.0"),
    (None, "JSON", None, "JsonSchema/draft-07"),
    (None, "JSON", "JsonSchema/draft-04", "JsonSchema/draft-04"),
    (None, "PROTOBUF", "Protobuf/3", "Protobuf/3"),
    ("Avro/1.9", "AVRO", None, "Avro/1.9"),
    ("JSONSCHEMA/Draft-07", "JSON", "JsonSchema/draft-07", "JSONSCHEMA/Draft-07"),
    ("JsonSchema/draft-2020-12", "JSON", "JsonSchema/draft/2020-12", "JsonSchema/draft-2020-12"),
    ("JsonSchema/draft/2020-12", "JSON", None, "JsonSchema/draft/2020-12"),
    ("JsonSchema/draft-07", "JSON", "JsonSchema/draft-04", "JsonSchema"),
    ("JsonSchema", "JSON", "JsonSchema/draft-07", "JsonSchema"),
    ("JsonSchema", "JSON", None, "JsonSchema"),
    ("Protobuf/3.0", "PROTOBUF", "Protobuf/3", "Protobuf/3.0"),
    ("Protobuf/3", "PROTOBUF", "Protobuf/2", "Protobuf"),
    ("Protobuf/3", "PROTOBUF", "Protobuf/2023", "Protobuf"),
    ("Protobuf/3", "AVRO", None, "Confluent"),
    ("JsonSchema", "AVRO", None, "Confluent"),
    ("XSD/1.1", "JSON", None, "Confluent"),
    ("Confluent", "AVRO", None, "Confluent"),
    ("Confluent", "PROTOBUF", "Protobuf/3", "Confluent"),
]


@pytest.mark.parametrize(("current", "type", "declared", "common"), ROWS)
def test_common_format(current: str | None, type: str, declared: str | None, common: str) -> None:
    # CSR-418
    assert common_format(current, type, declared) == common
