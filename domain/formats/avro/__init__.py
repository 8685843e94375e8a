"""Avro schemas, releases 1.8 to 1.12: `Avro/1.8`, `Avro/1.11.0` and so on.

What the releases differ in counts: enums have a default since 1.9, unions take the default of any branch since 1.12,
and aliases have to be unique since 1.12. Logical types that a schema states wrongly are ignored, as Avro has it. Schema
resolution is written here, because the libraries that do it say neither where nor, about namespaces and relative
aliases, what is asked for here; the tests hold it against three of them.
Spec: Avro 1.8.2, 1.9.2, 1.10.2, 1.11.4, 1.12.0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import fastavro

from domain.formats.avro.canonical import canonical_json, parsing_canonical_form
from domain.formats.avro.resolution import find_incompatibilities
from domain.formats.avro.schema import AvroSchema
from domain.formats.avro.schema_reader import read_schema
from domain.formats.contract import Incompatibility, InvalidDocument, NewerSide
from domain.formats.json_document import load_json

__all__ = ["MAX_BYTES", "canonical_form", "incompatibilities", "parse"]

#: Bytes that a document may have. The largest schemas that people publish have a tenth of this.
MAX_BYTES: Final = 8 * 2**20
_RELEASE: Final = re.compile(r"avro/1\.(\d{1,4})(?:\..*)?", re.IGNORECASE | re.DOTALL)
_NEWEST: Final = 12


def parse(document: bytes, name: str) -> AvroSchema:
    """The schema that a document declares under the release in `name`; the newest where it names none.

    Raises: InvalidDocument. Cost: linear in the document; defaults of a union once for each branch of it.
    """
    if len(document) > MAX_BYTES:
        raise InvalidDocument(f"the document has more than {MAX_BYTES} bytes")
    release = _RELEASE.fullmatch(name)
    try:
        schema = read_schema(load_json(document), int(release[1]) if release else _NEWEST, document)
        # The library that most readers of this project use has the last word on what the checks above let through.
        fastavro.parse_schema(canonical_json(schema))
    except RecursionError:
        raise InvalidDocument("the document is nested too deeply") from None
    except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType) as error:
        raise InvalidDocument(f"the document is not a schema: {error}"[:500]) from None
    return schema


def canonical_form(parsed: AvroSchema) -> bytes:
    """The Parsing Canonical Form: equal for schemas that write the same data.

    It leaves out what only readers use (defaults, aliases) and what nobody uses (doc, other attributes, logical types),
    so schemas of one canonical form may still differ in what they can read.
    """
    return parsing_canonical_form(parsed)


def incompatibilities(
    reader: AvroSchema, writer: AvroSchema, _newer: NewerSide | None = None, /
) -> Sequence[Incompatibility]:
    """Why data of one schema cannot be read with another, by Avro's schema resolution.

    Its rules are `type-mismatch`, `missing-union-branch`, `name-mismatch`, `reader-field-missing-default`,
    `missing-enum-symbols`, `fixed-size-mismatch` and `decimal-mismatch`.
    Cost: linear in the larger schema where types match by their names; a type that many others match by its aliases is
    looked at for each of them.
    """
    return find_incompatibilities(reader, writer)
