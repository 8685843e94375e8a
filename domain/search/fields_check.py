"""Reads the fields of documents, run where documents are checked: in bounded processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from annals.domain.formats.contract import Incompatibility
from annals.domain.formats.fields import SchemaField, schema_fields
from annals.domain.values.json_text import dumps, loads_trusted

#: The `rule` of the result; its text is JSON.
FIELDS_RULE: Final = "fields"
#: Characters of a description that are read.
MAX_DOC_LENGTH: Final = 2000


class FieldsCheck(NamedTuple):
    """Which fields has a document? document: a FormatCheck.

    Its result is large and needed once, so that nobody should keep it.
    """

    document: Any

    def run(self, parse: Callable[[Any], Any]) -> tuple[Incompatibility, ...]:
        """A result that `read_fields` reads. Raises: InvalidDocument."""
        fields = schema_fields(self.document.format, parse(self.document))
        rows = [(field.path, field.name, field.doc[:MAX_DOC_LENGTH]) for field in fields]
        return (Incompatibility(FIELDS_RULE, dumps(rows).decode()),)


def read_fields(result: Sequence[Incompatibility]) -> list[SchemaField]:
    """The fields in a result; none for a document that cannot be parsed. They have no types."""
    if not result or result[0].rule != FIELDS_RULE:
        return []
    return [SchemaField(path, name, "", False, doc) for path, name, doc in loads_trusted(result[0].text)]
