"""Results of checks of documents, without a store."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from types import SimpleNamespace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.domain.decisions.checks.document_checks import (
    TIMED_OUT,
    AncestorsCheck,
    CheckResult,
    CompatibilityCheck,
    DocumentCheck,
    FormatCheck,
    IncompatibleAncestor,
    compare_with_ancestor,
    find_incompatible,
    parse_document,
    run_check,
)
from annals.domain.decisions.rules.version_checks import (
    COMPARED_TOGETHER,
    ComparedVersion,
    VersionCheck,
    compatibility_checks,
)
from annals.domain.formats.contract import NewerSide

_FORMAT = "jsonschema/draft-07"
_CONTENTS = (b'{"type": "string"}', b'{\n"type": "text"}', b'{"type": "integer"}', b"{}")
_DOCUMENTS = {sha256(content).hexdigest(): content for content in _CONTENTS}
_SIDES: Final[tuple[tuple[NewerSide, ...], ...]] = (("reader",), ("writer",), ("reader", "writer"))
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


@pytest.mark.parametrize("invalid", [(), (0,), (0, 1), range(COMPARED_TOGETHER + 1)])
def test_a_check_that_was_not_made_does_not_pass(invalid: Iterable[int]) -> None:
    # SC-30: it says nothing about an ancestor, so it counts whichever of them is invalid in its format
    compared = [ComparedVersion(str(n), FormatCheck(_FORMAT, str(n))) for n in range(COMPARED_TOGETHER + 1)]
    version: Any = SimpleNamespace(id="new")
    version_check = VersionCheck(version, version, _VALID, None, "full_transitive", None, compared)
    results: dict[DocumentCheck, CheckResult] = {check: (TIMED_OUT,) for check, _ in version_check.comparisons()}
    results |= {_VALID: (), **{compared[n].document: (TIMED_OUT,) for n in invalid}}
    texts = version_check.violation_texts(results)
    assert "takes longer than the limit" in texts["compatibilityvalidatedreason"]


@given(st.lists(st.sampled_from((_VALID, _INVALID, _OTHER, _WIDER)), max_size=8), st.sampled_from(_SIDES))
def test_ancestors_compared_together_give_the_verdict_of_each(
    ancestors: list[FormatCheck], newer: tuple[NewerSide, ...]
) -> None:
    # ENT-112, SC-32
    check = AncestorsCheck(_VALID, tuple(ancestors), newer)
    incompatible = [
        (index, side)
        for index, ancestor in enumerate(ancestors)
        for side in newer
        if run_check(compare_with_ancestor(_VALID, ancestor, side), _parse)
    ]
    valid = [each for each in incompatible if ancestors[each[0]] != _INVALID]
    found = find_incompatible(check, run_check(check, _parse))
    assert (found and found[:2]) == next(iter(valid or incompatible), None)


@given(st.integers(0, 300), st.sampled_from(("backward", "forward", "full")))
def test_each_ancestor_is_compared_once(count: int, rule: str) -> None:
    # ENT-112: in the same order, however many are compared together
    compared = [ComparedVersion(str(number), FormatCheck(_FORMAT, str(number))) for number in range(count)]
    resource: Any = None
    version_check = VersionCheck(resource, resource, _VALID, None, f"{rule}_transitive", None, compared)
    pairs = [
        (ancestor.id, pair)
        for check, ancestors in version_check.comparisons()
        for ancestor in ancestors
        for pair in (check.comparisons() if isinstance(check, AncestorsCheck) else [check])
        if ancestor.document in (pair.reader, pair.writer)
    ]
    assert pairs == [(one.id, pair) for one in compared for pair in compatibility_checks(rule, _VALID, one.document)]
