"""Protobuf documents: valid ones, their normal form, and compatible changes."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pool import DescriptorPool

from annals.domain.formats import protobuf
from annals.domain.formats.contract import MAX_FRAGMENT, MAX_INCOMPATIBILITIES, InvalidDocument

CASES = yaml.load(Path(__file__).with_name("protobuf.yaml").read_text(), yaml.CSafeLoader)
HEADERS = {2: 'syntax = "proto2"; ', 3: 'syntax = "proto3"; ', 2023: 'edition = "2023"; '}


def named(rows: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", rows, ids=lambda row: row["name"])


def parsed(body: str, language: int = 3) -> protobuf.ProtoDocument:
    return protobuf.parse((HEADERS[language] + body).encode(), f"Protobuf/{language}")


def flaw(document: bytes, name: str = "protobuf/3") -> InvalidDocument:
    with pytest.raises(InvalidDocument) as raised:
        protobuf.parse(document, name)
    return raised.value


# SC-10, SC-14, SC-16: valid documents, and invalid ones with reason and place.
@named(CASES["documents"])
def test_documents(row: dict[str, Any]) -> None:
    if "flaw" not in row:
        protobuf.canonical_form(protobuf.parse(row["text"].encode(), row["format"]))
        return
    found = flaw(row["text"].encode(), row["format"])
    assert row["flaw"] in found.text
    assert not found.text.endswith(".")
    assert (found.location and found.location.line) == row["line"]
    if found.location and found.location.line:
        assert (
            found.location.fragment
            == row["text"].removeprefix("\ufeff").split("\n")[row["line"] - 1].strip()[:MAX_FRAGMENT]
        )


# SC-36, SC-38: each change in both directions; both together are `full`.
@named(CASES["changes"])
def test_changes(row: dict[str, Any]) -> None:
    language = row.get("language", 3)
    older, newer = parsed(row["older"], language), parsed(row["newer"], language)
    backward = protobuf.incompatibilities(reader=newer, writer=older, newer="reader")
    forward = protobuf.incompatibilities(reader=older, writer=newer, newer="writer")
    allowed = ("" if backward else "B") + ("" if forward else "F")
    assert allowed == row["allowed"], [*backward, *forward]
    assert {one.rule for one in (*backward, *forward)} == set(row.get("rules", ()))
    assert all(one.reader or one.writer for one in (*backward, *forward))


# Without the order of the documents, a change is allowed if either order allows it.
@named(CASES["changes"])
def test_without_an_order(row: dict[str, Any]) -> None:
    older, newer = (parsed(row[side], row.get("language", 3)) for side in ("older", "newer"))
    if "B" in row["allowed"]:
        assert not protobuf.incompatibilities(newer, older)
    if "F" in row["allowed"]:
        assert not protobuf.incompatibilities(older, newer)


def test_a_difference_names_both_places() -> None:
    older = parsed("\nmessage M {\n  int64 a = 1;\n}")
    newer = parsed("\n// wider\nmessage M {\n  int32 a = 1;\n}")
    (found,) = protobuf.incompatibilities(newer, older, "reader")
    assert found.rule == "field-type-changed"
    assert found.reader is not None and (found.reader.line, found.reader.fragment) == (4, "int32 a = 1;")
    assert found.writer is not None and (found.writer.line, found.writer.fragment) == (3, "int64 a = 1;")
    (mirrored,) = protobuf.incompatibilities(older, newer, "writer")
    assert (mirrored.reader, mirrored.writer) == (found.writer, found.reader)


def test_the_number_of_differences_is_limited() -> None:
    older = parsed("message M {" + "".join(f"string a{number} = {number};" for number in range(1, 99)) + "}")
    assert len(protobuf.incompatibilities(parsed("message M {}"), older, "reader")) == MAX_INCOMPATIBILITIES


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("message M { string a = 1; }", "// a comment\nmessage M {\n\tstring a=1 ; /* another */ }\n", True),
        ("message A {} message B {}", "message B {} message A {}", True),
        ("message M { string a = 1; int32 b = 2; }", "message M { int32 b = 2; string a = 1; }", True),
        ("package p; message M { M a = 1; }", "package p; message M { .p.M a = 1; }", True),
        ("message M { reserved 5, 1 to 3; }", "message M { reserved 1 to 3; reserved 5; }", True),
        ("message M { repeated int32 a = 1; }", "message M { repeated int32 a = 1 [packed = true]; }", True),
        ("message M { string a_b = 1; }", 'message M { string a_b = 1 [json_name = "aB"]; }', True),
        ("enum E { A = 0; B = 1; C = 2; }", "enum E { A = 0; C = 2; B = 1; }", True),
        (
            "message M { oneof o { string a = 1; } oneof p { string b = 2; } }",
            "message M { oneof p { string b = 2; } oneof o { string a = 1; } }",
            True,
        ),
        ("message M { string a = 1; }", "message M { string b = 1; }", False),
        ("message M { string a = 1; }", "message M { optional string a = 1; }", False),
        ("message M { repeated int32 a = 1; }", "message M { repeated int32 a = 1 [packed = false]; }", False),
        ("message M { string a = 1; }", "message M { string a = 1 [deprecated = true]; }", False),
        ('import "x.proto"; message M { x.A a = 1; }', 'import "y.proto"; message M { x.A a = 1; }', False),
        (
            'import "x.proto"; message M { x.A a = 1 [(x.o) = 1]; }',
            'import "x.proto"; message M { x.A a = 1 [(x.o) = 2]; }',
            False,
        ),
    ],
)
def test_documents_that_mean_the_same_have_one_normal_form(one: str, other: str, same: bool) -> None:
    assert (protobuf.canonical_form(parsed(one)) == protobuf.canonical_form(parsed(other))) is same


def test_the_order_of_a_closed_enum_decides_its_default() -> None:
    one, other = (parsed(f"enum E {{ {body} }}", 2) for body in ("A = 1; B = 2;", "B = 2; A = 1;"))
    assert protobuf.canonical_form(one) != protobuf.canonical_form(other)


def test_the_normal_form_is_a_descriptor() -> None:
    normal = descriptor_pb2.FileDescriptorProto.FromString(protobuf.canonical_form(parsed("message B {} message A {}")))
    assert [message.name for message in normal.message_type] == ["A", "B"]
    assert not normal.HasField("source_code_info")


EDITION = """edition = "2023";
option features.field_presence = IMPLICIT;
option features.enum_type = CLOSED;
option features.message_encoding = DELIMITED;
message M {
  int32 implicit = 1;
  int32 explicit = 2 [features.field_presence = EXPLICIT];
  int32 needed = 3 [features.field_presence = LEGACY_REQUIRED];
  repeated int32 packed = 4;
  repeated int32 expanded = 5 [features.repeated_field_encoding = EXPANDED];
  M inner = 6 [features.message_encoding = LENGTH_PREFIXED];
  M delimited = 7;
  map<string, M> map = 8;
  oneof o { int32 one = 9; }
  E closed = 10 [features.field_presence = EXPLICIT];
}
enum E { A = 0; }
enum F { option features.enum_type = OPEN; B = 0; }
"""


def test_features_of_editions_are_those_that_the_library_finds() -> None:
    ours = protobuf.parse(EDITION.encode(), "protobuf/2023")
    pool = DescriptorPool()
    file = descriptor_pb2.FileDescriptorProto.FromString(ours.descriptor)
    pool.Add(file)
    theirs = pool.FindMessageTypeByName("M")
    for field in theirs.fields:
        found = ours.messages["M"].fields[field.number]
        assert found.required == field.is_required, field.name
        assert found.packed == field.is_packed, field.name
        assert (found.kind == "group") == (field.type == field.TYPE_GROUP), field.name
        assert (not found.implicit and not found.repeated) == field.has_presence, field.name
        assert bool(found.oneof) == (field.containing_oneof is not None), field.name
    for name, enum in ours.enums.items():
        assert enum.is_closed == pool.FindEnumTypeByName(name).is_closed


def test_a_zero_that_is_not_written_is_not_read_as_another_default() -> None:
    older = parsed("message M { int32 a = 1; }")
    newer = parsed("message M { optional int32 a = 1 [default = 7]; }", 2)
    (found,) = protobuf.incompatibilities(newer, older, "reader")
    assert found.rule == "default-not-zero"
    assert not protobuf.incompatibilities(older, newer, "writer")


def test_languages_may_change_where_the_wire_does_not() -> None:
    body = "message M { optional string a = 1; repeated int32 b = 2; } enum E { A = 0; }"
    older, newer = parsed(body, 2), parsed(body, 3)
    edition = parsed(body.replace("optional ", ""), 2023)
    for one in (older, newer, edition):
        for other in (older, newer, edition):
            assert not protobuf.incompatibilities(one, other, "reader")


# Hostile documents: each is refused as an invalid document or accepted, within seconds.
OPTION = (
    'syntax = "proto3"; import "google/protobuf/descriptor.proto"; message A { A a = 1; }'
    " extend google.protobuf.FileOptions { A a = 5000; } option (a)"
)
HOSTILE = {
    "messages inside each other": 'syntax = "proto3";' + "message M {" * 20_000 + "}" * 20_000,
    "as many messages as are allowed": 'syntax = "proto3";' + "message M {" * 31 + "}" * 31,
    "too many messages for the compiler": 'syntax = "proto3";' + "message M {" * 33 + "}" * 33,
    "an option's value inside itself": OPTION + "={" + "a{" * 50_000 + "}" * 50_001 + ";",
    "an option's value deeper than the compiler can read": OPTION + "={" + "a{" * 120 + "}" * 121 + ";",
    "an option's name with more parts than the compiler can read": OPTION + ".a" * 120 + " = {};",
    "an option's value as deep as it may be": OPTION + "={" + "a{" * 46 + "}" * 47 + ";",
    "an option's name without end": OPTION + ".a" * 20_000 + " = {};",
    "an option's name and value, both at their limits": OPTION + ".a" * 32 + " = {" + "a{" * 46 + "}" * 47 + ";",
    "brackets of all kinds": 'syntax = "proto3"; option ' + "({[<" * 50_000,
    "parts of a package": 'syntax = "proto3"; package a' + ".a" * 100_000 + ";",
    "parts of a type": 'syntax = "proto3"; message M { a' + ".a" * 100_000 + " b = 1; }",
    "a long name": 'syntax = "proto3"; message ' + "M" * 1_000_000 + " {}",
    "a huge number": "message M { optional double a = 1 [default = 1" + "0" * 1_000_000 + "]; }",
    "a huge range": 'syntax = "proto3"; message M { reserved 1 to max; }',
    "a string without end": 'syntax = "proto3"; option java_package = "' + "x" * 1_000_000,
    "a string over lines": 'syntax = "proto3"; option java_package = "x\ny";',
    "a comment without end": 'syntax = "proto3"; /*' + "/*" * 100_000,
    "many ranges": 'syntax = "proto3"; message M { reserved ' + ",".join(map(str, range(1, 30_000))) + "; }",
    "many mistakes": 'syntax = "proto3"; message M {' + "".join(f"X{n} a{n} = {n};" for n in range(1, 5_000)) + "}",
    "many types of an import": 'syntax = "proto3"; import "x.proto"; message M {'
    + "".join(f"x.X{n} a{n} = {n};" for n in range(1, 1_000))
    + "}",
    "types of an import inside each other": 'syntax = "proto3"; import "x.proto"; message M {'
    + "".join(f"x{'.x' * n} a{n} = {n};" for n in range(1, 31))
    + "}",
    "NUL": 'syntax = "proto3"; message M { \0 }',
    "NUL in a string": 'syntax = "proto3"; option java_package = "\0";',
    "another alphabet": 'syntax = "proto3"; message Größe {}',
    "half a pair of surrogates": b'syntax = "proto3"; message M {} // \xed\xa0\x80',
    "invalid UTF-8": b'syntax = "proto3"; message M {} // \xff',
    "UTF-16": 'syntax = "proto3"; message M {}'.encode("utf-16"),
    "a form feed and other space": 'syntax = "proto3";\f\v\r\nmessage M {}',
    "an import from outside": 'syntax = "proto3"; import "/proc/self/environ"; message M {}',
    "more words than there may be": 'syntax = "proto3";' + ";" * 3_000_000,
    "50 MB": b'syntax = "proto3";' + b" " * 50_000_000,
}


@pytest.mark.parametrize("document", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_documents_end_soon(document: str | bytes) -> None:
    begun = time.process_time()
    content = document.encode() if isinstance(document, str) else document
    try:
        protobuf.canonical_form(
            protobuf.parse(content, "protobuf/2" if content.startswith(b"message") else "protobuf/3")
        )
    except InvalidDocument as violation:
        assert len(violation.text) < 1_000
        assert violation.location is None or len(violation.location.fragment or "") <= MAX_FRAGMENT
    assert time.process_time() - begun < 10


def test_the_compiler_leaves_standard_error_alone(capfd: pytest.CaptureFixture[str]) -> None:
    flaw(b'syntax = "proto3"; message {')
    parsed('import "google/protobuf/any.proto";')  # an unused import is a warning
    os.write(2, b"here\n")
    print("there", file=sys.stderr)
    assert capfd.readouterr().err == "here\nthere\n"


def test_a_thousand_comparisons_take_about_a_second() -> None:
    body = "".join(f"message M{m} {{ {''.join(f'string field_{n} = {n};' for n in range(1, 21))} }} " for m in range(4))
    older, newer = parsed(body), parsed(body + "message N {}")
    begun = time.process_time()
    for _ in range(1_000):
        assert not protobuf.incompatibilities(newer, older, "reader")
    assert time.process_time() - begun < 10  # 0.2 s on an idle machine
