"""Compares two documents of one format."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from annals.domain.formats import find_format
from annals.domain.formats.changes.elements import DocumentElements, read_elements
from annals.domain.formats.changes.found_changes import found_changes
from annals.domain.formats.changes.schema_change import ChangeKind, DocumentChanges, SchemaChange
from annals.domain.formats.changes.verdicts import ChangesWithVerdicts

#: Changes of one comparison, and reasons in one direction, beyond this number are left out.
MAX_CHANGES: Final = 2_000


def compare_documents(format: str, left: Any, right: Any) -> DocumentChanges:
    """The changes from `left` to `right`, which is the newer one; none for equivalent documents.

    format: a `format` value of a format that can compare documents. left, right: from its `parse`. Cost: that of two
    compatibility checks, and linear in the documents.
    """
    format_module = find_format(format)
    assert format_module is not None, "nobody compares documents of unknown formats"
    module = format_module.load()
    backward = module.incompatibilities(right, left, "reader", limit=MAX_CHANGES)
    forward = module.incompatibilities(left, right, "writer", limit=MAX_CHANGES)
    left_elements, right_elements = (read_elements(format_module, format, parsed) for parsed in (left, right))
    found = list(islice(found_changes(left_elements, right_elements), MAX_CHANGES + 1))
    changes = ChangesWithVerdicts(found, left_elements, right_elements)
    changes.add_reasons(backward, forward)
    if not changes.all and module.canonical_form(left) != module.canonical_form(right):
        changes.all.append(_whole_document(left_elements, right_elements))
    is_complete = len(changes.all) <= MAX_CHANGES and max(len(backward), len(forward)) < MAX_CHANGES
    return DocumentChanges(changes.all[:MAX_CHANGES], not backward, not forward, is_complete)


def _whole_document(left: DocumentElements, right: DocumentElements) -> SchemaChange:
    """A change that no element shows."""
    return SchemaChange(ChangeKind.CHANGED, "", "", left.start, right.start)
