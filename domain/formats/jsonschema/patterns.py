"""Translates regular expressions of ECMA-262 to the one syntax variant that the library supports.

ECMA-262 parses an expression with its `u` flag or without. Without it, unmatched brackets, braces that are no
quantifiers and unknown escaped letters are literals; with it they are errors. JSON Schema does not choose a variant,
and published schemas use both.
Spec: ECMA-262, "Patterns", "Additional ECMAScript Features for Web Browsers: Regular Expressions Patterns"; JSON Schema
draft-07 validation, 4.3; 2020-12 core, 6.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_TOKEN: Final = re.compile(
    r"""
    (?P<known> \\(?: c[A-Za-z] | x[\dA-Fa-f]{2} | u[\dA-Fa-f]{4} | u\{[\dA-Fa-f]+\} | [pP]\{[^}]*\} | k<[^>]*>
                   | [DSWdswBbfnrtv] | 0(?!\d) | [^A-Za-z0-9] ))
    | \\(?P<number> \d+ )
    | \\(?P<letter> [A-Za-z] )
    | (?P<times> \{\d+(?:,\d*)?\} )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_OCTAL: Final = re.compile(r"[0-3]?[0-7]{1,2}")
_GROUP: Final = re.compile(r"\((?!\?)|\(\?<(?![=!])")
#: Escapes that match several characters, so they cannot be an end of a range.
_CLASS_ESCAPES: Final = ("\\d", "\\D", "\\s", "\\S", "\\w", "\\W", "\\p", "\\P")


def to_unicode_pattern(pattern: str) -> str:
    """An expression with the `u` flag that means the same as this one without it. Cost: linear.

    An expression that is invalid in both variants stays invalid. Escapes that exist only with the flag, such as
    `\\p{L}`, keep their meaning.
    """
    tokens = list(_TOKEN.finditer(pattern))
    groups = _count_groups(pattern, tokens)
    return "".join(_rewrite_tokens(tokens, groups))


def _rewrite_tokens(tokens: list[re.Match[str]], groups: int) -> Iterator[str]:
    is_in_class, previous = False, ""
    for index, token in enumerate(tokens):
        text = token[0]
        if token["number"]:
            text = _numbered_escape(token["number"], 0 if is_in_class else groups)
        elif token["letter"]:
            text = "\\\\c" if token["letter"] == "c" else token["letter"]
        elif is_in_class and text == "-":
            following = tokens[index + 1][0] if index + 1 < len(tokens) else ""
            text = (
                "\\-"
                if previous.startswith(_CLASS_ESCAPES) or (previous and following.startswith(_CLASS_ESCAPES))
                else text
            )
        elif text == ("[" if is_in_class else "]") or (text in ("{", "}") and not is_in_class):
            text = "\\" + text
        elif text in ("[", "]"):
            is_in_class, previous = text == "[", ""
            yield text
            continue
        previous = text
        yield text


def _numbered_escape(digits: str, groups: int) -> str:
    """An escaped number: an existing group, else a character by its octal code, else the digits themselves."""
    if digits[0] != "0" and int(digits[:9]) <= groups:
        return "\\" + digits
    octal = _OCTAL.match(digits)
    return f"\\x{int(octal[0], 8):02x}{digits[octal.end() :]}" if octal else digits


def _count_groups(pattern: str, tokens: list[re.Match[str]]) -> int:
    """The number of groups of an expression that a back reference can name."""
    is_in_class, count = False, 0
    for token in tokens:
        if token[0] in ("[", "]"):
            is_in_class = token[0] == "["
        elif token[0] == "(" and not is_in_class:
            count += _GROUP.match(pattern, token.start()) is not None
    return count
