"""Placeholders in attributes: level 1 templates, in which `{name}` has the same value wherever it is used.

Braces in another form, such as `{+a}`, are literal text to all functions except `template_problems`, which reports
them. Templates and texts may come from untrusted clients: the time of each function is bounded by the length of its
arguments.
Spec: RFC 6570, sections 2.3, 2.4.1 and 3.2.2; rules CM-12, CM-13, MS-50.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

Bindings = dict[str, str]

#: The maximum number of placeholders in a template that can match.
MAX_PLACEHOLDERS: Final = 64
#: The maximum number of attempts to divide a text among placeholders; fewer for a text longer than 1,000 characters.
#: Only names that are used twice ever need more than one attempt per placeholder.
MAX_TRIES: Final = 10_000
_MAX_CHARACTERS: Final = MAX_TRIES * 1_000

_PLACEHOLDER: Final = re.compile(r"\{([A-Za-z0-9_]+)\}")
_BRACES: Final = re.compile(r"\{[^{}]*\}|[{}]")
_OPERATORS: Final = "+#./;?&"
_RESERVED_CHARACTERS: Final = "=,!@|"


class _TriesExhausted(Exception):
    """All attempts are used up."""


def placeholder_names(template: str) -> tuple[str, ...]:
    """The names of a template's placeholders, each once, in their order; names are case-sensitive."""
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(template)))


def match_templates(pairs: Iterable[tuple[str, str]]) -> Bindings | None:
    """The value of each placeholder in texts that fit their templates, as the texts have it; None if one does not fit.

    A value has one or more characters, none of them `/` (MS-50), and is the same wherever the placeholder is used
    (CM-13). If several matches are possible, the earlier placeholder has the shorter value.
    """
    open_segments: list[tuple[list[str], str]] = []
    length = count = 0
    for template, text in pairs:
        template_segments, text_segments = template.split("/"), text.split("/")
        length, count = length + len(text), count + template.count("{")
        if len(template_segments) != len(text_segments) or count > MAX_PLACEHOLDERS:
            return None
        for template_segment, text_segment in zip(template_segments, text_segments, strict=True):
            parts = _PLACEHOLDER.split(template_segment)
            if len(parts) > 1:
                open_segments.append((parts, text_segment))
            elif template_segment != text_segment:
                return None
    try:
        attempts = max(2 * MAX_PLACEHOLDERS, min(MAX_TRIES, _MAX_CHARACTERS // (length + 1)))
        return _match_segments(open_segments, {}, iter(range(attempts)))
    except _TriesExhausted:
        return None


def template_problems(template: str) -> tuple[str, ...]:
    """Why a text is not a level 1 template; empty if it is one, and for text without braces (CM-12)."""
    return tuple(
        f"{match[0]} {reason}"
        for match in _BRACES.finditer(template)
        if (reason := _placeholder_problem(match[0], match[0][1:-1]))
    )


def _placeholder_problem(braced: str, expression: str) -> str | None:
    if len(braced) == 1:
        return "has no matching brace"
    if _PLACEHOLDER.fullmatch(braced):
        return None
    if not expression:
        return "names nothing"
    if expression[0] in _OPERATORS or expression[0] in _RESERVED_CHARACTERS:
        return f"has the operator {expression[0]}"
    if "," in expression:
        return "is a list of names"
    if expression[-1] == "*" or re.fullmatch(r"[^:]*:[0-9]+", expression):
        return "has a modifier"
    return "is not a name of letters, digits and underscores"


def _match_segments(
    open_segments: list[tuple[list[str], str]], bindings: Bindings, attempts: Iterator[int]
) -> Bindings | None:
    """The bindings with which all segments fit. Segments with the fewest unknown names come first: they decide most."""
    if not open_segments:
        return bindings
    next_index = min(
        range(len(open_segments)), key=lambda index: sum(name not in bindings for name in open_segments[index][0][1::2])
    )
    parts, text_segment = open_segments[next_index]
    remaining = open_segments[:next_index] + open_segments[next_index + 1 :]
    for candidate in _segment_matches(parts, text_segment, bindings, attempts):
        if (fitted := _match_segments(remaining, candidate, attempts)) is not None:
            return fitted
    return None


def _segment_matches(
    parts: list[str], text_segment: str, bindings: Bindings, attempts: Iterator[int]
) -> Iterator[Bindings]:
    """Every possible match of one segment, shortest first.

    parts: a literal, then name and literal in turn. For names that are used once, the first match of a literal leaves
    the longest rest to the others, so no other match has to be tried.
    """
    literal, *remaining = parts
    if not text_segment.startswith(literal):
        return
    text_segment = text_segment[len(literal) :]
    if not remaining:
        if not text_segment:
            yield bindings
        return
    name, *remaining = remaining
    if name in bindings:
        yield from _segment_matches([bindings[name] + remaining[0], *remaining[1:]], text_segment, bindings, attempts)
        return
    for end in _placeholder_ends(remaining, text_segment):
        if next(attempts, None) is None:
            raise _TriesExhausted
        yield from _segment_matches(remaining, text_segment[end:], {**bindings, name: text_segment[:end]}, attempts)


def _placeholder_ends(remaining: list[str], text_segment: str) -> Iterator[int]:
    """The possible ends of a placeholder, before the next literal. remaining: begins with that literal."""
    if len(remaining) == 1:
        end = len(text_segment) - len(remaining[0])
        if end > 0 and text_segment.endswith(remaining[0]):
            yield end
        return
    end = text_segment.find(remaining[0], 1)
    while end >= 0:
        yield end
        end = text_segment.find(remaining[0], end + 1)
