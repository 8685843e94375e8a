"""Results of checks of documents, without a store."""

from __future__ import annotations

from hashlib import sha256

import pytest

from annals.domain.decisions.checks.document_checks import (
    TIMED_OUT,
    AncestorsCheck,
    CompatibilityCheck,
    FormatCheck,
    IncompatibleAncestor,
    compare_with_ancestor,
    find_incompatible,
    parse_document,
    run_check,
)
from annals.domain.formats.contract import NewerSide

_FORMAT = "jsonschema/draft-07"
_CONTENTS = (b'{"type": "string"}', b'{\n"type": "text"}', b'{"type": "integer"}', b"{}")
_DOCUMENTS = {sha256(content).hexdigest(): content for content in _CONTENTS}
_VALID, _INVALID, _OTHER, _WIDER = (FormatCheck(_FORMAT, digest) for digest in _DOCUMENTS)


def _parse(document: FormatCheck) -> object:
    return parse_document(document, _DOCUMENTS[document.sha256 or ""])


def test_the_document_that_is_invalid_is_named() -> None:
    # SC-30: a document of an earlier release may be invalid now; the place is in it, not in the one compared with it
    (of_writer,) = run_check(CompatibilityCheck(_VALID, _INVALID), _parse)
    (of_reader,) = run_check(CompatibilityCheck(_INVALID, _VALID), _parse)
    assert of_writer.rule == of_reader.rule == "format"
    assert of_writer.reader is None and of_writer.writer is not None and of_writer.writer.pointer == "/type"
    assert of_reader.writer is None and of_reader.reader == of_writer.writer


@pytest.mark.parametrize(
    ("ancestors", "newer", "expected"),
    [
        ((_VALID, _VALID), ("reader", "writer"), None),
        ((_WIDER, _OTHER), ("writer",), (1, "writer")),
        ((_WIDER, _OTHER), ("reader", "writer"), (0, "reader")),
        ((_VALID, _INVALID, _VALID), ("reader",), (1, "reader")),
        ((_INVALID, _VALID, _OTHER), ("reader", "writer"), (2, "reader")),
        ((_VALID, FormatCheck(_FORMAT, None)), ("writer",), (1, "writer")),
    ],
    ids=["none", "second", "first", "invalid", "invalid one before another", "empty"],
)
def test_the_first_incompatible_ancestor_is_found(
    ancestors: tuple[FormatCheck, ...], newer: tuple[NewerSide, ...], expected: tuple[int, NewerSide] | None
) -> None:
    # SC-30, SC-32: with the same reasons as a comparison with it alone; one that is invalid is reported elsewhere
    check = AncestorsCheck(_VALID, ancestors, newer)
    found = find_incompatible(check, run_check(check, _parse))
    if expected is None:
        assert found is None
    else:
        index, side = expected
        reasons = run_check(compare_with_ancestor(_VALID, ancestors[index], side), _parse)
        assert found == IncompatibleAncestor(index, side, reasons)


def test_a_failed_check_counts_against_the_first_ancestor() -> None:
    check = AncestorsCheck(_VALID, (_WIDER, _OTHER), ("reader", "writer"))
    assert find_incompatible(check, (TIMED_OUT,)) == IncompatibleAncestor(0, "reader", (TIMED_OUT,))
