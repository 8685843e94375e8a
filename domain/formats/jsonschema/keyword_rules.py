"""Comparison of keywords for kinds, numbers, strings and formats; `arrays.py` and `objects.py` have the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Final

from domain.formats.contract import Incompatibility
from domain.formats.jsonschema.arrays import array_incompatibilities
from domain.formats.jsonschema.comparison import JsonSchemaComparison
from domain.formats.jsonschema.node import SchemaNode
from domain.formats.jsonschema.objects import object_incompatibilities
from domain.formats.jsonschema.values import KINDS, NUMBERS, divides
from domain.formats.jsonschema.writer_cases import WriterCase

_TYPES: Final = ("null", "boolean", "object", "array", "string")


def keyword_incompatibilities(
    comparison: JsonSchemaComparison, reader: SchemaNode, case: WriterCase
) -> Iterator[Incompatibility]:
    """Why the reader's own keywords, without references and combinations, refuse values of a case."""
    yield from _kinds(reader, case)
    if reader.allowed is not None:
        text = "The reader lists the values that it accepts, and the writer does not."
        yield Incompatibility("reader-enum", text, reader.location("enum", "const"), case.location("enum", "type"))
    for keyword, value in sorted(reader.others):
        if not any((keyword, value) in node.others for node in case.nodes):
            yield _difference(
                keyword, f"The reader requires {keyword}, the writer does not require the same.", reader, case
            )
    if case.kinds & NUMBERS:
        yield from _numbers(reader, case)
    if "string" in case.kinds:
        yield from _strings(reader, case)
    if "array" in case.kinds:
        yield from array_incompatibilities(comparison, reader, case)
    if "object" in case.kinds:
        yield from object_incompatibilities(comparison, reader, case)


def _kinds(reader: SchemaNode, case: WriterCase) -> Iterator[Incompatibility]:
    missing = case.kinds - (KINDS if reader.kinds is None else reader.kinds)
    if missing == {"fraction"} and _is_integer_only(case):
        return
    if missing:
        accepted = _kind_names(reader.kinds or KINDS)
        text = f"The writer may emit {_kind_names(case.kinds)}, the reader accepts {accepted} only."
        yield Incompatibility("reader-type", text, reader.location("type"), case.location("type"))


def _is_integer_only(case: WriterCase) -> bool:
    """Whether all numbers of a case are integers, even those written with a fraction."""
    return any(divides(Decimal(1), each) for node in case.nodes for each in node.multiples)


def _kind_names(kinds: frozenset[str]) -> str:
    if kinds == KINDS:
        return "any type"
    names: list[str] = [name for name in _TYPES if name in kinds]
    names += ["number"] if "fraction" in kinds else ["integer"] if "integer" in kinds else []
    return ", ".join(names) or "nothing"


def _numbers(reader: SchemaNode, case: WriterCase) -> Iterator[Incompatibility]:
    for side, keywords, wide in (
        ("lower", ("minimum", "exclusiveMinimum"), -1),
        ("upper", ("maximum", "exclusiveMaximum"), 1),
    ):
        asked, given = getattr(reader, side), getattr(case, side)
        if asked is not None and (given is None or not _within(asked, given, wide)):
            text = f"The {side} bound of the reader is narrower than the writer's."
            ordered = tuple(reversed(keywords)) if asked[1] else keywords
            yield Incompatibility(
                f"reader-{keywords[0]}", text, reader.location(*ordered, "type"), case.location(*keywords, "type")
            )
    whole = {Decimal(1)} if not case.kinds & {"fraction"} else set()
    given_steps = whole.union(*(node.multiples for node in case.nodes))
    for step in reader.multiples:
        if not any(divides(step, given) for given in given_steps):
            text = f"The writer may emit numbers that are no multiples of {str(step)[:40]}."
            yield Incompatibility(
                "reader-multipleof", text, reader.location("multipleOf"), case.location("multipleOf", "type")
            )


def _within(asked: tuple[Decimal, bool], given: tuple[Decimal, bool], wide: int) -> bool:
    """Whether a bound is at least as wide as another. wide: the direction in which bounds become wider."""
    if asked[0] == given[0]:
        return given[1] or not asked[1]
    return (asked[0] > given[0]) == (wide > 0)


def _strings(reader: SchemaNode, case: WriterCase) -> Iterator[Incompatibility]:
    given_least = max(node.min_length for node in case.nodes)
    given_most = min((node.max_length for node in case.nodes if node.max_length is not None), default=None)
    if reader.min_length > given_least:
        text = f"The reader requires at least {reader.min_length} characters, the writer requires {given_least}."
        yield _difference("minLength", text, reader, case)
    if reader.max_length is not None and (given_most is None or reader.max_length < given_most):
        text = f"The reader accepts at most {reader.max_length} characters, the writer may emit more."
        yield _difference("maxLength", text, reader, case)
    if not all(any(pattern in node.patterns for node in case.nodes) for pattern in reader.patterns):
        text = "The reader requires a pattern; only the same pattern in the writer is known to satisfy it."
        yield _difference("pattern", text, reader, case)
    yield from _digits(reader, case)
    for name, mark in sorted(reader.marks):
        if not any(_is_mark_kept(name, mark, given) for node in case.nodes for given in node.marks):
            text = f"The reader relies on {name} {mark[:80]}, which the writer does not promise."
            yield _difference(name, text, reader, case)


def _digits(reader: SchemaNode, case: WriterCase) -> Iterator[Incompatibility]:
    """Why decimal numbers in texts are refused. `precision - scale` digits may precede the point."""
    least, scale = (_least(getattr(node, name) for node in case.nodes) for name in ("precision", "scale"))
    if reader.scale is not None and (scale is None or scale > reader.scale):
        text = f"The reader takes {reader.scale} digits after the decimal point, the writer may emit more."
        yield _difference("scale", text, reader, case)
    elif reader.precision is not None and (
        least is None or least > reader.precision or least - (scale or 0) > reader.precision - (reader.scale or 0)
    ):
        text = f"The reader takes {reader.precision} digits, {reader.scale or 0} of them after the decimal point"
        yield _difference("precision", f"{text}, the writer may emit more.", reader, case)


def _least(counts: Iterable[int | None]) -> int | None:
    return min((count for count in counts if count is not None), default=None)


#: Formats, and JSON Structure types that are JSON strings, each with the narrower ones whose values it includes.
_WIDER: Final[dict[str, frozenset[str]]] = {
    "int128": frozenset({"int64", "uint64"}),
    "uint128": frozenset({"uint64"}),
    "idn-email": frozenset({"email"}),
    "idn-hostname": frozenset({"hostname"}),
    "iri": frozenset({"uri"}),
    "uri-reference": frozenset({"uri"}),
    "iri-reference": frozenset({"uri", "uri-reference", "iri"}),
}


def _is_mark_kept(name: str, asked: str, given: tuple[str, str]) -> bool:
    return given[0] == name and (given[1] == asked or given[1] in _WIDER.get(asked, ()))


def _difference(keyword: str, text: str, reader: SchemaNode, case: WriterCase) -> Incompatibility:
    return Incompatibility(
        f"reader-{keyword.lower()}", text, reader.location(keyword, "type"), case.location(keyword, "type")
    )
