"""Avro schemas, releases 1.8 to 1.12: `Avro/1.8`, `Avro/1.11.0` and so on.

The releases differ in three rules: enums have a default since 1.9; since 1.12, unions accept the default of any branch,
and aliases must be unique. Invalid logical types are ignored, as Avro demands. Schema resolution is implemented here,
because the libraries report no locations and treat namespaces and relative aliases differently; tests compare the
result with three of them.
Begin with `schema.py`, then `schema_reader.py` and `resolution.py`.
Spec: Avro 1.8.2, 1.9.2, 1.10.2, 1.11.4, 1.12.0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import fastavro

from annals.domain.formats.avro.canonical import canonical_json, parsing_canonical_form
from annals.domain.formats.avro.resolution import find_incompatibilities
from annals.domain.formats.avro.schema import AvroSchema
from annals.domain.formats.avro.schema_reader import ReaderRules, read_schema, rules_of_release
from annals.domain.formats.contract import MAX_INCOMPATIBILITIES, Incompatibility, InvalidDocument, NewerSide
from annals.domain.formats.json_document import load_json

__all__ = ["MAX_BYTES", "ReaderRules", "canonical_form", "incompatibilities", "parse", "parse_by_rules"]

#: Maximum size of a document in bytes. The largest published schemas have a tenth of this.
MAX_BYTES: Final = 8 * 2**20
_RELEASE: Final = re.compile(r"avro/1\.(\d{1,4})(?:\..*)?", re.IGNORECASE | re.DOTALL)
_NEWEST_MINOR: Final = 12
#: How many schemas stay known, and up to which size of their documents.
_KNOWN_SCHEMAS: Final = 128
_SMALL_BYTES: Final = 8 << 10


def parse(document: bytes, name: str) -> AvroSchema:
    """The schema in a document, read by the rules of the release in `name`; the newest where it names none.

    Raises: InvalidDocument. Cost: linear in the document; defaults of a union once for each of its branches.
    """
    release = _RELEASE.fullmatch(name)
    return parse_by_rules(document, rules_of_release(int(release[1]) if release else _NEWEST_MINOR))


def parse_by_rules(document: bytes, rules: ReaderRules) -> AvroSchema:
    """`parse` by rules that need not be those of a release."""
    if len(document) > MAX_BYTES:
        raise InvalidDocument(f"the document has more than {MAX_BYTES} bytes")
    read = _read_small if len(document) <= _SMALL_BYTES else _read
    return read(document, rules)


def _read(document: bytes, rules: ReaderRules) -> AvroSchema:
    try:
        schema = read_schema(load_json(document), rules, document)
        # The library that most readers of this project use decides about everything that the checks above accept.
        if rules.checks_names:
            fastavro.parse_schema(canonical_json(schema))
    except RecursionError:
        raise InvalidDocument("the document is nested too deeply") from None
    except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType) as error:
        raise InvalidDocument(f"the document is not a schema: {error}"[:500]) from None
    return schema


#: A document is read for several checks in a row, and that of a Version again when the next one is compared with it.
_read_small: Final = lru_cache(_KNOWN_SCHEMAS)(_read)


def canonical_form(parsed: AvroSchema) -> bytes:
    """The Parsing Canonical Form: equal for schemas that write the same data.

    It omits what only readers use (defaults, aliases) and what nobody uses (doc, other attributes, logical types). So
    schemas with one canonical form may still differ in what they can read.
    """
    return parsing_canonical_form(parsed)


def incompatibilities(
    reader: AvroSchema,
    writer: AvroSchema,
    _newer: NewerSide | None = None,
    /,
    *,
    limit: int = MAX_INCOMPATIBILITIES,
) -> Sequence[Incompatibility]:
    """Why data of one schema cannot be read with another, by Avro's schema resolution.

    Its rules are `type-mismatch`, `missing-union-branch`, `name-mismatch`, `reader-field-missing-default`,
    `missing-enum-symbols`, `fixed-size-mismatch` and `decimal-mismatch`. Cost: linear in the larger schema where types
    match by name; a type whose aliases match many others is compared with each of them.
    """
    return find_incompatibilities(reader, writer, limit)
