"""The texts that `normalize` stores: they declare what was sent, and are their own normalized texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from annals.domain.confluent.texts import avro, protobuf

OWN_OPTIONS = """
message Rule { optional Kind kind = 1; repeated Rule rules = 2; optional bytes raw = 3; extensions 10; }
enum Kind { K = 0; }
extend Rule { optional float weight = 10; }
extend google.protobuf.FieldOptions { optional Rule rule = 50000; repeated double limit = 50001; }
extend google.protobuf.FieldOptions { optional bytes raw = 50002; optional bool on = 50003; }
extend google.protobuf.FieldOptions { repeated Kind kind = 50004; }
extend google.protobuf.FieldOptions { optional group Box = 50005 { optional int32 size = 1; } }
extend google.protobuf.OneofOptions { optional string choice = 50000; }
extend google.protobuf.ServiceOptions { optional string owner = 50000; }
extend google.protobuf.MethodOptions { optional string cost = 50000; }
extend google.protobuf.ExtensionRangeOptions { optional string range = 50000; }
"""


def proto(body: str, package: str = "") -> str:
    head = f"package {package}; " if package else ""
    imports = 'import "google/protobuf/descriptor.proto"; import "confluent/meta.proto";'
    return f'syntax = "proto2"; {head}{imports} {OWN_OPTIONS if package else ""} {body}'


def normalized(text: str) -> str:
    """The normalized text, which has to be one of itself."""
    stored = protobuf.normalized_text(protobuf.parse(text.encode(), {}))
    assert protobuf.normalized_text(protobuf.parse(stored.encode(), {})) == stored
    return stored


PRINTED_OPTIONS = [
    (
        'message A { optional string a = 1 [deprecated = true, (confluent.field_meta) = {tags: "PII"}]; }',
        'optional string a = 1 [(confluent.field_meta) = { tags: "PII" }, deprecated = true];',
    ),
    (
        'message A { optional string a = 1 [(confluent.field_meta).tags = "b", (confluent.field_meta).tags = "a"]; }',
        '[(confluent.field_meta) = { tags: ["b", "a"] }]',
    ),
    (
        'message A { optional int32 a = 1 [(confluent.field_meta) = {params: [{key: "b"}, {key: "a", value: "1"}]}]; }',
        '{ params: [{ key: "a", value: "1" }, { key: "b", value: "" }] }',
    ),
    ('option (confluent.file_meta).doc = "f";', 'option (confluent.file_meta) = { doc: "f" };'),
    ('message A { option (confluent.message_meta).doc = "m"; }', 'option (confluent.message_meta) = { doc: "m" };'),
    ('enum E { option (confluent.enum_meta).doc = "e"; A = 0; }', 'option (confluent.enum_meta) = { doc: "e" };'),
    (
        'enum E { A = 0 [(confluent.enum_value_meta).doc = "v"]; }',
        'A = 0 [(confluent.enum_value_meta) = { doc: "v" }];',
    ),
]
OWN_PRINTED_OPTIONS = [
    (
        r"message A { optional int32 a = 1 [(rule) = {kind: K rules: {} rules: {raw: '\000\xff'} [s.weight]: 1.5}]; }",
        r'(s.rule) = { kind: K, rules: [{  }, { raw: "\000\377" }], [s.weight]: 1.5 }',
    ),
    (
        "message A { optional int32 a = 1 [(limit) = -inf, (limit) = 1e30, (limit) = -2]; }",
        "[(s.limit) = -inf, (s.limit) = 1e+30, (s.limit) = -2.0]",
    ),
    (
        r"message A { optional int32 a = 1 [(on) = false, (kind) = K, (s.raw) = '\"\001\377']; }",
        r'[(s.kind) = K, (s.on) = false, (s.raw) = "\"\001\377"]',
    ),
    ("message A { optional int32 a = 1 [(box).size = 1]; }", "[(s.box) = { size: 1 }]"),
    ('message A { oneof o { option (choice) = "c"; int32 a = 1; } }', 'option (s.choice) = "c";'),
    ("message A { oneof o { group G = 1 [(on) = true] {} } }", "group G = 1 [(s.on) = true] {}"),
    ('message A { extensions 5 to 6 [(range) = "r"]; }', 'extensions 5 to 6 [(s.range) = "r"];'),
    ('service S { option (owner) = "o"; }', 'option (s.owner) = "o";'),
    ('service S { rpc F (Rule) returns (Rule) { option (cost) = "c"; } }', 'option (s.cost) = "c";'),
    # Within a scope that declares the first part of a name, the name has to begin at the root.
    ("message A { optional int32 s = 1 [(on) = true]; }", "optional int32 s = 1 [(.s.on) = true];"),
]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        *((proto(text), printed) for text, printed in PRINTED_OPTIONS),
        *((proto(text, "s"), printed) for text, printed in OWN_PRINTED_OPTIONS),
        (
            proto('message A { optional int32 a = 1 [(.confluent.field_meta).doc = "d"]; }', "s.confluent"),
            '[(.confluent.field_meta) = { doc: "d" }]',
        ),
    ],
)
def test_normalizing_keeps_options_that_are_defined_in_protobuf(text: str, printed: str) -> None:
    # CSR-416: options are sorted, none is lost
    assert printed in normalized(text)


def test_a_text_with_an_option_that_nothing_defines_is_not_normalized() -> None:
    text = proto('message B {} message A { optional string a = 1 [(confluent.field_meta).doc = "d"]; }')
    parsed = replace(protobuf.parse(text.encode(), {}), imports={})
    assert protobuf.normalized_text(parsed) == text


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (r'message A { optional string a = 1 [default = "x\x00y\t\x7f"]; }', r'default = "x\000y\011\177"'),
        (r'message A { optional string a = 1 [default = "\xff\"\x01"]; }', r'default = "\377\"\001"'),
        (
            "message A { extensions 5; } extend A { optional group G = 5 { optional int32 y = 1; } }",
            "extend .A {\n  optional group G = 5 {\n    optional int32 y = 1;\n  }\n}",
        ),
        (
            "message A { extensions 5; extend A { optional group G = 5 {} } }",
            "  extend .A {\n    optional group G = 5 {}\n  }",
        ),
        ("message A { optional group G = 1 [deprecated = true] {} }", "optional group G = 1 [deprecated = true] {}"),
    ],
)
def test_normalizing_keeps_what_a_protobuf_text_declares(text: str, printed: str) -> None:
    # CSR-416: the text that is stored is a schema, and the same one
    text = f'syntax = "proto2"; {text}'
    stored = normalized(text)
    assert printed in stored
    sent, printed_again = (protobuf.parse(one.encode(), {}).descriptor for one in (text, stored))
    for descriptor in (sent, printed_again):
        descriptor.ClearField("source_code_info")
    assert printed_again == sent


def test_normalizing_keeps_the_imports_and_visibilities_of_edition_2024() -> None:
    # CSR-416, CSR-417
    text = """edition = "2024";

