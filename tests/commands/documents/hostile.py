"""Hostile documents by format: what each one tries, and the result that its check must have."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

MEGABYTE: Final = 1 << 20
#: Size of the large documents.
LARGE: Final = 50 * MEGABYTE
#: A pattern that backtracks exponentially, and a text on which it does.
SLOW_PATTERN, SLOW_TEXT = "^(a+)+$", "a" * 60 + "!"
#: Part of the message about a document that exceeds its time limit.
TIMED_OUT_TEXT: Final = "longer than the limit"
#: Any result, because it depends on the speed of the machine.
ANY: Final = "*"

CORE: Final = {"$schema": "https://json-structure.org/meta/core/v0/#", "$id": "https://example.com/s", "name": "S"}
XSD: Final = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:t="urn:t" targetNamespace="urn:t">'
OPENAPI: Final = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {}}
CLOUD: Final = "http://169.254.169.254/latest/meta-data/"


class Trap(NamedTuple):
    """Targets of references that must not be followed. pipe: a named pipe; opening it for reading blocks for ever."""

    url: str
    pipe: Path

    @property
    def places(self) -> dict[str, str]:
        return {"listener": self.url, "file": self.pipe.as_uri(), "cloud": CLOUD}


class HostileDocument(NamedTuple):
    """A document and the result of its check. older: a document to compare it with, in both directions.

    says: part of the message that refuses the document; empty if the document is valid, ANY if any result will do.
    """

    format: str
    what: str
    content: Callable[[], bytes]
    says: str = ""
    older: bytes | None = None

    def __str__(self) -> str:
        return f"{self.format}: {self.what}"


def hostile(trap: Trap) -> Iterator[HostileDocument]:
    """All hostile documents."""
    yield from _avro()
    yield from _jsonschema(trap)
    yield from _jsonstructure(trap)
    yield from _protobuf(trap)
    yield from _xsd(trap)
    yield from _graphql()
    yield from _openapi(trap)


def names() -> list[str]:
    """The names of all hostile documents."""
    return [str(one) for one in hostile(Trap("http://h", Path("/pipe")))]


def _text(value: Any) -> Callable[[], bytes]:
    return lambda: json.dumps(value).encode()


def _filled(head: str, item: str, tail: str, size: int = LARGE) -> Callable[[], bytes]:
    """A document of about `size` bytes: one item repeated, each time with another number."""

    def made() -> bytes:
        each = len(item.format(n=1_000_000))
        return (head + "".join(item.format(n=n) for n in range(1_000_000, 1_000_000 + size // each)) + tail).encode()

    return made


def _nested(opening: str, inner: str, closing: str, times: int) -> Callable[[], bytes]:
    return lambda: (opening * times + inner + closing * times).encode()


def _avro() -> Iterator[HostileDocument]:
    yield HostileDocument(
        "avro/1.11",
        "large",
        _filled('{"type":"enum","name":"E","symbols":["a"', ',"s{n}"', "]}"),
        "more than 8388608 bytes",
    )
    fields = _filled('{"type":"record","name":"R","fields":[', '{{"name":"f{n}","type":"int"}},', "", 7 * MEGABYTE)
    yield HostileDocument("avro/1.11", "many fields", lambda: fields()[:-1] + b"]}", ANY)
    yield HostileDocument("avro/1.11", "deep", _nested('{"type":"array","items":', '"int"', "}", 100_000), "deep")
    endless = {"type": "record", "name": "R", "fields": [{"name": "r", "type": "R", "default": {}}]}
    yield HostileDocument("avro/1.11", "a default that holds itself", _text(endless), "default")
    number = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int", "default": 0}]}
    digits = lambda: json.dumps(number).replace('"default": 0', '"default": ' + "9" * 5_000_000).encode()  # noqa: E731
    yield HostileDocument("avro/1.11", "a number of five million digits", digits, "default")


def _jsonschema(trap: Trap) -> Iterator[HostileDocument]:
    format = "jsonschema/draft/2020-12"
    yield HostileDocument(format, "large", _filled('{"properties":{"a":{}', ',"f{n}":{{"type":"string"}}', "}}"), ANY)
    yield HostileDocument(format, "deep", _nested('{"not":', "{}", "}", 5_000_000), "deep")
    for name, place in trap.places.items():
        yield HostileDocument(format, f"a reference to the {name}", _text({"$ref": place}))
        yield HostileDocument(
            format, f"a base at the {name}", _text({"$id": place, "properties": {"a": {"$ref": "b"}}})
        )
        yield HostileDocument(format, f"a meta-schema at the {name}", _text({"$schema": place, "type": "object"}))
        dynamic = {"$dynamicRef": place, "$defs": {"a": {"$id": place, "$dynamicAnchor": "x"}}}
        yield HostileDocument(format, f"a dynamic reference to the {name}", _text(dynamic))
    yield HostileDocument(format, "itself", _text({"$ref": "#"}), "refers to itself")
    yield HostileDocument(
        format, "a circle", _text({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}), "itself"
    )
    bomb = {
        "pattern": SLOW_PATTERN,
        "default": SLOW_TEXT,
        "const": SLOW_TEXT,
        "enum": [SLOW_TEXT],
        "examples": [SLOW_TEXT],
    }
    yield HostileDocument(
        format, "a pattern beside values", _text({**bomb, "patternProperties": {SLOW_PATTERN: bomb}, SLOW_TEXT: 1})
    )
    changed = json.dumps({**bomb, "const": SLOW_TEXT + "b", "enum": [SLOW_TEXT, SLOW_TEXT + "b"]}).encode()
    yield HostileDocument(format, "patterns compared", _text(bomb), older=changed)
    yield HostileDocument(format, "an open pattern", _text({"pattern": "(" * 5_000_000}), "is not a regular expression")
    same = {"enum": [[{"a": number}] for number in range(100_000)]}
    yield HostileDocument(format, "values that have to differ", _text(same), ANY)
    ways = {"allOf": [{"anyOf": [{"required": [f"a{n}_{m}"]} for m in range(4)]} for n in range(200)]}
    other = json.dumps({"allOf": [{"oneOf": [{"required": [f"b{n}_{m}"]} for m in range(4)]} for n in range(200)]})
    yield HostileDocument(format, "combinations compared", _text(ways), older=other.encode())


def _jsonstructure(trap: Trap) -> Iterator[HostileDocument]:
    format, head = "jsonstructure/draft-04", json.dumps(CORE)[:-1]
    many = _filled(head + ', "type":"object","properties":{"a":{"type":"int32"}', ',"f{n}":{{"type":"string"}}', "}}")
    yield HostileDocument(format, "large", many, ANY)
    deep = _nested('{"type":"array","items":', '{"type":"int32"}', "}", 100_000)
    yield HostileDocument(format, "deep", lambda: head.encode() + b',"type":"array","items":' + deep() + b"}", "deep")
    string = {
        **CORE,
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": SLOW_PATTERN, "default": SLOW_TEXT}},
    }
    yield HostileDocument(format, "a pattern with a default", _text(string))
    for name, place in trap.places.items():
        wanted = {**CORE, "$import": place, "type": "object", "properties": {"a": {"type": "string"}}}
        yield HostileDocument(format, f"an import from the {name}", _text(wanted), "$import")
        pointed = {**CORE, "type": "object", "properties": {"a": {"type": {"$ref": place}}}}
        yield HostileDocument(format, f"a reference to the {name}", _text(pointed), "must start with")
    extends = {
        "A": {"type": "object", "$extends": "#/definitions/B"},
        "B": {"type": "object", "$extends": "#/definitions/A"},
    }
    yield HostileDocument(
        format, "a circle", _text({**CORE, "$root": "#/definitions/A", "definitions": extends}), "ircular"
    )


def _protobuf(trap: Trap) -> Iterator[HostileDocument]:
    format, head = "protobuf/3", 'syntax = "proto3"; '
    yield HostileDocument(
        format, "large", _filled(head + "message M {", "string f{n} = {n};", "}"), "4194304 are allowed"
    )
    yield HostileDocument(
        format,
        "many fields",
        _filled(head + "message M {", "string f{n} = {n};", "}", 4 * MEGABYTE - 100),
        "200000 words",
    )
    yield HostileDocument(format, "deep", _nested("message M {", "", "}", 100_000), "200000 words")
    yield HostileDocument(
        format, "deep messages", lambda: head.encode() + b"message M {" * 50_000 + b"}" * 50_000, "200000 words"
    )
    imports = ("schema.proto", "/etc/passwd", "../../etc/passwd", str(trap.pipe), trap.url, CLOUD)
    for name in imports:
        what = (
            name if name in imports[:3] else {str(trap.pipe): "a file", trap.url: "a listener"}.get(name, "the cloud")
        )
        yield HostileDocument(
            format,
            f"an import of {what}",
            partial(lambda name: f'{head}import "{name}"; message M {{}}'.encode(), name),
        )
    loop = "".join(f'import "declared_{number}.proto"; ' for number in range(3))
    yield HostileDocument(
        format, "imports of what is declared beside", lambda: (head + loop + "message M { A a = 1; }").encode()
    )
    chain = "".join(f"message M{n} {{ M{n + 1} m = 1; }}\n" for n in range(20_000)) + "message M20000 { M0 m = 1; }"
    yield HostileDocument(format, "a long circle", lambda: (head + chain).encode(), ANY)


def _xsd(trap: Trap) -> Iterator[HostileDocument]:
    format = "xsd/1.1"
    yield HostileDocument(
        format, "large", _filled(XSD, '<xs:element name="e{n}"/>', "</xs:schema>"), "more than 100000 elements"
    )
    yield HostileDocument(format, "a large comment", lambda: f"{XSD}<!--{'x' * LARGE}--></xs:schema>".encode(), ANY)
    yield HostileDocument(format, "deep", _nested("<a>", "", "</a>", 1_000_000), "more than 200 levels")
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    document = f'<!DOCTYPE xs:schema [<!ENTITY l0 "ha">{laughs}]>{XSD}<!-- --><xs:element name="&l11;"/></xs:schema>'
    yield HostileDocument(format, "entities of entities", document.encode, "document type declarations")
    yield HostileDocument(format, "the same in UTF-16", lambda: document.encode("utf-16"), "document type declarations")
    for name, place in trap.places.items():
        entity = f'<!DOCTYPE s [<!ENTITY e SYSTEM "{place}">]>{XSD}<xs:element name="a" default="&e;"/></xs:schema>'
        yield HostileDocument(format, f"an entity at the {name}", entity.encode, "document type declarations")
        parameter = f'<!DOCTYPE s [<!ENTITY % e SYSTEM "{place}"> %e;]>{XSD}</xs:schema>'
        yield HostileDocument(
            format, f"a parameter entity at the {name}", parameter.encode, "document type declarations"
        )
        for tag in ("include", "redefine", "override"):
            taken = f'{XSD}<xs:{tag} schemaLocation="{place}"/></xs:schema>'
            yield HostileDocument(format, f"{tag} of the {name}", taken.encode)
        imported = f'<xs:import namespace="urn:o" schemaLocation="{place}"/>'
        yield HostileDocument(format, f"an import of the {name}", f"{XSD}{imported}</xs:schema>".encode)
        hint = XSD[:-1] + f' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="urn:t {place}">'
        yield HostileDocument(format, f"a hint at the {name}", f"{hint}</xs:schema>".encode)
    simple = f'<xs:simpleType name="s"><xs:restriction base="xs:string"><xs:pattern value="{SLOW_PATTERN[1:-1]}"/>'
    end = "</xs:restriction></xs:simpleType>"
    for attribute in ("default", "fixed"):
        element = f'<xs:element name="e" type="t:s" {attribute}="{SLOW_TEXT}"/>'
        late = f"{XSD}{simple}{end}{element}</xs:schema>"
        yield HostileDocument(format, f"a pattern with a {attribute} value", late.encode, TIMED_OUT_TEXT)
    fuse = f'<xs:enumeration value="{SLOW_TEXT}"/>'
    yield HostileDocument(format, "a pattern with an enumeration", f"{XSD}{simple}{fuse}{end}</xs:schema>".encode)
    below = f'{XSD}{simple}{end}<xs:simpleType name="u"><xs:restriction base="t:s">{fuse}{end}</xs:schema>'
    yield HostileDocument(format, "a pattern with an enumeration below", below.encode, TIMED_OUT_TEXT)
    circle = (
        '<xs:complexType name="a"><xs:complexContent><xs:extension base="t:a"/></xs:complexContent></xs:complexType>'
    )
    yield HostileDocument(format, "a type of itself", f"{XSD}{circle}</xs:schema>".encode, "schema")
    group = '<xs:group name="g"><xs:sequence><xs:group ref="t:g"/></xs:sequence></xs:group>'
    yield HostileDocument(format, "a group of itself", f"{XSD}{group}</xs:schema>".encode, "schema")
    inner = '<xs:sequence minOccurs="0" maxOccurs="999999">' * 20 + '<xs:element name="a"/>' + "</xs:sequence>" * 20
    many = f'{XSD}<xs:element name="r"><xs:complexType>{inner}</xs:complexType></xs:element></xs:schema>'
    yield HostileDocument(format, "occurrences of occurrences", many.encode, older=many.replace('"a"', '"b"').encode())


def _graphql() -> Iterator[HostileDocument]:
    format = "graphql/october2021"
    yield HostileDocument(format, "large", _filled("type Query {", "f{n}: Int ", "}"), ANY)
    yield HostileDocument(
        format, "a large description", lambda: f'"""{"x" * LARGE}""" type Query {{ a: Int }}'.encode(), ANY
    )
    yield HostileDocument(
        format, "deep lists", lambda: f"type Query {{ a: {'[' * 100_000}Int{']' * 100_000} }}".encode(), "deep"
    )
    value = "{a: " * 50_000 + "1" + "}" * 50_000
    yield HostileDocument(
        format, "deep values", lambda: f"type Query {{ f(i: I = {value}): Int }} input I {{ a: I }}".encode(), "deep"
    )
    circle = "input A { b: B! } input B { a: A! } type Query { f(a: A): Int }"
    yield HostileDocument(format, "inputs of each other", circle.encode, "Input")
    lines = "".join(f"interface I{n} implements I{n + 1} {{ a: Int }} " for n in range(3000))
    yield HostileDocument(
        format,
        "a chain of interfaces",
        lambda: (lines + "interface I3000 { a: Int } type Query { a: I0 }").encode(),
        ANY,
    )
    inside = "directive @d(a: Int @d(a: 1)) on ARGUMENT_DEFINITION type Query { a: Int }"
    yield HostileDocument(format, "a directive of itself", inside.encode)


def _openapi(trap: Trap) -> Iterator[HostileDocument]:
    format = "openapi/3.1"
    head = json.dumps(OPENAPI)[:-2]
    item = '"/p{n}":{{"get":{{"responses":{{"200":{{"description":"d"}}}}}}}},'
    yield HostileDocument(format, "large", lambda: _filled(head, item, "")()[:-1] + b"}}", ANY)
    text = 'openapi: 3.1.0\ninfo: {title: t, version: "1"}\npaths: {}\n'
    yield HostileDocument(format, "large YAML", _filled(text, "x-{n}: a\n", ""), ANY)
    yield HostileDocument(format, "deep", lambda: (text + "x-a: " + "[" * 500_000 + "]" * 500_000).encode(), "levels")
    anchors = "x-0: &a0 [a, a]\n" + "".join(f"x-{n}: &a{n} [{f'*a{n - 1},' * 10}]\n" for n in range(1, 12))
    yield HostileDocument(format, "aliases of aliases", (text + anchors).encode, "aliases")
    yield HostileDocument(format, "an alias of itself", (text + "x-a: &a [*a]\n").encode, "aliases")
    merged = "x-0: &a0 {a: 1}\n" + "".join(f"x-{n}: &a{n} {{<<: [{f'*a{n - 1},' * 9}]}}\n" for n in range(1, 12))
    yield HostileDocument(format, "merged aliases", (text + merged).encode, "aliases")
    run = "x-a: !!python/object/apply:os.system ['touch owned']\n"
    yield HostileDocument(format, "a tag that runs", (text + run).encode)
    for name, place in trap.places.items():
        pointed = {
            **OPENAPI,
            "paths": {"/a": {"$ref": place}},
            "components": {"schemas": {"A": {"$ref": place + "#/a"}}},
        }
        yield HostileDocument(format, f"references to the {name}", _text(pointed))
        dialect = {**OPENAPI, "jsonSchemaDialect": place, "components": {"schemas": {"A": {"$schema": place}}}}
        yield HostileDocument(format, f"a dialect of the {name}", _text(dialect))
    schemas = {"A": {"type": "string", "pattern": SLOW_PATTERN, "default": SLOW_TEXT}}
    yield HostileDocument(
        format, "a pattern with a default", _text({**OPENAPI, "components": {"schemas": schemas}}), TIMED_OUT_TEXT
    )
    circle = {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}}
    yield HostileDocument(format, "a circle", _text({**OPENAPI, "components": {"schemas": circle}}), "itself")
    swagger = {"swagger": "2.0", "info": OPENAPI["info"], "paths": {}}
    bomb = {"A": {"type": "string", "pattern": SLOW_PATTERN, "default": SLOW_TEXT}}
    yield HostileDocument("openapi/2.0", "a pattern with a default", _text({**swagger, "definitions": bomb}), ANY)
