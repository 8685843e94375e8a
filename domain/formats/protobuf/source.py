"""The source of a Protobuf document before compilation: its tokens, language version and imports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from annals.domain.formats.contract import MAX_FRAGMENT, DocumentLocation, InvalidDocument

#: Maximum bytes and tokens of a document. Comments, which make up most of a large document, cost little; a million
#: tokens take up to ten seconds.
MAX_BYTES: Final = 4 * 1024 * 1024
MAX_TOKENS: Final = 200_000
#: Maximum nesting of brackets, and parts of a dotted name. Together they keep the depth of a compiled option below 100;
#: beyond that the compiler crashes the process. The compiler itself limits nested messages to 32.
MAX_NESTING: Final = 48
MAX_NAME_PARTS: Final = 32
#: Maximum reserved and extension ranges of a document, because the compiler compares all pairs.
MAX_RANGES: Final = 5_000

_TOKEN: Final = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*[\s\S]*?\*/)"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<number>\.?\d(?:[eE][+-]|[\w.])*)"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<mark>[!#-&(-/:-@\[\]^`{-~])",
    re.ASCII,
)


class ProtoToken(NamedTuple):
    """A word, number, string or mark, with its offset."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class ProtoStatement:
    """A statement of keywords and a string, such as an import. tokens: the last one is `;`."""

    tokens: Sequence[ProtoToken]

    @property
    def value(self) -> str:
        """Its strings, concatenated as in the language."""
        return "".join(token.text[1:-1] for token in self.tokens if token.kind == "string")


@dataclass(frozen=True, slots=True)
class ProtoSource:
    """A document's text with its tokens, and its statements about language and imports."""

    text: str
    tokens: tuple[ProtoToken, ...]
    language: ProtoStatement | None
    imports: tuple[ProtoStatement, ...]

    def location(self, start: int) -> DocumentLocation:
        return offset_location(self.text, start)


def read_source(document: bytes) -> ProtoSource:
    """The document as text and tokens. O(bytes).

    Raises: InvalidDocument where it is empty, too large, not UTF-8, or has invalid tokens.
    """
    if len(document) > MAX_BYTES:
        raise InvalidDocument(f"the document has {len(document)} bytes; {MAX_BYTES} are allowed")
    try:
        text = document.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = document.count(b"\n", 0, error.start) + 1
        raise InvalidDocument("the document is not UTF-8 text", DocumentLocation(line=line)) from None
    tokens = tuple(islice(_tokenize(text), MAX_TOKENS + 1))
    if len(tokens) > MAX_TOKENS:
        raise InvalidDocument(f"the document has more than {MAX_TOKENS} words and marks")
    if not tokens:
        raise InvalidDocument("the document is empty")
    _check_limits(text, tokens)
    statements = tuple(_find_statements(tokens))
    return ProtoSource(
        text,
        tokens,
        next((statement for statement in statements if statement.tokens[0].text in ("syntax", "edition")), None),
        tuple(statement for statement in statements if statement.tokens[0].text == "import"),
    )


def offset_location(text: str, start: int) -> DocumentLocation:
    """The location of the line that contains an offset."""
    return line_location(text, text.count("\n", 0, start) + 1)


def line_location(text: str, line: int) -> DocumentLocation:
    """The location of a line, counted from 1, with its text."""
    return DocumentLocation(line=line, fragment=line_fragment(text.split("\n"), line))


def line_fragment(lines: Sequence[str], line: int | None) -> str | None:
    """The text of one line, stripped; None where there is no such line."""
    return lines[line - 1].strip()[:MAX_FRAGMENT] if line and line <= len(lines) else None


def _tokenize(text: str) -> Iterator[ProtoToken]:
    offset = 0
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None:
            problem = (
                "a string does not end in its line"
                if text[offset] in "\"'"
                else f"unexpected character {text[offset]!r}"
            )
            raise InvalidDocument(problem, offset_location(text, offset))
        if match.lastgroup != "space":
            yield ProtoToken(str(match.lastgroup), match.group(), offset)
        offset = match.end()


def _check_limits(text: str, tokens: Sequence[ProtoToken]) -> None:
    """Raises: InvalidDocument where the compiler would overflow its stack or take too long."""
    depth = dots = ranges = parentheses = 0
    is_in_range_list = False
    for token in tokens:
        text_of_token = token.text
        if token.kind == "word":
            is_in_range_list = is_in_range_list or text_of_token in ("reserved", "extensions")
            continue
        depth += (text_of_token in ("{", "[", "(", "<")) - (text_of_token in ("}", "]", ")", ">"))
        parentheses += (text_of_token == "(") - (text_of_token == ")")
        if text_of_token not in (".", "(", ")"):
            dots = 0
        elif text_of_token == "." and not parentheses:
            dots += 1
        is_in_range_list = is_in_range_list and text_of_token not in (";", "{", "}")
        ranges += is_in_range_list and text_of_token == ","
        problem = (
            f"brackets nest more than {MAX_NESTING} deep"
            if depth > MAX_NESTING
            else f"a name has more than {MAX_NAME_PARTS} parts"
            if dots > MAX_NAME_PARTS
            else f"more than {MAX_RANGES} ranges are reserved or declared as extensions"
            if ranges > MAX_RANGES
            else None
        )
        if problem:
            raise InvalidDocument(problem, offset_location(text, token.start))


def _find_statements(tokens: Sequence[ProtoToken]) -> Iterator[ProtoStatement]:
    """The statements about language and imports at the top level of the document."""
    depth, start = 0, 0
    for index, token in enumerate(tokens):
        if token.text == "{":
            depth += 1
        elif token.text == "}":
            depth -= 1
            start = index + 1
        elif token.text == ";":
            if depth == 0 and tokens[start].text in ("syntax", "edition", "import"):
                yield ProtoStatement(tokens[start : index + 1])
            start = index + 1