import option "confluent/meta.proto";
import option "google/protobuf/cpp_features.proto";

local message A {
  string a = 1 [(confluent.field_meta) = { doc: "d" }, features = { [pb.cpp]: { string_type: VIEW } }];
}
export enum E {
  E_UNSPECIFIED = 0;
}
"""
    assert normalized(text) == text


def record(name: str, *types: Any, **members: Any) -> dict[str, Any]:
    fields = [{"name": f"f{index}", "type": type} for index, type in enumerate(types)]
    return {"type": "record", "name": name, **members, "fields": fields}


def parse_avro(schema: Any, references: Mapping[str, bytes] | None = None) -> avro.AvroText:
    return avro.parse(json.dumps(schema).encode(), references or {})


def names(parsed: avro.AvroText) -> list[str]:
    return [type.name for type in parsed.schema.types if type.name]


def test_normalizing_leaves_an_avro_type_without_a_namespace_as_it_is() -> None:
    # CSR-416: the normalized text has the full names of what was sent
    sent = parse_avro(record("x.R", record("A", record("B"), namespace=""), record("C"), "C"))
    stored = json.loads(avro.normalized_text(sent))
    assert names(parse_avro(stored)) == names(sent) == ["x.R", "A", "B", "x.C"]


ORDER = {
    "line": json.dumps(record("Line")).encode(),
    "order": json.dumps(record("Order", "Line", "Line", aliases=["Purchase"])).encode(),
}


def test_a_referenced_avro_type_without_a_namespace_is_used_more_than_once_within_one() -> None:
    # CSR-420, CSR-509: Avro's Java library finds it by its name there
    parsed = parse_avro(record("x.R", "Order", ["null", "Order"], "Line"), ORDER)
    assert names(parsed) == ["x.R", "Order", "Line"]
    assert parsed.schema.types[parsed.schema.types[0].fields[1].type.type].kind == "union"
    assert next(type.aliases for type in parsed.schema.types if type.name == "Order") == ("Purchase",)
    resolved = json.loads(avro.formatted_text(parsed, "resolved") or "")
    order = resolved["fields"][0]["type"]
    assert (order["name"], order["namespace"]) == ("Order", "")
    assert [field["type"] for field in resolved["fields"][1:]] == [["null", "Order"], "Line"]


@pytest.mark.parametrize("types", [("Order",), ("Order", "Order", "Line")])
def test_normalizing_keeps_the_use_of_a_referenced_avro_type_without_a_namespace(types: tuple[str, ...]) -> None:
    # CSR-416: "x.Order" would be another type, which nothing defines
    stored = avro.normalized_text(parse_avro(record("x.R", *types), ORDER))
    assert [field["type"] for field in json.loads(stored)["fields"]] == [*types]
    assert names(avro.parse(stored.encode(), ORDER)) == ["x.R", "Order", "Line"]


def test_an_avro_type_in_the_namespace_wins_over_a_referenced_one_without() -> None:
    parsed = parse_avro(record("x.R", record("Order"), "Order"), ORDER)
    assert names(parsed) == ["x.R", "x.Order"]
    stored = avro.normalized_text(parsed)
    assert names(avro.parse(stored.encode(), ORDER)) == ["x.R", "x.Order"]


def field(type: Any, **members: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "a", "type": type, **members}]}


POINT = {"type": "record", "name": "P", "fields": [{"name": "y", "type": "double"}, {"name": "x", "type": "long"}]}
#: (sent, normalized): what Confluent's registry 7.9.5 stores, but for a union, whose default it may lose.
NORMALIZED_AVRO: dict[str, tuple[Any, Any]] = {
    "record aliases": (record("R", aliases=["B", "A", "B"]), record("R", aliases=["A", "B"])),
    "enum aliases by full name": (
        {"type": "enum", "name": "n.E", "symbols": ["S"], "aliases": ["n.B", "A", "m.Z"]},
        {"type": "enum", "name": "E", "namespace": "n", "symbols": ["S"], "aliases": ["m.Z", "A", "B"]},
    ),
    "field aliases": (field("int", aliases=["c", "b", "c"]), field("int", aliases=["b", "c"])),
    "properties at all depths": (
        field("int", p={"b": 1, "a": [{"d": True, "c": None}]}),
        field("int", p={"a": [{"c": None, "d": True}], "b": 1}),
    ),
    "properties of a type": (
        {"type": "string", "q": {"b": {"d": 1, "c": 2}, "a": 2}, "p": 1},
        {"type": "string", "p": 1, "q": {"a": 2, "b": {"c": 2, "d": 1}}},
    ),
    "default of a map": (
        field({"type": "map", "values": "float"}, default={"b": 1, "a": 2}),
        field({"type": "map", "values": "float"}, default={"a": 2.0, "b": 1.0}),
    ),
    "default of a record": (field(POINT, default={"y": 1, "x": 2}), field(POINT, default={"x": 2, "y": 1.0})),
    "default of an array": (
        field({"type": "array", "items": "double"}, default=[1]),
        field({"type": "array", "items": "double"}, default=[1.0]),
    ),
    "default of a union": (field(["null", "double"], default=1), field(["null", "double"], default=1.0)),
    "default of a union of integers": (field(["long", "double"], default=1), field(["long", "double"], default=1)),
    "default of a double": (field("double", default=1), field("double", default=1.0)),
    "default of a float": (field("float", default=0.10000000149011612), field("float", default=0.1)),
    "default of a double that is no number": (field("double", default="NaN"), field("double", default="NaN")),
    "empty doc of a type": (record("R", doc=""), record("R")),
    "empty doc of a field": (field("int", doc=""), field("int", doc="")),
    "doc that is no text": (field("int", doc=None), field("int")),
    "names": (
        record("x.R", {"type": "fixed", "name": "x.F", "size": 1}, record("y.S", "x.F"), "x.F", "y.S"),
        {
            "type": "record",
            "name": "R",
            "namespace": "x",
            "fields": [
                {"name": "f0", "type": {"type": "fixed", "name": "F", "size": 1}},
                {
                    "name": "f1",
                    "type": {
                        "type": "record",
                        "name": "S",
                        "namespace": "y",
                        "fields": [{"name": "f0", "type": "x.F"}],
                    },
                },
                {"name": "f2", "type": "F"},
                {"name": "f3", "type": "y.S"},
            ],
        },
    ),
}


@pytest.mark.parametrize(("sent", "normal"), NORMALIZED_AVRO.values(), ids=NORMALIZED_AVRO.keys())
def test_normalizing_gives_equal_avro_texts_one_form(sent: Any, normal: Any) -> None:
    # CSR-416: the normalized text is the canonical text of this form, and its own normalized text
    stored = avro.normalized_text(parse_avro(sent))
    assert stored == avro.canonical_text(parse_avro(normal))
    assert avro.normalized_text(avro.parse(stored.encode(), {})) == stored


def test_the_canonical_avro_text_keeps_what_only_normalizing_changes() -> None:
    # CSR-415: other aliases, defaults, properties and doc make another schema
    text = (
        '{"type":"record","name":"R","namespace":"n","doc":"","fields":['
        '{"name":"a","type":"double","default":1,"aliases":["c","b"]},'
        '{"name":"m","type":{"type":"map","values":"double"},"default":{"b":1.50,"a":-0}}],'
        '"p":{"b":1,"a":[{"d":1,"c":2}]},"aliases":["B","A","B"]}'
    )
    assert avro.canonical_text(avro.parse(text.encode(), {})) == text


@pytest.mark.parametrize(
    ("type", "number", "normal"),
    [
        ("float", "1e3", "1000.0"),
        ("double", "1000", "1000.0"),
        ("double", "1.50", "1.5"),
        ("double", "0.1000000000000000055", "0.1"),
        ("long", "-0", "0"),
        ("long", "9223372036854775807", "9223372036854775807"),
        ("float", "1e300", "1E+300"),  # out of range
    ],
)
def test_normalizing_writes_numbers_as_values_of_their_types(type: str, number: str, normal: str) -> None:
    # CSR-416: defaults
    text = '{{"type":"record","name":"R","fields":[{{"name":"a","type":"{}","default":{}}}]}}'
    assert avro.normalized_text(avro.parse(text.format(type, number).encode(), {})) == text.format(type, normal)


@pytest.mark.parametrize(
    ("number", "normal"), [("1e3", "1000.0"), ("1", "1"), ("1.123456789012345678901", "1.123456789012345678901")]
)
def test_normalizing_keeps_all_digits_of_custom_properties(number: str, normal: str) -> None:
    # CSR-416; SER-13 for the digits
    text = '{{"type":"string","p":{}}}'
    assert avro.normalized_text(avro.parse(text.format(number).encode(), {})) == text.format(normal)


def test_normalizing_sorts_defaults_that_are_no_values_of_their_types() -> None:
    # CSR-416, CSR-514: a stored schema of another registry
    type = {"type": "map", "values": "double"}
    parsed, sorted_one = (
        parse_avro(field(type, default=default)) for default in ({"b": "x", "a": 1}, {"a": 1, "b": "x"})
    )
    assert parsed.violation
    assert avro.normalized_text(parsed) == avro.canonical_text(sorted_one)
