"""Decides whether every value of one simple type is a value of another.

Values are compared in their written form with normalised white space. Numbers are valid for any number type with a
sufficient range, and every value is valid text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, Final

from elementpath.regex import translate_pattern

from annals.domain.formats.xsd.model import FacetBound, SimpleType, TypeDefinition
from annals.domain.formats.xsd.xml_tree import XS

_XS_PREFIX: Final = f"{{{XS}}}"
_TEXT_TYPES: Final = frozenset({_XS_PREFIX + "string", _XS_PREFIX + "anySimpleType", _XS_PREFIX + "anyAtomicType"})
#: For built-in types, unrelated types in whose lexical form their values are valid.
_WRITABLE_TYPES: Final = {
    _XS_PREFIX + "decimal": (_XS_PREFIX + "double", _XS_PREFIX + "float"),
    _XS_PREFIX + "float": (_XS_PREFIX + "double",),
    _XS_PREFIX + "integer": (_XS_PREFIX + "decimal", _XS_PREFIX + "double", _XS_PREFIX + "float"),
}
_INTEGER: Final = _XS_PREFIX + "integer"
_ALLOWED_ZONES: Final = {"optional": {"optional", "required", "prohibited"}}

#: The type of empty text.
EMPTY_TEXT: Final = SimpleType(
    (_XS_PREFIX + "token", _XS_PREFIX + "string", _XS_PREFIX + "anySimpleType"), "atomic", None, longest=0, values=("",)
)
#: Treatments of white space, from the one that keeps most.
_WHITESPACE_MODES: Final = ("preserve", "replace", "collapse")

#: A rule's name, and the problem as the rest of a sentence.
TypeMismatch = tuple[str, str]


def simple_type_mismatch(
    writer: TypeDefinition, reader: TypeDefinition, writers: Sequence[TypeDefinition], readers: Sequence[TypeDefinition]
) -> TypeMismatch | None:
    """Why a value of one simple type may be invalid for another; None where all values are valid.

    writers, readers: the types of both schemas, in which `parts` are indexes.
    """
    assert isinstance(writer, SimpleType) and isinstance(reader, SimpleType)
    if reader.kind == "atomic" and reader.names[0] == _XS_PREFIX + "anySimpleType":
        return None
    if writer.values is not None and writer.kind == reader.kind == "atomic":
        return _compare_values(writer, reader)
    if writer.kind == "union":
        return _first_mismatch(simple_type_mismatch(writers[part], reader, writers, readers) for part in writer.parts)
    if reader.kind == "union" and reader.values is None and not reader.patterns:
        flaws = [simple_type_mismatch(writer, readers[part], writers, readers) for part in reader.parts]
        return None if None in flaws else ("type-changed", "fits none of the types that the reader takes")
    if writer.kind != reader.kind:
        is_plain_text = reader.kind == "atomic" and reader.names[0] in _TEXT_TYPES and not _is_restricted(reader)
        return (
            None
            if is_plain_text
            else ("type-changed", f"is a {writer.kind} of values, the reader expects {_kind_text(reader)}")
        )
    if reader.kind == "list":
        items = simple_type_mismatch(writers[writer.parts[0]], readers[reader.parts[0]], writers, readers)
        return (
            items
            or _compare_lengths(writer, reader)
            or _compare_patterns(writer, reader)
            or _compare_enumerations(writer, reader)
        )
    if not _is_writable_as(writer, reader):
        return "type-changed", f"is {_type_name(writer)}, the reader expects {_type_name(reader)}"
    return _compare_facets(writer, reader)


def _first_mismatch(mismatches: Any) -> TypeMismatch | None:
    return next((mismatch for mismatch in mismatches if mismatch is not None), None)


def _kind_text(simple_type: SimpleType) -> str:
    return _type_name(simple_type) if simple_type.kind == "atomic" else f"a {simple_type.kind}"


def _type_name(simple_type: SimpleType) -> str:
    name = simple_type.names[0]
    return f"xs:{name.removeprefix(_XS_PREFIX)}" if name.startswith(_XS_PREFIX) else name


def _is_restricted(simple_type: SimpleType) -> bool:
    return bool(
        simple_type.patterns
        or simple_type.values is not None
        or simple_type.shortest
        or simple_type.longest is not None
    )


def _is_integer(simple_type: SimpleType) -> bool:
    return _INTEGER in simple_type.names or simple_type.fraction == 0


def _is_number(simple_type: SimpleType) -> bool:
    return _XS_PREFIX + "decimal" in simple_type.names


def _is_writable_as(writer: SimpleType, reader: SimpleType) -> bool:
    """Whether the built-in type of the writer is that of the reader, or its values are valid for the reader's."""
    reader_type_name = reader.names[0]
    if reader_type_name in writer.names or reader_type_name in _TEXT_TYPES:
        return True
    if (
        reader_type_name in (_XS_PREFIX + "normalizedString", _XS_PREFIX + "token")
        and _XS_PREFIX + "string" not in writer.names
    ):
        return True  # only text has significant white space
    if _is_number(writer) and _is_number(reader):  # bounds and fractions decide
        # 1.0 is no integer in XSD, although it has no fraction.
        return reader_type_name.startswith(_XS_PREFIX) and (_INTEGER in writer.names or _INTEGER not in reader.names)
    return any(reader_type_name in _WRITABLE_TYPES.get(name, ()) for name in writer.names)


