"""Comparison of keywords for kinds, numbers, strings and formats; `arrays.py` and `objects.py` have the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Final

from annals.domain.formats.contract import Incompatibility
from annals.domain.formats.jsonschema.arrays import array_incompatibilities
from annals.domain.formats.jsonschema.comparison import JsonSchemaComparison
from annals.domain.formats.jsonschema.node import SchemaNode
from annals.domain.formats.jsonschema.objects import object_incompatibilities
from annals.domain.formats.jsonschema.values import KINDS, NUMBERS, is_multiple
from annals.domain.formats.jsonschema.writer_cases import WriterCase

_TYPE_NAMES: Final = ("null", "boolean", "object", "array", "string")


def keyword_incompatibilities(
    comparison: JsonSchemaComparison, reader: SchemaNode, case: WriterCase
) -> Iterator[Incompatibility]:
    """Why the reader's own keywords, without references and combinations, refuse values of a case."""
    yield from _compare_kinds(reader, case)
    if reader.allowed is not None:
        text = "The reader lists the values that it accepts, and the writer does not."
        yield Incompatibility("reader-enum", text, reader.location("enum", "const"), case.location("enum", "type"))
    for keyword, value in sorted(reader.others):
        if not any((keyword, value) in node.others for node in case.nodes):
            yield _keyword_incompatibility(
                keyword, f"The reader requires {keyword}, the writer does not require the same.", reader, case
            )
    if case.kinds & NUMBERS:
        yield from _compare_numbers(reader, case)
    if "string" in case.kinds:
        yield from _compare_strings(reader, case)
    if "array" in case.kinds:
        yield from array_incompatibilities(comparison, reader, case)
    if "object" in case.kinds:
        yield from object_incompatibilities(comparison, reader, case)


def _compare_kinds(reader: SchemaNode, case: WriterCase) -> Iterator[Incompatibility]:
    refused_kinds = case.kinds - (KINDS if reader.kinds is None else reader.kinds)
    if refused_kinds == {"fraction"} and _is_integer_only(case):
        return
    if refused_kinds:
        accepted_text = _kind_names(reader.kinds or KINDS)
        text = f"The writer may emit {_kind_names(case.kinds)}, the reader accepts {accepted_text} only."
        yield Incompatibility("reader-type", text, reader.location("type"), case.location("type"))


def _is_integer_only(case: WriterCase) -> bool:
    """Whether all numbers of a case are integers, even those written with a fraction."""
    return any(is_multiple(Decimal(1), multiple) for node in case.nodes for multiple in node.multiples)


def _kind_names(kinds: frozenset[str]) -> str:
    if kinds == KINDS:
        return "any type"
    names: list[str] = [name for name in _TYPE_NAMES if name in kinds]
    names += ["number"] if "fraction" in kinds else ["integer"] if "integer" in kinds else []
    return ", ".join(names) or "nothing"


def _compare_numbers(reader: SchemaNode, case: WriterCase) -> Iterator[Incompatibility]:
    for bound_name, keywords, direction in (
        ("lower", ("minimum", "exclusiveMinimum"), -1),
        ("upper", ("maximum", "exclusiveMaximum"), 1),
    ):
        reader_bound, writer_bound = getattr(reader, bound_name), getattr(case, bound_name)
        if reader_bound is not None and (
            writer_bound is None or not _is_wider_bound(reader_bound, writer_bound, direction)
        ):
            text = f"The {bound_name} bound of the reader is narrower than the writer's."
            reader_keywords = tuple(reversed(keywords)) if reader_bound[1] else keywords
            yield Incompatibility(
                f"reader-{keywords[0]}",
                text,
                reader.location(*reader_keywords, "type"),
                case.location(*keywords, "type"),
            )
    implied_steps = {Decimal(1)} if not case.kinds & {"fraction"} else set()
    given_steps = implied_steps.union(*(node.multiples for node in case.nodes))
    for step in reader.multiples:
        if not any(is_multiple(step, writer_bound) for writer_bound in given_steps):
            text = f"The writer may emit numbers that are no multiples of {str(step)[:40]}."
            yield Incompatibility(
                "reader-multipleof", text, reader.location("multipleOf"), case.location("multipleOf", "type")
            )


