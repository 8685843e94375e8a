"""What documents say: whether one breaks what another allowed, and the fields that a schema has.

Both depend on bytes only. So each pair of documents, and each document, is computed once for all events that refer to
it, in the workers of Spark.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa
from pyspark.sql import functions as f

from annals.domain import formats
from annals.domain.decisions.checks.document_checks import (
    FORMAT_RULE,
    CompatibilityCheck,
    FormatCheck,
    parse_document,
    run_check,
)
from annals.domain.formats import InvalidDocument
from annals.domain.formats.fields import SchemaField, schema_fields
from annals.spark_projections.arrow_batches import map_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Result = TypeVar("Result")

#: Seconds after which the comparison of two documents, or the reading of one, counts as undecided.
MAX_SECONDS: Final = 10

_PAIR: Final = ("before", "before_format", "after", "after_format")
_VERDICT_SCHEMA: Final = pa.schema([("breaking", pa.string()), ("breaking_reason", pa.string())])
_DOCUMENT: Final = ("document", "format")
_FIELD_SCHEMA: Final = pa.schema(
    [
        *(("ordinal", pa.int64()), ("path", pa.string()), ("name", pa.string())),
        *(("fieldtype", pa.string()), ("optional", pa.string()), ("doc", pa.string())),
    ]
)
#: The column with the rows that have a pair of documents, or a document.
_USES: Final = "uses"


def verdicts(pairs: DataFrame, documents: DataFrame, *key: str) -> DataFrame:
    """Whether documents read what others wrote: `breaking`, and the first reason as `breaking_reason`.

    pairs: columns `before` and `after`, hashes of documents, with `before_format` and `after_format`. documents:
    `sha256` and `content`. key: columns of the pairs that the result has, too. Two equal documents have no row, nor
    have those that cannot be compared: of unknown or different formats, invalid, without content, or beyond
    MAX_SECONDS.
    """
    different = pairs.where("before <> after AND before_format IS NOT NULL AND after_format IS NOT NULL")
    distinct = different.groupBy(*_PAIR).agg(f.collect_list(f.struct(*key)).alias(_USES))
    for side in ("before", "after"):
        content = documents.select(f.col("sha256").alias(side), f.col("content").alias(f"{side}_content"))
        distinct = distinct.join(content, side)
    contents = ("before_content", "after_content")
    compared = map_rows(distinct, [_USES], (*_PAIR, *contents), _verdict, _VERDICT_SCHEMA)
    return compared.select(f.inline(_USES), f.col("breaking").cast("boolean").alias("breaking"), "breaking_reason")


def fields(versions: DataFrame, documents: DataFrame) -> DataFrame:
    """The fields of schemas: `ordinal`, `path`, `name`, `fieldtype`, `optional`, `doc`, and the columns of their rows.

    versions: columns `document`, `format` and any others. documents: see `verdicts`. A document without content, of an
    unknown format, or invalid in it has no row.
    """
    stated = versions.where(" AND ".join(f"{name} IS NOT NULL" for name in _DOCUMENT))
    others = [name for name in versions.columns if name not in _DOCUMENT]
    distinct = stated.groupBy(*_DOCUMENT).agg(f.collect_list(f.struct(*others)).alias(_USES))
    content = documents.select(f.col("sha256").alias("document"), "content")
    found = map_rows(
        distinct.join(content, "document"), (*_DOCUMENT, _USES), (*_DOCUMENT, "content"), _field_rows, _FIELD_SCHEMA
    )
    return found.withColumns({_USES: f.explode(_USES), "optional": f.col("optional").cast("boolean")}).select(
        *_DOCUMENT, *_FIELD_SCHEMA.names, f"{_USES}.*"
    )


def _verdict(
    before: str, before_format: str, after: str, after_format: str, before_content: bytes, after_content: bytes
) -> Iterator[tuple[str | None, ...]]:
    contents = {before: before_content, after: after_content}
    check = CompatibilityCheck(FormatCheck(after_format, after), FormatCheck(before_format, before))
    format_module = formats.find_format(after_format)
    if format_module is None:
        return

    def parse(document: FormatCheck) -> object:
        return parse_document(document, contents[document.sha256 or ""])

    result = limited(lambda: run_check(check, parse))
    if result is not None and not any(reason.rule == FORMAT_RULE for reason in result):
        yield "true" if result else "false", result[0].text if result else None


def _field_rows(document: str, format: str, content: bytes) -> Iterator[tuple[str | int | None, ...]]:
    for ordinal, field in enumerate(limited(lambda: _fields_of(document, format, content)) or (), 1):
        optional = "true" if field.optional else "false"
        yield ordinal, field.path, field.name, field.type, optional, field.doc or None


def _fields_of(document: str, format: str, content: bytes) -> list[SchemaField]:
    try:
        return list(schema_fields(format, parse_document(FormatCheck(format, document), content)))
    except (InvalidDocument, KeyError, RecursionError):
        return []


class _OutOfTime(BaseException):
    """Not an error for the code that it interrupts."""


def limited(compute: Callable[[], Result]) -> Result | None:
    """The result, or None after MAX_SECONDS."""
    try:
        with _alarm():
            return compute()
    except _OutOfTime:
        return None


@contextmanager
def _alarm() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise _OutOfTime

    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
