"""What a schema format has to offer, and how it says what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

#: How much of a document an error repeats at most, in characters.
MAX_FRAGMENT: Final = 200
#: How many differences of two documents are told at most.
MAX_INCOMPATIBILITIES: Final = 20


@dataclass(frozen=True, slots=True)
class DocumentLocation:
    """A place in a document.

    pointer: a JSON Pointer (RFC 6901), in documents that are JSON. line: counted from 1, in documents that are text.
    fragment: what stands there, at most FRAGMENT characters of it.
    """

    pointer: str | None = None
    line: int | None = None
    fragment: str | None = None


class InvalidDocument(Exception):
    """A document is not one of its format. The message says what is wrong, in a sentence without its full stop."""

    def __init__(self, text: str, spot: DocumentLocation | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.spot = spot


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason why data of one document cannot be read with another.

    rule: a short name in the format's own terms, in lower case with hyphens, such as `reader-field-missing-default`.
    text: the reason as a sentence. reader, writer: where it shows, in each of the two documents; None: nowhere.
    """

    rule: str
    text: str
    reader: DocumentLocation | None = None
    writer: DocumentLocation | None = None


#: Which of two documents came later.
NewerSide = Literal["reader", "writer"]


class SchemaFormat(Protocol):
    """One schema format: a module with these functions. All of them are pure, never fetch anything, and are safe with
    documents that nobody trusts: what does not end soon is ended from outside, but nothing may escape as another error.
    """

    def parse(self, document: bytes, name: str) -> Any:
        """The document in a form that `canonical_form` and `incompatibilities` take; held for later comparisons.

        name: the `format` value that it was declared with, for its version. Raises: InvalidDocument.
        """

    def canonical_form(self, parsed: Any) -> bytes:
        """The same bytes for documents that mean the same, in the format's own canonical form where it has one."""

    def incompatibilities(
        self, reader: Any, writer: Any, newer: NewerSide | None = None, /
    ) -> Sequence[Incompatibility]:
        """Why data written with one document cannot be read with another; empty where it can. At most TOLD of them.

        A Version is backward compatible when it reads what its ancestor wrote, forward when its ancestor reads what it
        writes (SC-36: producers emit declared fields only). newer: which of the two came later, for formats where that
        makes a difference.
        """
