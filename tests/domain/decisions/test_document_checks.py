"""Results of checks of documents, without a store."""

from __future__ import annotations

from hashlib import sha256

from annals.domain.decisions.checks.document_checks import CompatibilityCheck, FormatCheck, parse_document, run_check

_FORMAT = "jsonschema/draft-07"
_DOCUMENTS = {sha256(content).hexdigest(): content for content in (b'{"type": "string"}', b'{\n"type": "text"}')}
_VALID, _INVALID = (FormatCheck(_FORMAT, digest) for digest in _DOCUMENTS)


def test_the_document_that_is_invalid_is_named() -> None:
    # SC-30: a document of an earlier release may be invalid now; the place is in it, not in the one compared with it
    def parse(document: FormatCheck) -> object:
        return parse_document(document, _DOCUMENTS[document.sha256 or ""])

    (of_writer,) = run_check(CompatibilityCheck(_VALID, _INVALID), parse)
    (of_reader,) = run_check(CompatibilityCheck(_INVALID, _VALID), parse)
    assert of_writer.rule == of_reader.rule == "format"
    assert of_writer.reader is None and of_writer.writer is not None and of_writer.writer.pointer == "/type"
    assert of_reader.writer is None and of_reader.reader == of_writer.writer
