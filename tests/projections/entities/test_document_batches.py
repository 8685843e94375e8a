"""Documents of many rows: few statements read them, whatever their number, and large ones are never read together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import chain, pairwise

import pytest

from annals.projections.entities.document_batches import DocumentBatches
from annals.projections.entities.entity_documents import SMALL_DOCUMENT_BYTES, MissingDocument
from annals.projections.entities.filters.selection import BATCH_MEMBERS
from annals.projections.entities.view import View
from tests.support.registries.recorded import Registry

FILES = "/dirs/d/files"


def record(registry: Registry, contents: list[bytes], is_stored: bool = True) -> int:
    """Records a file for each document, in this order, with a Version of the same document; returns the position."""
    hashes = [sha256(content).hexdigest() for content in contents]
    files = ((f"{FILES}/f{number:05}", hash) for number, hash in enumerate(hashes))
    changes = [(xid, {"doc": hash}) for file, hash in files for xid in (file, f"{file}/versions/1")]
    documents = dict(zip(hashes, contents, strict=True)) if is_stored else {}
    return registry.record(("/dirs/d", {"name": "d"}), *changes, documents=documents)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts from now on the calls of methods of View that read documents; each call is one statement."""
    seen: Counter[str] = Counter()

    def note(name: str) -> None:
        function = getattr(View, name)

        def noted(view: View, argument: str | Iterable[str]) -> object:
            seen[name] += 1
            return function(view, argument)

        monkeypatch.setattr(View, name, noted)

    note("small_documents")
    note("document")
    return seen


def contents_of(view: View) -> Iterator[bytes]:
    """The documents below FILES. Like a renderer, it takes the next row before it reads the document of a row."""
    batches = DocumentBatches(view)
    for row, _ in pairwise(chain(batches.read_ahead(view.subtree(FILES)), [None])):
        assert row and row.document
        yield batches.read(row.document)


def test_a_statement_reads_the_documents_of_a_batch(registry: Registry, reads: Counter[str]) -> None:
    contents = [b"%d" % number for number in range(3 * BATCH_MEMBERS)]
    position = record(registry, contents)
    expected = [content for content in contents for _ in range(2)]
    with registry.readers.view() as view:
        assert list(contents_of(view)) == expected
        assert reads == {"small_documents": 6}
        registry.record((FILES + "/f00000", None))
        assert list(contents_of(view.as_of(position))) == expected
        assert reads == {"small_documents": 12}


def test_large_documents_are_read_one_by_one(registry: Registry, reads: Counter[str]) -> None:
    contents = [b"a" * SMALL_DOCUMENT_BYTES, b"b" * (SMALL_DOCUMENT_BYTES + 1), b"", b"c" * (1 << 20)]
    record(registry, contents)
    with registry.readers.view() as view:
        assert view.small_documents(sha256(content).hexdigest() for content in contents).keys() == {
            sha256(content).hexdigest() for content in (contents[0], contents[2])
        }
        reads.clear()
        assert list(contents_of(view)) == [content for content in contents for _ in range(2)]
    assert reads == {"small_documents": 1, "document": 4}


def test_rows_whose_documents_are_not_read_cost_no_statement(registry: Registry, reads: Counter[str]) -> None:
    record(registry, [b"a", b"b"])
    with registry.readers.view() as view:
        assert len(list(DocumentBatches(view).read_ahead(view.subtree(FILES)))) == 4
    assert not reads


def test_a_missing_document_is_reported(registry: Registry) -> None:
    record(registry, [b"a"], is_stored=False)
    with registry.readers.view() as view, pytest.raises(MissingDocument):
        list(contents_of(view))
