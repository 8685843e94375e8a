"""Checks of documents that a decision requires, and their results.

A result depends on bytes only, so it is valid forever and any process can compute it. A decision states which checks it
needs; the holder of the write lock never runs them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from annals.domain import formats
from annals.domain.confluent import checks as schema_checks
from annals.domain.confluent.checks import SchemaCheck
from annals.domain.formats import Incompatibility, InvalidDocument
from annals.domain.formats.changes.compare import compare_documents
from annals.domain.formats.contract import NewerSide
from annals.domain.search.fields_check import FieldsCheck


class FormatCheck(NamedTuple):
    """Is this a document of its format? format: as declared, in lower case. sha256: None for the empty document."""

    format: str
    sha256: str | None


class CompatibilityCheck(NamedTuple):
    """Can data written with one document be read with the other? newer: which of the two is newer."""

    reader: FormatCheck
    writer: FormatCheck
    newer: NewerSide = "reader"


class AncestorsCheck(NamedTuple):
    """Is a document compatible with some of its ancestors? `find_incompatible` reads the result.

    It stands for many comparisons, so that a decision about a long lineage asks for few checks. newer: the sides that
    the document takes, one after the other.
    """

    document: FormatCheck
    ancestors: tuple[FormatCheck, ...]
    newer: tuple[NewerSide, ...]

    def comparisons(self) -> Iterator[CompatibilityCheck]:
        """All its comparisons, ancestor by ancestor."""
        for ancestor in self.ancestors:
            for newer in self.newer:
                yield compare_with_ancestor(self.document, ancestor, newer)


class IncompatibleAncestor(NamedTuple):
    """What an AncestorsCheck has found. ancestor_index: of the first ancestor that is not compatible.

    It is None if the check was not made, which says nothing about any ancestor.
    """

    ancestor_index: int | None
    newer: NewerSide
    incompatibilities: CheckResult


class ChangesCheck(NamedTuple):
    """What changed from one document to a newer one? `read_changes` reads the result."""

    left: FormatCheck
    right: FormatCheck


DocumentCheck = FormatCheck | CompatibilityCheck | AncestorsCheck | ChangesCheck | SchemaCheck | FieldsCheck
#: The incompatibilities; empty if the check passes. A check of a schema that computes something returns it as one.
CheckResult = tuple[Incompatibility, ...]
CheckResults = Mapping[DocumentCheck, CheckResult]
#: Returns the parsed document in the form that its format compares. Raises: InvalidDocument.
ParseDocument = Callable[[FormatCheck], Any]

#: The format of documents that a check takes as they are: it parses them itself, with others.
RAW_FORMAT: Final = "raw"
#: The `rule` for a document that is not valid in its format.
FORMAT_RULE: Final = "format"
#: The `rule` of the result of a ChangesCheck; its text is JSON.
CHANGES_RULE: Final = "changes"
#: The `rule` of the first item in the result of an AncestorsCheck; its text has the index and the side.
_ANCESTOR_RULE: Final = "ancestor"
_EMPTY_DOCUMENT_RESULT: Final = (Incompatibility(FORMAT_RULE, "the document is empty"),)
#: Failures to run a check; a later attempt may succeed.
TIMED_OUT: Final = Incompatibility(FORMAT_RULE, "checking it takes longer than the limit for one document")
OUT_OF_MEMORY: Final = Incompatibility(FORMAT_RULE, "checking it takes more memory than the limit for one document")
CRASHED: Final = Incompatibility(FORMAT_RULE, "it cannot be checked: the program that reads its format crashes")


class ChecksRequired(Exception):
    """A decision needs the results of these checks first.

    documents: bytes by SHA-256 of the documents that are not stored yet.
    """

    def __init__(self, checks: frozenset[DocumentCheck], documents: Mapping[str, bytes]) -> None:
        super().__init__(f"{len(checks)} checks of documents")
        self.checks = checks
        self.documents = documents


def run_check(document_check: DocumentCheck, parse: ParseDocument) -> CheckResult:
    """The result of a check; an error inside a format is a result too. Cost: that of the format."""
    try:
        if isinstance(document_check, FormatCheck):
            if document_check.sha256 is None:
                return _EMPTY_DOCUMENT_RESULT
            parse(document_check)
            return ()
        if isinstance(document_check, FieldsCheck):
            return document_check.run(parse)
        if isinstance(document_check, SchemaCheck):
            return document_check.run(lambda sha256: bytes(parse(FormatCheck(RAW_FORMAT, sha256))))
        if isinstance(document_check, ChangesCheck):
            return _find_changes(document_check, parse)
        if isinstance(document_check, AncestorsCheck):
            return ancestors_result(document_check, lambda one: run_check(one, parse))
        return _check_compatibility(document_check, parse)
    except InvalidDocument as violation:
        return (Incompatibility(FORMAT_RULE, violation.text, violation.location),)
    except (MemoryError, SystemError):  # C code raises SystemError if it runs out of memory unnoticed
        return (OUT_OF_MEMORY,)
    except RecursionError:
        return (Incompatibility(FORMAT_RULE, "it is nested too deeply"),)
    except Exception as error:  # a defect of a format or its library is no reason to accept a document unchecked
        return (Incompatibility(FORMAT_RULE, f"it cannot be checked: {type(error).__name__}: {error}"[:500]),)


def documents_of(document_check: DocumentCheck) -> tuple[FormatCheck, ...]:
    """The documents that a check is about."""
    if isinstance(document_check, FormatCheck):
        return (document_check,)
    if isinstance(document_check, FieldsCheck):
        return (document_check.document,)
    if isinstance(document_check, SchemaCheck):
        return tuple(FormatCheck(RAW_FORMAT, sha256) for sha256 in schema_checks.documents_of(document_check))
    if isinstance(document_check, ChangesCheck):
        return document_check.left, document_check.right
    if isinstance(document_check, AncestorsCheck):
        return document_check.document, *document_check.ancestors
    return document_check.reader, document_check.writer


def comparison_count(document_check: DocumentCheck) -> int:
    """How many checks of the usual size a check stands for."""
    if isinstance(document_check, AncestorsCheck):
        return len(document_check.ancestors) * len(document_check.newer)
    return 1


def ancestors_result(check: AncestorsCheck, result_of: Callable[[DocumentCheck], CheckResult]) -> CheckResult:
    """The result of a check from those of its comparisons and of its ancestors.

    An ancestor that is invalid in its format counts if no other does, because it has an error of its own.
    """
    of_invalid_ancestor: CheckResult = ()
    for number, comparison in enumerate(check.comparisons()):
        if incompatibilities := result_of(comparison):
            index, side = divmod(number, len(check.newer))
            result = (Incompatibility(_ANCESTOR_RULE, f"{index} {side}"), *incompatibilities)
            if not result_of(check.ancestors[index]):
                return result
            of_invalid_ancestor = of_invalid_ancestor or result
    return of_invalid_ancestor


def find_incompatible(check: AncestorsCheck, result: CheckResult) -> IncompatibleAncestor | None:
    """The first ancestor that is not compatible; None if all are."""
    if not result:
        return None
    if result[0].rule != _ANCESTOR_RULE:
        return IncompatibleAncestor(None, check.newer[0], result)
    index, side = map(int, result[0].text.split())
    return IncompatibleAncestor(index, check.newer[side], result[1:])


def read_changes(result: CheckResult) -> dict[str, Any] | None:
    """The members of the changes in the result of a ChangesCheck; None if the documents cannot be compared."""
    if len(result) != 1 or result[0].rule != CHANGES_RULE:
        return None
    members: dict[str, Any] = json.loads(result[0].text)
    return members


def parse_document(document: FormatCheck, content: bytes) -> Any:
    """The document as its format parses it. Raises: InvalidDocument; KeyError for an unknown format."""
    if document.format == RAW_FORMAT:
        return content
    format_module = formats.find_format(document.format)
    if format_module is None:
        raise KeyError(document.format)
    return format_module.load().parse(_unquote(content) if format_module.is_text else content, document.format)


def _check_compatibility(document_check: CompatibilityCheck, parse: ParseDocument) -> CheckResult:
    format_module = formats.find_format(document_check.reader.format)
    if (obstacle := _obstacle(document_check.reader, document_check.writer)) is not None:
        return obstacle
    assert format_module is not None, "nobody asks about formats that are not known"
    reader = parse(document_check.reader)
    try:
        writer = parse(document_check.writer)
    except InvalidDocument as violation:  # such as one that an earlier release took
        return (Incompatibility(FORMAT_RULE, violation.text, writer=violation.location),)
    return tuple(format_module.load().incompatibilities(reader, writer, document_check.newer))


def compare_with_ancestor(document: FormatCheck, ancestor: FormatCheck, newer: NewerSide) -> CompatibilityCheck:
    """The comparison in which a document takes a side."""
    if newer == "reader":
        return CompatibilityCheck(document, ancestor, newer)
    return CompatibilityCheck(ancestor, document, newer)


def _find_changes(document_check: ChangesCheck, parse: ParseDocument) -> CheckResult:
    left, right = document_check
    if (obstacle := _obstacle(left, right)) is not None:
        return obstacle
    changes = compare_documents(left.format, parse(left), parse(right))
    # Documents of some formats may contain half a surrogate pair, which UTF-8 has not.
    text = json.dumps(changes.members(), ensure_ascii=False).encode(errors="replace").decode()
    return (Incompatibility(CHANGES_RULE, text),)


def _obstacle(first: FormatCheck, second: FormatCheck) -> CheckResult | None:
    """Why two documents cannot be compared; None if they can."""
    if formats.find_format(first.format) is not formats.find_format(second.format):
        text = f'documents of "{first.format}" and of "{second.format}" cannot be compared'
        return (Incompatibility(FORMAT_RULE, text),)
    return _EMPTY_DOCUMENT_RESULT if first.sha256 is None or second.sha256 is None else None


def _unquote(content: bytes) -> bytes:
    """The content of a text document that is sent as a JSON string (inlined in a body of type application/json)."""
    if content.lstrip()[:1] != b'"':
        return content
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return content
    return value.encode(errors="surrogatepass") if isinstance(value, str) else content
