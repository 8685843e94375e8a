"""What a Protobuf document says before it is compiled: its tokens, its language version and its imports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from domain.formats.contract import FRAGMENT, Spot, Violation

#: Bytes and tokens that a document may have. Comments, which most of a large document is, cost little, and tokens make
#: up to ten seconds of a million.
LARGEST: Final = 4 * 1024 * 1024
TOKENS: Final = 200_000
#: Brackets inside each other, and dots in one name. Together they keep the depth of a compiled option below 100, beyond
#: which the compiler ends the whole process. It allows 32 messages inside each other itself.
DEEPEST: Final = 48
LONGEST_NAME: Final = 32
#: Reserved and extension ranges in one document: the compiler compares each with each.
RANGES: Final = 5_000

_TOKEN: Final = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*[\s\S]*?\*/)"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<number>\.?\d(?:[eE][+-]|[\w.])*)"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<mark>[!#-&(-/:-@\[\]^`{-~])",
    re.ASCII,
)


class Token(NamedTuple):
    """A word, number, string or mark, and where it stands."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of one line of keywords and a string, such as an import: its tokens, the last of them `;`."""

    tokens: Sequence[Token]

    @property
    def value(self) -> str:
        """Its strings, joined as the language joins them."""
        return "".join(token.text[1:-1] for token in self.tokens if token.kind == "string")


@dataclass(frozen=True, slots=True)
class Source:
    """A document's text, read as far as its tokens and its statements about language and imports."""

    text: str
    tokens: tuple[Token, ...]
    language: Statement | None
    imports: tuple[Statement, ...]

    def spot(self, start: int) -> Spot:
        return spot(self.text, self.text.count("\n", 0, start) + 1)


def read(document: bytes) -> Source:
    """The document as text and tokens. O(bytes). Raises: Violation, when it is empty, too large or no such text."""
    if len(document) > LARGEST:
        raise Violation(f"the document has {len(document)} bytes; {LARGEST} are allowed")
    try:
        text = document.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = document.count(b"\n", 0, error.start) + 1
        raise Violation("the document is not UTF-8 text", Spot(line=line)) from None
    tokens = tuple(islice(_tokens(text), TOKENS + 1))
    if len(tokens) > TOKENS:
        raise Violation(f"the document has more than {TOKENS} words and marks")
    if not tokens:
        raise Violation("the document is empty")
    _bounded(text, tokens)
    statements = tuple(_statements(tokens))
    return Source(
        text,
        tokens,
        next((one for one in statements if one.tokens[0].text in ("syntax", "edition")), None),
        tuple(one for one in statements if one.tokens[0].text == "import"),
    )


def spot(text: str, line: int) -> Spot:
    """The line of a text, counted from 1, and what stands there."""
    return Spot(line=line, fragment=fragment(text.split("\n"), line))


def fragment(lines: Sequence[str], line: int | None) -> str | None:
    """What stands in one line, without the space around it."""
    return lines[line - 1].strip()[:FRAGMENT] if line and line <= len(lines) else None


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            flaw = "a string does not end in its line" if text[at] in "\"'" else f"unexpected character {text[at]!r}"
            raise Violation(flaw, spot(text, text.count("\n", 0, at) + 1))
        if match.lastgroup != "space":
            yield Token(str(match.lastgroup), match.group(), at)
        at = match.end()


def _bounded(text: str, tokens: Sequence[Token]) -> None:
    """Raises: Violation, where the compiler would need a stack or a time that nobody has."""
    depth = dots = ranges = parentheses = 0
    listing = False
    for token in tokens:
        mark = token.text
        if token.kind == "word":
            listing = listing or mark in ("reserved", "extensions")
            continue
        depth += (mark in ("{", "[", "(", "<")) - (mark in ("}", "]", ")", ">"))
        parentheses += (mark == "(") - (mark == ")")
        if mark not in (".", "(", ")"):
            dots = 0
        elif mark == "." and not parentheses:
            dots += 1
        listing = listing and mark not in (";", "{", "}")
        ranges += listing and mark == ","
        flaw = (
            f"brackets stand more than {DEEPEST} deep inside each other"
            if depth > DEEPEST
            else f"a name has more than {LONGEST_NAME} parts"
            if dots > LONGEST_NAME
            else f"more than {RANGES} ranges are reserved or kept for extensions"
            if ranges > RANGES
            else None
        )
        if flaw:
            raise Violation(flaw, spot(text, text.count("\n", 0, token.start) + 1))


def _statements(tokens: Sequence[Token]) -> Iterator[Statement]:
    """The statements about language and imports, at the document's top level."""
    depth, start = 0, 0
    for index, token in enumerate(tokens):
        if token.text == "{":
            depth += 1
        elif token.text == "}":
            depth -= 1
            start = index + 1
        elif token.text == ";":
            if depth == 0 and tokens[start].text in ("syntax", "edition", "import"):
                yield Statement(tokens[start : index + 1])
            start = index + 1
