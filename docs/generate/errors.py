"""docs/reference/errors.md: each error type with its status, cause and cure. An anchor is the name of a type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Final

from annals.api.openapi.problem_causes import problem_causes
from annals.api.openapi.problems import ALL_PROBLEM_TYPES
from annals.domain.compat import errors as compat_errors
from annals.domain.errors.http_errors import HttpProblem
from annals.domain.errors.problems import HTTP, Problem
from docs.generate.markdown import code, escaped, page, table

_INTRODUCTION: Final = """\
A refused request is answered with a JSON object. Its `type` is a URL that ends with `#` and the name of the error type.
For types of xRegistry it leads to the specification; for the others to `/-/docs` of the registry, which explains all
types as this page does. Each answer also has a header `Link` with the relation `help`, which leads to `/-/docs` for
every type. `title` says what is wrong and where, `subject` names the entity or the request, and `args` has the parts of
the title for programs. Below `/-/`, `/subscriptions` and `/compat`, the answer is `application/problem+json` with a
`status` (RFC 9457)."""
_HEADINGS: Final[tuple[tuple[str, Callable[[type[Problem]], bool]], ...]] = (
    ("xRegistry", lambda kind: not issubclass(kind, HttpProblem) and kind.document != HTTP),
    ("xRegistry over HTTP", lambda kind: kind.document == HTTP),
    ("Types of this server", lambda kind: issubclass(kind, HttpProblem) and kind.__module__ != compat_errors.__name__),
    ("The legacy APIs", lambda kind: kind.__module__ == compat_errors.__name__),
)


def text() -> str:
    """The whole page."""
    kinds = sorted(ALL_PROBLEM_TYPES, key=lambda kind: kind.name)
    return page("Errors", _INTRODUCTION, _by_status(kinds), *_sections(kinds))


def _by_status(kinds: Iterable[type[Problem]]) -> str:
    rows = groupby(sorted(kinds, key=lambda kind: kind.status), key=lambda kind: kind.status)
    return table(
        ("Status", "Types"),
        ((str(status), ", ".join(f"[{kind.name}](#{kind.name})" for kind in members)) for status, members in rows),
    )


def _sections(kinds: Iterable[type[Problem]]) -> Iterator[str]:
    for heading, belongs in _HEADINGS:
        yield f"## {heading}"
        yield from (_entry(kind) for kind in kinds if belongs(kind))


def _entry(kind: type[Problem]) -> str:
    explanation = problem_causes()[kind.name]
    specification = "" if issubclass(kind, HttpProblem) else f", [specification]({kind.uri()})"
    return "\n".join(
        (
            f"### {kind.name}\n",
            f"Status {kind.status}{specification}. Title: {code(kind.title)}\n",
            f"- **Cause**: {escaped(explanation.cause)}",
            f"- **Cure**: {escaped(explanation.cures)}",
        )
    )
