"""A schema in each format: one of so many members, and the next Version of it with one optional member more.

mark: makes it another document that means as much, so that no verdict on it is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from annals.domain.values.json_text import dumps

#: A document of so many members, marked.
Made = Callable[[int, str], bytes]


def avro(members: int, mark: str) -> bytes:
    fields = [{"name": f"field{n}", "type": "string", "default": "", "doc": f"part {n}"} for n in range(members)]
    return dumps({"type": "record", "name": "R", "doc": mark, "fields": fields})


def jsonschema(members: int, mark: str) -> bytes:
    return dumps({"description": mark, "type": "object", "properties": _properties(members, "string")})


def jsonstructure(members: int, mark: str) -> bytes:
    head = {"$schema": "https://json-structure.org/meta/core/v0/#", "$id": "https://example.com/s", "name": "S"}
    return dumps({**head, "description": mark, "type": "object", "properties": _properties(members, "string")})


def protobuf(members: int, mark: str) -> bytes:
    fields = "".join(f"  string field{n} = {n + 1};  // part {n} of it\n" for n in range(members))
    return f'syntax = "proto3";\n// {mark}\nmessage M {{\n{fields}}}\n'.encode()


def xsd(members: int, mark: str) -> bytes:
    """In types of 20 elements each, as people have them: within one, xmlschema compares each with each."""
    types, roots = "", ""
    for first in range(0, members, 20):
        names = range(first, min(first + 20, members))
        elements = "".join(f'<xs:element name="field{n}" type="xs:string" minOccurs="0"/>\n' for n in names)
        types += f'<xs:complexType name="part{first}"><xs:sequence>{elements}</xs:sequence></xs:complexType>\n'
        roots += f'<xs:element name="root{first}" type="part{first}"/>\n'
    head = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">'
    return f"{head}<!-- {mark} -->{types}{roots}</xs:schema>".encode()


def graphql(members: int, mark: str) -> bytes:
    fields = "".join(f"  field{n}(part: Int): String # part {n}\n" for n in range(members))
    return f"# {mark}\ntype Query {{\n{fields}}}\n".encode()


def openapi(members: int, mark: str) -> bytes:
    responses = {"200": {"description": "It is there"}}
    paths = {f"/field{n}": {"get": {"summary": f"Part {n}", "responses": responses}} for n in range(members)}
    return dumps({"openapi": "3.1.0", "info": {"title": mark, "version": "1"}, "paths": paths})


def _properties(members: int, type: str) -> dict[str, Any]:
    return {f"field{n}": {"type": type, "description": f"part {n}"} for n in range(members)}


#: By the `format` value.
DOCUMENTS: Final[dict[str, Made]] = {
    "avro/1.11": avro,
    "jsonschema/draft-07": jsonschema,
    "jsonstructure/draft-04": jsonstructure,
    "protobuf/3": protobuf,
    "xsd/1.0": xsd,
    "graphql/october2021": graphql,
    "openapi/3.1": openapi,
}


def members_for(made: Made, size: int) -> int:
    """How many members a document of so many bytes has."""
    few, many = len(made(10, "")), len(made(1010, ""))
    return max(1, 10 + (size - few) * 1000 // (many - few))
