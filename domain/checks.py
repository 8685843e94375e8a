"""Questions that a decision asks about documents, and their answers.

An answer depends on bytes only, so it holds for ever and can be worked out anywhere: a decision says what it has to
know, and whoever holds the write lock never works it out himself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from domain import formats
from domain.formats import Incompatibility, Violation
from domain.formats.contract import Newer


class Document(NamedTuple):
    """Is this a document of its format? format: as declared, in lower case. sha256: None for the empty document."""

    format: str
    sha256: str | None


class Reading(NamedTuple):
    """Can what is written with one document be read with the other? newer: which of them came later."""

    reader: Document
    writer: Document
    newer: Newer = "reader"


Question = Document | Reading
#: What stands in the way; nothing where the answer is yes.
Verdict = tuple[Incompatibility, ...]
Verdicts = Mapping[Question, Verdict]
#: The form of a document that its format compares. Raises: Violation.
Parse = Callable[[Document], Any]

#: The `rule` of what is not a document of its format at all.
INVALID: Final = "format"
_EMPTY: Final = (Incompatibility(INVALID, "the document is empty"),)
#: What stands in the way of an answer; another time there may be one.
LATE: Final = Incompatibility(INVALID, "checking it takes longer than is given to one document")
HEAVY: Final = Incompatibility(INVALID, "checking it takes more memory than is given to one document")
CRASHED: Final = Incompatibility(INVALID, "it cannot be checked: what reads its format does not survive it")


class Unanswered(Exception):
    """A decision cannot be taken before these questions are answered.

    documents: bytes by SHA-256 of those that nothing has stored yet.
    """

    def __init__(self, questions: frozenset[Question], documents: Mapping[str, bytes]) -> None:
        super().__init__(f"{len(questions)} questions about documents")
        self.questions = questions
        self.documents = documents


def judge(question: Question, parse: Parse) -> Verdict:
    """The answer to a question; whatever goes wrong inside a format is one as well. Cost: that of the format."""
    try:
        if isinstance(question, Document):
            if question.sha256 is None:
                return _EMPTY
            parse(question)
            return ()
        return _read(question, parse)
    except Violation as violation:
        return (Incompatibility(INVALID, violation.text, violation.spot),)
    except (MemoryError, SystemError):  # the second is what C code says that ran out of memory without noticing
        return (HEAVY,)
    except RecursionError:
        return (Incompatibility(INVALID, "it is nested too deeply"),)
    except Exception as error:  # a defect of a format or of its library is no reason to take a document unchecked
        return (Incompatibility(INVALID, f"it cannot be checked: {type(error).__name__}: {error}"[:500]),)


def parsed(document: Document, content: bytes) -> Any:
    """What a format makes of a document's bytes. Raises: Violation; KeyError for a format that is not known."""
    room = formats.find(document.format)
    if room is None:
        raise KeyError(document.format)
    return room.load().parse(_plain(content) if room.text else content, document.format)


def _read(question: Reading, parse: Parse) -> Verdict:
    room = formats.find(question.reader.format)
    assert room is not None, "nobody asks about formats that are not known"
    if formats.find(question.writer.format) is not room:
        text = f'documents of "{question.reader.format}" and of "{question.writer.format}" cannot be compared'
        return (Incompatibility(INVALID, text),)
    if question.reader.sha256 is None or question.writer.sha256 is None:
        return _EMPTY
    return tuple(room.load().unreadable(parse(question.reader), parse(question.writer), question.newer))


def _plain(content: bytes) -> bytes:
    """A text document that came as a JSON string (inlined in a body of type application/json)."""
    if content.lstrip()[:1] != b'"':
        return content
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return content
    return value.encode(errors="surrogatepass") if isinstance(value, str) else content
