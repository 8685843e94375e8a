"""The topic of the log: one record for each stored event, with the columns of the log as a table."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson

from annals.commands.store.hashes import LogRow
from annals.domain.values import xid as xids
from annals.projections.kafka.records import (
    GROUP_KEYS,
    Headers,
    RecordContent,
    WindowPart,
    encode_number,
    partition_key,
)
from annals.projections.log.documents import referenced_document
from annals.projections.log.reader import Log
from annals.projections.log.table_rows import SCHEMA_VERSION, table_rows

LOG: Final = "log"

#: Header: the version of the columns.
SCHEMA: Final = "annals_schema"
#: Header if documents are published: the bytes of the document that a Version refers to. A Resource refers to the
#: document of a Version, which has its own event.
DOCUMENT: Final = "annals_document"
_HEADERS: Final = (("content-type", b"application/json"), (SCHEMA, encode_number(SCHEMA_VERSION)))
_VERSION_SEGMENTS: Final = 6


class LogTopic:
    """All stored events, as a row of the log each."""

    name: Final = LOG
    key_format: Final = GROUP_KEYS

    def __init__(self, *, documents: bool = False) -> None:
        """documents: whether records contain the documents of Versions."""
        self._has_documents = documents

    def records(self, parts: Sequence[WindowPart], log: Log) -> Iterator[RecordContent]:
        """See TopicContent."""
        for interaction, rows in parts:
            for row, table_row in zip(rows, table_rows(interaction, rows), strict=True):
                headers = [*_HEADERS, *(_document_header(row, log) if self._has_documents else ())]
                value = orjson.dumps(table_row._asdict(), default=_base64)
                yield RecordContent(interaction, row.position, partition_key(row.stream), value, headers)


def _document_header(row: LogRow, log: Log) -> Headers:
    sha256 = referenced_document(row) if len(xids.segments(row.stream)) == _VERSION_SEGMENTS else None
    content = log.document(sha256) if sha256 is not None else None
    return [] if content is None else [(DOCUMENT, content)]


def _base64(value: Any) -> str:
    return b64encode(value).decode()