def _is_wider_bound(reader_bound: tuple[Decimal, bool], writer_bound: tuple[Decimal, bool], direction: int) -> bool:
    """Whether a bound is at least as wide as another. direction: the direction in which bounds become wider."""
    if reader_bound[0] == writer_bound[0]:
        return writer_bound[1] or not reader_bound[1]
    return (reader_bound[0] > writer_bound[0]) == (direction > 0)


def _compare_strings(reader: SchemaNode, case: WriterCase) -> Iterator[Incompatibility]:
    min_length = max(node.min_length for node in case.nodes)
    max_length = min((node.max_length for node in case.nodes if node.max_length is not None), default=None)
    if reader.min_length > min_length:
        text = f"The reader requires at least {reader.min_length} characters, the writer requires {min_length}."
        yield _keyword_incompatibility("minLength", text, reader, case)
    if reader.max_length is not None and (max_length is None or reader.max_length < max_length):
        text = f"The reader accepts at most {reader.max_length} characters, the writer may emit more."
        yield _keyword_incompatibility("maxLength", text, reader, case)
    if not all(any(pattern in node.patterns for node in case.nodes) for pattern in reader.patterns):
        text = "The reader requires a pattern; only the same pattern in the writer is known to satisfy it."
        yield _keyword_incompatibility("pattern", text, reader, case)
    yield from _compare_digits(reader, case)
    for name, annotation in sorted(reader.marks):
        if not any(
            _is_mark_kept(name, annotation, writer_annotation)
            for node in case.nodes
            for writer_annotation in node.marks
        ):
            text = f"The reader relies on {name} {annotation[:80]}, which the writer does not promise."
            yield _keyword_incompatibility(name, text, reader, case)


def _compare_digits(reader: SchemaNode, case: WriterCase) -> Iterator[Incompatibility]:
    """Why decimal numbers in texts are refused. `precision - scale` digits may precede the point."""
    precision, scale = (_smallest(getattr(node, name) for node in case.nodes) for name in ("precision", "scale"))
    if reader.scale is not None and (scale is None or scale > reader.scale):
        text = f"The reader takes {reader.scale} digits after the decimal point, the writer may emit more."
        yield _keyword_incompatibility("scale", text, reader, case)
    elif reader.precision is not None and (
        precision is None
        or precision > reader.precision
        or precision - (scale or 0) > reader.precision - (reader.scale or 0)
    ):
        text = f"The reader takes {reader.precision} digits, {reader.scale or 0} of them after the decimal point"
        yield _keyword_incompatibility("precision", f"{text}, the writer may emit more.", reader, case)


def _smallest(counts: Iterable[int | None]) -> int | None:
    return min((count for count in counts if count is not None), default=None)


#: Formats, and JSON Structure types that are JSON strings, each with the narrower ones whose values it includes.
_WIDER_FORMATS: Final[dict[str, frozenset[str]]] = {
    "int128": frozenset({"int64", "uint64"}),
    "uint128": frozenset({"uint64"}),
    "idn-email": frozenset({"email"}),
    "idn-hostname": frozenset({"hostname"}),
    "iri": frozenset({"uri"}),
    "uri-reference": frozenset({"uri"}),
    "iri-reference": frozenset({"uri", "uri-reference", "iri"}),
}


def _is_mark_kept(name: str, reader_value: str, writer_annotation: tuple[str, str]) -> bool:
    return writer_annotation[0] == name and (
        writer_annotation[1] == reader_value or writer_annotation[1] in _WIDER_FORMATS.get(reader_value, ())
    )


def _keyword_incompatibility(keyword: str, text: str, reader: SchemaNode, case: WriterCase) -> Incompatibility:
    return Incompatibility(
        f"reader-{keyword.lower()}", text, reader.location(keyword, "type"), case.location(keyword, "type")
    )
