"""Splits an expression into tokens, and reports characters that form none.

Spec: cesql 1.0.0, section 2.2; strings follow CESQLLexer.g4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

#: Maximum size of an expression, in bytes of UTF-8 (SUB-423).
MAX_BYTES: Final = 8192
#: Maximum number of open parentheses, including those of functions and sets (SUB-423).
MAX_PARENTHESES: Final = 100

KEYWORDS: Final = frozenset(("and", "or", "xor", "not", "like", "exists", "in", "true", "false"))


class ParseError(ValueError):
    """A text is not a valid expression.

    reason: what is wrong, without the position. position: characters before the error; line and column count from 1.
    """

    def __init__(self, reason: str, text: str, position: int) -> None:
        self.reason = reason
        self.position = position
        self.line = text.count("\n", 0, position) + 1
        self.column = position - text.rfind("\n", 0, position)
        super().__init__(f"line {self.line}, column {self.column}: {reason}")


class TokenKind(Enum):
    """The kind of a token; error messages show the values."""

    KEYWORD = "keyword"
    NAME = "name"
    NUMBER = "number"
    STRING = "string"
    SIGN = "sign"
    END = "the end"


class CesqlToken(NamedTuple):
    """A token. text: keywords in lower case, names as written, strings without quotes and escapes. end: end offset."""

    kind: TokenKind
    text: str
    start: int
    end: int


#: One token with preceding white space. The quantifiers are possessive, so the match never backtracks.
_TOKEN: Final = re.compile(
    r"""[ \t\r\n]*+(?:
        (?P<word>[A-Za-z0-9_]++)
        |(?P<single>'(?:\\.|''|[^'\\])*+')
        |(?P<double>"(?:\\.|""|[^"\\])*+")
        |(?P<sign><=|>=|<>|!=|[()=<>+\-*/%,])
        |(?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_SPACE: Final = " \t\r\n"
_SINGLE: Final = re.compile(r"\\(?:'|(.))|''", re.DOTALL)
_DOUBLE: Final = re.compile(r'\\(?:"|(.))|""', re.DOTALL)


def tokenize(text: str) -> Iterator[CesqlToken]:
    """The tokens of an expression; the last one is END. Raises: ParseError."""
    index = 0
    while True:
        match = _TOKEN.match(text, index)
        if match is None:
            raise _unexpected_character(text, index)
        token = _token(match)
        yield token
        if token.kind is TokenKind.END:
            return
        index = match.end()


def _token(match: re.Match[str]) -> CesqlToken:
    group = match.lastgroup or "end"
    span = match.span(group)
    text = match[group]
    match group:
        case "word" if text.lower() in KEYWORDS:
            return CesqlToken(TokenKind.KEYWORD, text.lower(), *span)
        case "word":
            return CesqlToken(TokenKind.NUMBER if text.isdigit() else TokenKind.NAME, text, *span)
        case "single":
            return CesqlToken(
                TokenKind.STRING, _SINGLE.sub(lambda each: f"\\{each[1]}" if each[1] else "'", text[1:-1]), *span
            )
        case "double":
            return CesqlToken(
                TokenKind.STRING, _DOUBLE.sub(lambda each: f"\\{each[1]}" if each[1] else '"', text[1:-1]), *span
            )
        case "sign":
            return CesqlToken(TokenKind.SIGN, text, *span)
    return CesqlToken(TokenKind.END, "", *span)


def _unexpected_character(text: str, index: int) -> ParseError:
    while text[index] in _SPACE:
        index += 1
    if text[index] in "'\"":
        return ParseError("the string is not closed", text, index)
    return ParseError(f"{text[index]!r} has no meaning here", text, index)
