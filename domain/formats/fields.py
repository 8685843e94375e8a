"""The fields of a schema: what a value of it has, in words that are the same for each format.

A path names a field from the root of the document. `.` leads to a member, `[]` to the items of an array, `{}` to the
values of a map or of members that no name is declared for: `orders[].price`, `labels{}`. Formats that declare several
types at the top (Protobuf, GraphQL, XSD, OpenAPI) begin with the name of the type.

The module `fields` of a format also has, for comparisons, either `document`, the JSON value of a document, or
`declarations`: what a document declares besides fields, in the same form. A space in the path of a declaration leads to
a property of what is before it: `Order.id number`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import islice
from typing import Any, Final, NamedTuple

from annals.domain.formats import find_format
from annals.domain.formats.contract import DocumentLocation

#: Fields of one document beyond this number are left out. The largest published schemas have a tenth of this.
MAX_FIELDS: Final = 20_000
#: Levels of a path; deeper fields are left out.
MAX_DEPTH: Final = 32


class SchemaField(NamedTuple):
    """A field.

    path: see above. name: its last name. type: in the words of the format, such as `string`, `record Address`,
    `array<int>`. optional: a valid value may lack the field, or have null there. doc: its description; empty for none.
    location: where the document declares it, without a fragment.
    """

    path: str
    name: str
    type: str
    optional: bool
    doc: str = ""
    location: DocumentLocation | None = None


def schema_fields(format: str, parsed: Any) -> Iterator[SchemaField]:
    """The fields of a document, in its order, at most MAX_FIELDS.

    format: its `format` value. parsed: from `parse` of that format. A type that contains itself is not repeated.
    """
    format_module = find_format(format)
    if format_module is None:
        return
    fields_of = import_module(f"annals.domain.formats.{format_module.module}.fields").fields
    found: Iterable[SchemaField] = fields_of(parsed)
    yield from islice(found, MAX_FIELDS)


def join_path(path: str, name: str) -> str:
    """The path of a member."""
    return f"{path}.{name}" if path else name