def _compare_facets(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    checks = (
        _compare_form,
        _compare_whitespace,
        _compare_lengths,
        _compare_patterns,
        _compare_enumerations,
        _compare_bounds,
        _compare_digits,
        _compare_assertions,
    )
    return _first_mismatch(check(writer, reader) for check in checks)


def _compare_form(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    """Refuses text restrictions on other types: their values have several written forms."""
    text = reader.names[0] in _TEXT_TYPES or _XS_PREFIX + "string" in reader.names
    if text and _XS_PREFIX + "string" not in writer.names and _is_restricted(reader):
        return (
            "type-changed",
            f"is {_type_name(writer)}, the reader expects text of a form that such values need not have",
        )
    return None


def _compare_whitespace(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    """Refuses a reader that keeps less white space of a text. Keeping more is fine: written values are normalised."""
    text = _XS_PREFIX + "string" in writer.names and _XS_PREFIX + "string" in reader.names
    if text and _WHITESPACE_MODES.index(reader.space) > _WHITESPACE_MODES.index(writer.space):
        return (
            "whitespace-changed",
            f"may have white space that the reader does not preserve: it is set to {reader.space}",
        )
    return None


def _normalize_whitespace(text: str, whitespace: str) -> str:
    """A text with its white space normalised as a type demands."""
    if whitespace == "preserve":
        return text
    replaced = re.sub(r"[\t\n\r]", " ", text)
    return replaced if whitespace == "replace" else " ".join(replaced.split())


def _compare_lengths(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    if writer.shortest < reader.shortest:
        return "length-narrowed", f"may be {writer.shortest} long, the reader expects {reader.shortest} at least"
    if reader.longest is not None and (writer.longest is None or writer.longest > reader.longest):
        length_text = "of any length" if writer.longest is None else f"{writer.longest} long"
        return "length-narrowed", f"may be {length_text}, the reader expects {reader.longest} at most"
    return None


def _compare_patterns(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    """Compares patterns by their text only; whether one pattern implies another is not computed."""
    for reader_patterns in reader.patterns:
        if not any(writer_patterns <= reader_patterns for writer_patterns in writer.patterns):
            return "pattern-changed", f"need not match {' | '.join(sorted(reader_patterns))}, which the reader expects"
    return None


def _compare_enumerations(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    if reader.values is None:
        return None
    if writer.values is None:
        return "enumeration-added", "may have other values than those that the reader lists"
    missing = [value for value in writer.values if value not in reader.values]
    return ("enumeration-value-unknown", f"may be {missing[0]!s}, which the reader does not list") if missing else None


def _compare_bounds(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    for direction, reader_bound, writer_bound in (("less", reader.low, writer.low), ("more", reader.high, writer.high)):
        if _INTEGER in writer.names:
            writer_bound, reader_bound = (
                _inclusive_bound(writer_bound or _bound_of_digits(writer, direction), direction == "less"),
                _inclusive_bound(reader_bound, direction == "less"),
            )
        if reader_bound is not None and not _is_bound_within(writer_bound, reader_bound, direction == "less"):
            return "bounds-narrowed", f"may be {direction} than {reader_bound.value}, which the reader does not allow"
    return None


def _bound_of_digits(simple_type: SimpleType, direction: str) -> FacetBound | None:
    """The bound of an integer that follows from its number of digits."""
    if simple_type.digits is None or simple_type.digits > 100:  # more than any bound in practice
        return None
    return FacetBound((10**simple_type.digits - 1) * (-1 if direction == "less" else 1), False)


def _inclusive_bound(bound: FacetBound | None, is_lower: bool) -> FacetBound | None:
    """An equivalent inclusive bound for integers."""
    if bound is None:
        return None
    value = _to_decimal(bound.value)
    if not isinstance(value, Decimal) or not value.is_finite():
        return bound
    rounded = value.to_integral_value(ROUND_CEILING if is_lower else ROUND_FLOOR)
    step = (1 if is_lower else -1) if bound.is_exclusive and rounded == value else 0
    return FacetBound(rounded + step, False)


def _is_bound_within(writer_bound: FacetBound | None, reader_bound: FacetBound, is_lower: bool) -> bool:
    if writer_bound is None:
        return False
    try:
        writer_value, reader_value = _to_decimal(writer_bound.value), _to_decimal(reader_bound.value)
        if writer_value == reader_value:
            return writer_bound.is_exclusive or not reader_bound.is_exclusive
        return bool(writer_value > reader_value if is_lower else writer_value < reader_value)
    except TypeError:  # values without an order between them
        return False


def _to_decimal(value: Any) -> Any:
    return Decimal(value) if isinstance(value, int) else value


def _compare_digits(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    fraction = 0 if _is_integer(writer) else writer.fraction
    if reader.fraction is not None and (fraction is None or fraction > reader.fraction):
        return (
            "digits-narrowed",
            f"may have more than {reader.fraction} fraction digits, which the reader does not allow",
        )
    if reader.digits is not None and (_max_digits(writer, fraction) or reader.digits + 1) > reader.digits:
        return "digits-narrowed", f"may have more than {reader.digits} digits, which the reader does not allow"
    return None


def _max_digits(simple_type: SimpleType, fraction: int | None) -> int | None:
    """The maximum digits of a number, from its facets or its bounds; None: unlimited."""
    if simple_type.digits is not None:
        return simple_type.digits
    if simple_type.low is None or simple_type.high is None or fraction is None:
        return None
    largest = max(abs(int(simple_type.low.value)), abs(int(simple_type.high.value)))
    return len(str(largest)) + fraction


def _compare_assertions(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    if added_assertions := reader.assertions - writer.assertions:
        return "assertion-added", f"need not satisfy {min(added_assertions)}, which the reader asserts"
    if writer.zone not in _ALLOWED_ZONES.get(reader.zone, {reader.zone}):
        return "timezone-changed", f"has a time zone that is {writer.zone}, the reader has it {reader.zone}"
    return None


def _compare_values(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    """Compares each listed value separately, because it may be valid even where the types are not compatible."""
    if reader.values is not None and (_is_writable_as(writer, reader) or _is_writable_as(reader, writer)):
        if mismatch := _compare_enumerations(writer, reader):
            return mismatch
    elif not _is_writable_as(writer, reader):
        return "type-changed", f"is {_type_name(writer)}, the reader expects {_type_name(reader)}"
    elif mismatch := _compare_form(writer, reader):
        return mismatch
    unmatched_patterns = [
        reader_patterns
        for reader_patterns in reader.patterns
        if not any(writer_patterns <= reader_patterns for writer_patterns in writer.patterns)
    ]
    try:
        checks = [list(map(_pattern_matcher, step)) for step in unmatched_patterns]
    except (re.error, ValueError, OverflowError):
        return _compare_patterns(writer, reader)
    # Checks that the writer's facets already pass need not run per value; facets may exclude some values.
    failing_checks = [
        check
        for check in (_compare_lengths, _compare_whitespace, _compare_bounds, _compare_digits)
        if check(writer, reader)
    ]
    for value in writer.values or ():
        if not all(any(matcher.match(str(value)) for matcher in step) for step in checks):
            return "pattern-changed", f"may be {value}, which the reader's pattern does not match"
        if mismatch := _first_mismatch(_compare_value(check, value, writer, reader) for check in failing_checks):
            return mismatch
    return _compare_assertions(writer, reader)


def _compare_value(
    check: Callable[[SimpleType, SimpleType], TypeMismatch | None], value: Any, writer: SimpleType, reader: SimpleType
) -> TypeMismatch | None:
    """The result of a check for one value of a type."""
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    number, is_text = _is_number(writer), _XS_PREFIX + "string" in writer.names
    if check is _compare_whitespace:
        is_changed = is_text and _normalize_whitespace(text, reader.space) != text
        return (
            ("whitespace-changed", f"may be {text!r}, whose white space the reader does not preserve")
            if is_changed
            else None
        )
    if (check is _compare_lengths and not is_text) or (check is _compare_digits and not number):
        return None
    fraction_digits = len(text.partition(".")[2].rstrip("0")) if number else None
    single_value_type = SimpleType(
        writer.names,
        "atomic",
        None,
        low=FacetBound(value, False),
        high=FacetBound(value, False),
        shortest=len(text),
        longest=len(text),
        digits=len(text.partition(".")[0].strip("-+").lstrip("0")) + (fraction_digits or 0),
        fraction=fraction_digits,
    )
    return check(single_value_type, reader)


def _pattern_matcher(pattern: str) -> re.Pattern[str]:
    """A matcher of whole texts for an XML Schema pattern. Raises: re.error, ValueError, OverflowError."""
    return re.compile(translate_pattern(pattern, back_references=False, lazy_quantifiers=False, anchors=False))
