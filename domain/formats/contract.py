"""The interface of a schema format, and its error values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

#: The maximum number of characters of a document that an error repeats.
MAX_FRAGMENT: Final = 200
#: The maximum number of incompatibilities of two documents that are reported, unless more are asked for.
MAX_INCOMPATIBILITIES: Final = 20


@dataclass(frozen=True, slots=True)
class DocumentLocation:
    """A location in a document.

    pointer: a JSON Pointer (RFC 6901), in JSON documents. line: counted from 1, in text documents. fragment: the text
    at the location, at most MAX_FRAGMENT characters.
    """

    pointer: str | None = None
    line: int | None = None
    fragment: str | None = None


class InvalidDocument(Exception):
    """A document is not valid in its format. text: what is wrong, as a sentence without its full stop."""

    def __init__(self, text: str, location: DocumentLocation | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.location = location


def decode_text(document: bytes) -> str:
    """The text of a document in UTF-8. Raises: InvalidDocument, with the line of the first other bytes."""
    try:
        return document.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = document.count(b"\n", 0, error.start) + 1
        raise InvalidDocument("the document is not UTF-8", DocumentLocation(line=line)) from None


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason why data of one document cannot be read with another.

    rule: a short name in the format's own terms, in lower case with hyphens, such as `reader-field-missing-default`.
    text: the reason as a sentence. reader, writer: its location in each of the two documents; None where there is none.
    """

    rule: str
    text: str
    reader: DocumentLocation | None = None
    writer: DocumentLocation | None = None


#: Which of the two documents is newer.
NewerSide = Literal["reader", "writer"]


class SchemaFormat(Protocol):
    """One schema format: a module with these functions.

    They are pure, never fetch anything, and are safe for untrusted documents: they raise no errors but those listed.
    The caller interrupts calls that take too long.
    """

    def parse(self, document: bytes, name: str) -> Any:
        """The parsed document, as `canonical_form` and `incompatibilities` need it. Callers cache it for later
        comparisons.

        name: the declared `format` value, which contains the version. Raises: InvalidDocument.
        """

    def canonical_form(self, parsed: Any) -> bytes:
        """Bytes that are equal for equivalent documents, in the format's standard canonical form where one exists."""

    def incompatibilities(
        self, reader: Any, writer: Any, newer: NewerSide | None = None, /, *, limit: int = MAX_INCOMPATIBILITIES
    ) -> Sequence[Incompatibility]:
        """Why data written with one document cannot be read with another; empty where it can.

        limit: the maximum number of reasons; it does not change whether there are any.

        A Version is backward compatible when it reads what its ancestor wrote,
        forward when its ancestor reads what it writes (SC-36: producers emit declared fields only). newer: which
        document is newer, for formats where that matters.
        """
