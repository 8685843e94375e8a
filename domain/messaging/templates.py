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
_BRACED: Final = re.compile(r"\{[^{}]*\}|[{}]")
_OPERATORS: Final = "+#./;?&"
_RESERVED: Final = "=,!@|"


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
    open: list[tuple[list[str], str]] = []
    length = count = 0
    for template, text in pairs:
        shapes, runs = template.split("/"), text.split("/")
        length, count = length + len(text), count + template.count("{")
        if len(shapes) != len(runs) or count > MAX_PLACEHOLDERS:
            return None
        for shape, run in zip(shapes, runs, strict=True):
            parts = _PLACEHOLDER.split(shape)
            if len(parts) > 1:
                open.append((parts, run))
            elif shape != run:
                return None
    try:
        tries = max(2 * MAX_PLACEHOLDERS, min(MAX_TRIES, _MAX_CHARACTERS // (length + 1)))
        return _fitted(open, {}, iter(range(tries)))
    except _TriesExhausted:
        return None


def template_problems(template: str) -> tuple[str, ...]:
    """Why a text is not a level 1 template; empty if it is one, and for text without braces (CM-12)."""
    return tuple(
        f"{found[0]} {why}" for found in _BRACED.finditer(template) if (why := _problem(found[0], found[0][1:-1]))
    )


def _problem(braced: str, inside: str) -> str | None:
    if len(braced) == 1:
        return "has no matching brace"
    if _PLACEHOLDER.fullmatch(braced):
        return None
    if not inside:
        return "names nothing"
    if inside[0] in _OPERATORS or inside[0] in _RESERVED:
        return f"has the operator {inside[0]}"
    if "," in inside:
        return "is a list of names"
    if inside[-1] == "*" or re.fullmatch(r"[^:]*:[0-9]+", inside):
        return "has a modifier"
    return "is not a name of letters, digits and underscores"


def _fitted(open: list[tuple[list[str], str]], bound: Bindings, tries: Iterator[int]) -> Bindings | None:
    """The bindings with which all segments fit. Segments with the fewest unknown names come first: they decide most."""
    if not open:
        return bound
    next = min(range(len(open)), key=lambda index: sum(name not in bound for name in open[index][0][1::2]))
    parts, run = open[next]
    rest = open[:next] + open[next + 1 :]
    for way in _ways(parts, run, bound, tries):
        if (found := _fitted(rest, way, tries)) is not None:
            return found
    return None


def _ways(parts: list[str], run: str, bound: Bindings, tries: Iterator[int]) -> Iterator[Bindings]:
    """Every possible match of one segment, shortest first.

    parts: a literal, then name and literal in turn. For names that are used once, the first match of a literal leaves
    the longest rest to the others, so no other match has to be tried.
    """
    literal, *rest = parts
    if not run.startswith(literal):
        return
    run = run[len(literal) :]
    if not rest:
        if not run:
            yield bound
        return
    name, *rest = rest
    if name in bound:
        yield from _ways([bound[name] + rest[0], *rest[1:]], run, bound, tries)
        return
    for end in _ends(rest, run):
        if next(tries, None) is None:
            raise _TriesExhausted
        yield from _ways(rest, run[end:], {**bound, name: run[:end]}, tries)


def _ends(rest: list[str], run: str) -> Iterator[int]:
    """The possible ends of a placeholder, before the next literal. rest: begins with that literal."""
    if len(rest) == 1:
        end = len(run) - len(rest[0])
        if end > 0 and run.endswith(rest[0]):
            yield end
        return
    end = run.find(rest[0], 1)
    while end >= 0:
        yield end
        end = run.find(rest[0], end + 1)
