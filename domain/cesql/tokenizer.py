"""The tokens of an expression, and what is said of one that is none.

Spec: cesql 1.0.0, section 2.2; the strings as CESQLLexer.g4 has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

#: Bytes of UTF-8 that an expression may have (SUB-423).
MAX_BYTES: Final = 8192
#: Parentheses that may be open at once, those of functions and sets among them (SUB-423).
MAX_PARENTHESES: Final = 100

KEYWORDS: Final = frozenset(("and", "or", "xor", "not", "like", "exists", "in", "true", "false"))


class ParseError(ValueError):
    """The text is no expression.

    reason: what is wrong, without the place. position: characters before the place; line and column count from 1.
    """

    def __init__(self, reason: str, text: str, position: int) -> None:
        self.reason = reason
        self.position = position
        self.line = text.count("\n", 0, position) + 1
        self.column = position - text.rfind("\n", 0, position)
        super().__init__(f"line {self.line}, column {self.column}: {reason}")


class TokenKind(Enum):
    """What a token is; the values are how people call it."""

    KEYWORD = "keyword"
    NAME = "name"
    NUMBER = "number"
    STRING = "string"
    SIGN = "sign"
    END = "the end"


class CesqlToken(NamedTuple):
    """text: keywords in lower case, names as written, strings without quotes and escapes. end: where it ends."""

    kind: TokenKind
    text: str
    start: int
    end: int


#: One token and the white space before it. Repetitions are possessive, so nothing is tried twice.
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
    """The tokens of an expression, the last of them its end. Raises: ParseError."""
    at = 0
    while True:
        found = _TOKEN.match(text, at)
        if found is None:
            raise _unexpected_character(text, at)
        token = _token(found)
        yield token
        if token.kind is TokenKind.END:
            return
        at = found.end()


def _token(found: re.Match[str]) -> CesqlToken:
    group = found.lastgroup or "end"
    place = found.span(group)
    text = found[group]
    match group:
        case "word" if text.lower() in KEYWORDS:
            return CesqlToken(TokenKind.KEYWORD, text.lower(), *place)
        case "word":
            return CesqlToken(TokenKind.NUMBER if text.isdigit() else TokenKind.NAME, text, *place)
        case "single":
            return CesqlToken(
                TokenKind.STRING, _SINGLE.sub(lambda each: f"\\{each[1]}" if each[1] else "'", text[1:-1]), *place
            )
        case "double":
            return CesqlToken(
                TokenKind.STRING, _DOUBLE.sub(lambda each: f"\\{each[1]}" if each[1] else '"', text[1:-1]), *place
            )
        case "sign":
            return CesqlToken(TokenKind.SIGN, text, *place)
    return CesqlToken(TokenKind.END, "", *place)


def _unexpected_character(text: str, at: int) -> ParseError:
    while text[at] in _SPACE:
        at += 1
    if text[at] in "'\"":
        return ParseError("the string is not closed", text, at)
    return ParseError(f"{text[at]!r} has no meaning here", text, at)
