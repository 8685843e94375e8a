"""Placeholders: URI templates of level 1, in which `{name}` stands for one value wherever it appears.

The registry keeps templates as they are; `expand` and `match` are for who uses them.
Spec: RFC 6570, section 1.2; message 1.0-rc4, "Metadata Envelopes". Rules CM-12, CM-13, MS-50.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote

from domain.findings.finding import Finding, Subject
from domain.findings.values import strings

#: How many attempts a match takes at most: names that come back make it a search.
ATTEMPTS: Final = 20_000

_BRACED: Final = re.compile(r"\{([^{}]*)\}")
_SYMBOL: Final = re.compile(r"[A-Za-z0-9_]+\Z")
#: What a template of a higher level has in its braces. Other text in braces, such as JSON, is no template at all.
_EXPRESSION: Final = re.compile(r"(?:[+#./;?&=,!@|]?[A-Za-z_][A-Za-z0-9_.%:*\-]*(?:,[A-Za-z_][A-Za-z0-9_.%:*\-]*)*)\Z")
_HOLDERS: Final = ("envelopemetadata", "protocoloptions")


class NotOneValue(ValueError):
    """A placeholder would need two values, or has none."""


class TooManyWays(ValueError):
    """A template can be matched in more ways than anybody will try."""


class _Part(NamedTuple):
    """Literal text, or the name of a placeholder."""

    literal: str
    name: str | None = None


def placeholders_are_plain(subject: Subject) -> Iterator[Finding]:
    """CM-12, EP-39: wherever a string may have placeholders, they are of level 1."""
    for holder in _HOLDERS:
        if holder in subject.attributes:
            for path, text in strings(subject.attributes[holder], (holder,)):
                for each in foreign(text):
                    says = f'"{{{each}}}" is no placeholder: that is a name of letters, digits and _ in braces'
                    yield subject.must("CM-12", says, *path)


def foreign(template: str) -> list[str]:
    """What a template has in braces that belongs to higher levels."""
    return [each for each in _BRACED.findall(template) if not _SYMBOL.match(each) and _EXPRESSION.match(each)]


def blanked(template: str) -> str:
    """The text with a letter for everything in braces, for checks that any value would pass or fail alike."""
    return _BRACED.sub("x", template)


def is_placeholder(text: str) -> bool:
    """Whether a text is one placeholder and nothing else."""
    found = _BRACED.fullmatch(text)
    return found is not None and bool(_SYMBOL.match(found[1]))


def expand(template: str, values: Mapping[str, str]) -> str:
    """The template with its placeholders filled in, as RFC 6570 does it. Raises: NotOneValue for one without a value.

    Values for several templates come from `joined`, so that a name means the same in all of them.
    """
    return "".join(
        part.literal if part.name is None else quote(_value(part.name, values), "") for part in _parts(template)
    )


def joined(*bindings: Mapping[str, str]) -> dict[str, str]:
    """What the placeholders of several templates stand for. Raises: NotOneValue where two uses need two values."""
    values: dict[str, str] = {}
    for name, value in (pair for binding in bindings for pair in binding.items()):
        if values.setdefault(name, value) != value:
            raise NotOneValue(f'the placeholder "{name}" would need two values')
    return values


def match(template: str, text: str, known: Mapping[str, str] | None = None) -> dict[str, str] | None:
    """The values with which a template gives a text, None where none do; each is a run of characters without `/`.

    known: what placeholders stand for already. Raises: TooManyWays.
    """
    parts = _parts(template)
    ways = [(0, 0, dict(known or {}))]
    for _ in range(ATTEMPTS):
        if not ways:
            return None
        at, start, bound = ways.pop()
        if at == len(parts):
            if start == len(text):
                return bound
        elif (given := _given(parts[at], bound)) is not None:
            if text.startswith(given, start):
                ways.append((at + 1, start + len(given), bound))
        else:
            name = str(parts[at].name)
            ends = _ends(parts, at, text, start)
            if len(ways) + len(ends) > ATTEMPTS:
                break
            ways += [(at + 1, end, {**bound, name: text[start:end]}) for end in ends]
    raise TooManyWays("the template has too many placeholders for this text")


def _ends(parts: list[_Part], at: int, text: str, start: int) -> list[int]:
    """Where the value of a placeholder may end, the nearest place last."""
    slash = text.find("/", start)
    limit = len(text) if slash < 0 else slash
    if at + 1 == len(parts):
        return [limit] if limit == len(text) and limit > start else []
    following = parts[at + 1].literal
    return [end for end in range(limit, start, -1) if text.startswith(following, end)]


def _given(part: _Part, bound: Mapping[str, str]) -> str | None:
    return part.literal if part.name is None else bound.get(part.name)


def _value(name: str, values: Mapping[str, str]) -> str:
    if name not in values:
        raise NotOneValue(f'the placeholder "{name}" has no value')
    return values[name]


def _parts(template: str) -> list[_Part]:
    parts, end = list[_Part](), 0
    for found in _BRACED.finditer(template):
        if _SYMBOL.match(found[1]):
            parts += [*([_Part(template[end : found.start()])] if found.start() > end else []), _Part("", found[1])]
            end = found.end()
    return [*parts, *([_Part(template[end:])] if end < len(template) else [])]
