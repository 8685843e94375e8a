"""Equivalent forms of texts and metadata that Confluent's clients send, and the forms that they expect."""

from __future__ import annotations

from typing import Any

import pytest

from annals.domain.confluent.content import content_identity
from annals.domain.confluent.metadata_rules import without_empty_members
from annals.domain.confluent.texts import protobuf

LAYOUT = """syntax = "proto3";
package shop;

import "google/type/money.proto";

option java_multiple_files = true;
option java_package = "com.example";

message Order {
  reserved 9;

  string name = 1;
  map<string, int32> counts = 2;

  oneof price {
    .google.type.Money money = 3;
    int32 cents = 4;
  }
  oneof place {
    string city = 5;
  }

  message Line {}
  enum Kind {
    KIND_UNSPECIFIED = 0;
  }
}
message Empty {}
enum State {
  STATE_UNSPECIFIED = 0;
}

service Orders {
  rpc Find (.shop.Empty) returns (.shop.Order);
}
"""


def test_protobuf_texts_have_the_layout_of_confluents_registry() -> None:
    # CSR-417: a text in this layout is its own canonical text, so its guid is the same as in that registry (CSR-413)
    assert protobuf.canonical_text(protobuf.parse(LAYOUT.encode(), {})) == LAYOUT


@pytest.mark.parametrize(
    "path",
    [
        *("google/type/money.proto", "google/type/postal_address.proto", "google/type/datetime.proto"),
        *("confluent/meta.proto", "confluent/type/decimal.proto", "confluent/type/variant.proto"),
        "confluent/types/decimal.proto",
    ],
)
def test_imports_that_need_no_reference(path: str) -> None:
    # CSR-510
    parsed = protobuf.parse(f'syntax = "proto3"; import "{path}"; message M {{}}'.encode(), {})
    assert path in parsed.imports


def test_a_reference_wins_over_a_document_that_every_schema_may_import() -> None:
    own = b'syntax = "proto3"; package google.type; message Own {}'
    text = b'syntax = "proto3"; import "google/type/money.proto"; message M { google.type.Own own = 1; }'
    assert protobuf.parse(text, {"google/type/money.proto": own}).descriptor.message_type[0].name == "M"


def test_empty_members_of_metadata_are_absent_ones() -> None:
    # CSR-505: Confluent's client for Python looks up a schema with them, although it read the schema without them
    sent: dict[str, Any] = {"properties": {"major": "1"}, "tags": None, "sensitive": []}
    assert without_empty_members(sent) == {"properties": {"major": "1"}}
    assert without_empty_members({"migrationRules": [{"name": "r", "params": {}}], "domainRules": []}) == {
        "migrationRules": [{"name": "r"}]
    }


def test_a_rule_that_is_not_disabled_may_say_so() -> None:
    plain, explicit = ({"domainRules": [{"name": "r", "type": "CEL", **more}]} for more in ({}, {"disabled": False}))
    assert content_identity("AVRO", "{}", {"ruleSet": plain}) == content_identity("AVRO", "{}", {"ruleSet": explicit})
