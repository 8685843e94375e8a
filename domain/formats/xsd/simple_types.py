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

from domain.formats.xsd.model import FacetBound, SimpleType, TypeDefinition
from domain.formats.xsd.xml_tree import XS

_X: Final = f"{{{XS}}}"
_TEXT: Final = frozenset({_X + "string", _X + "anySimpleType", _X + "anyAtomicType"})
#: For built-in types, unrelated types in whose lexical form their values are valid.
_WRITTEN_AS: Final = {
    _X + "decimal": (_X + "double", _X + "float"),
    _X + "float": (_X + "double",),
    _X + "integer": (_X + "decimal", _X + "double", _X + "float"),
}
_INTEGER: Final = _X + "integer"
_ZONES: Final = {"optional": {"optional", "required", "prohibited"}}

#: The type of empty text.
EMPTY_TEXT: Final = SimpleType(
    (_X + "token", _X + "string", _X + "anySimpleType"), "atomic", None, longest=0, values=("",)
)
#: Treatments of white space, from the one that keeps most.
_SPACES: Final = ("preserve", "replace", "collapse")

#: A rule's name, and the problem as the rest of a sentence.
TypeMismatch = tuple[str, str]


def simple_type_mismatch(
    writer: TypeDefinition, reader: TypeDefinition, writers: Sequence[TypeDefinition], readers: Sequence[TypeDefinition]
) -> TypeMismatch | None:
    """Why a value of one simple type may be invalid for another; None where all values are valid.

    writers, readers: the types of both schemas, in which `parts` are indexes.
    """
    assert isinstance(writer, SimpleType) and isinstance(reader, SimpleType)
    if reader.kind == "atomic" and reader.names[0] == _X + "anySimpleType":
        return None
    if writer.values is not None and writer.kind == reader.kind == "atomic":
        return _values(writer, reader)
    if writer.kind == "union":
        return _first_mismatch(simple_type_mismatch(writers[part], reader, writers, readers) for part in writer.parts)
    if reader.kind == "union" and reader.values is None and not reader.patterns:
        flaws = [simple_type_mismatch(writer, readers[part], writers, readers) for part in reader.parts]
        return None if None in flaws else ("type-changed", "fits none of the types that the reader takes")
    if writer.kind != reader.kind:
        plain = reader.kind == "atomic" and reader.names[0] in _TEXT and not _is_restricted(reader)
        return None if plain else ("type-changed", f"is a {writer.kind} of values, the reader expects {_kind(reader)}")
    if reader.kind == "list":
        items = simple_type_mismatch(writers[writer.parts[0]], readers[reader.parts[0]], writers, readers)
        return items or _lengths(writer, reader) or _patterns(writer, reader) or _enumerated(writer, reader)
    if not _is_writable_as(writer, reader):
        return "type-changed", f"is {_named(writer)}, the reader expects {_named(reader)}"
    return _facets(writer, reader)


def _first_mismatch(flaws: Any) -> TypeMismatch | None:
    return next((flaw for flaw in flaws if flaw is not None), None)


def _kind(found: SimpleType) -> str:
    return _named(found) if found.kind == "atomic" else f"a {found.kind}"


def _named(found: SimpleType) -> str:
    name = found.names[0]
    return f"xs:{name.removeprefix(_X)}" if name.startswith(_X) else name


def _is_restricted(found: SimpleType) -> bool:
    return bool(found.patterns or found.values is not None or found.shortest or found.longest is not None)


def _is_integer(found: SimpleType) -> bool:
    return _INTEGER in found.names or found.fraction == 0


def _is_number(found: SimpleType) -> bool:
    return _X + "decimal" in found.names


def _is_writable_as(writer: SimpleType, reader: SimpleType) -> bool:
    """Whether the built-in type of the writer is that of the reader, or its values are valid for the reader's."""
    wanted = reader.names[0]
    if wanted in writer.names or wanted in _TEXT:
        return True
    if wanted in (_X + "normalizedString", _X + "token") and _X + "string" not in writer.names:
        return True  # only text has significant white space
    if _is_number(writer) and _is_number(reader):  # bounds and fractions decide
        # 1.0 is no integer in XSD, although it has no fraction.
        return wanted.startswith(_X) and (_INTEGER in writer.names or _INTEGER not in reader.names)
    return any(wanted in _WRITTEN_AS.get(name, ()) for name in writer.names)


def _facets(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    checks = (_form, _spaces, _lengths, _patterns, _enumerated, _bounds, _digits, _assertions)
    return _first_mismatch(check(writer, reader) for check in checks)


def _form(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    """Refuses text restrictions on other types: their values have several written forms."""
    text = reader.names[0] in _TEXT or _X + "string" in reader.names
    if text and _X + "string" not in writer.names and _is_restricted(reader):
        return "type-changed", f"is {_named(writer)}, the reader expects text of a form that such values need not have"
    return None


def _spaces(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    """Refuses a reader that keeps less white space of a text. Keeping more is fine: written values are normalised."""
    text = _X + "string" in writer.names and _X + "string" in reader.names
    if text and _SPACES.index(reader.space) > _SPACES.index(writer.space):
        return (
            "whitespace-changed",
            f"may have white space that the reader does not preserve: it is set to {reader.space}",
        )
    return None


def _spaced(text: str, space: str) -> str:
    """A text with its white space normalised as a type demands."""
    if space == "preserve":
        return text
    replaced = re.sub(r"[\t\n\r]", " ", text)
    return replaced if space == "replace" else " ".join(replaced.split())


def _lengths(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    if writer.shortest < reader.shortest:
        return "length-narrowed", f"may be {writer.shortest} long, the reader expects {reader.shortest} at least"
    if reader.longest is not None and (writer.longest is None or writer.longest > reader.longest):
        much = "of any length" if writer.longest is None else f"{writer.longest} long"
        return "length-narrowed", f"may be {much}, the reader expects {reader.longest} at most"
    return None


def _patterns(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    """Compares patterns by their text only; whether one pattern implies another is not computed."""
    for wanted in reader.patterns:
        if not any(given <= wanted for given in writer.patterns):
            return "pattern-changed", f"need not match {' | '.join(sorted(wanted))}, which the reader expects"
    return None


def _enumerated(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    if reader.values is None:
        return None
    if writer.values is None:
        return "enumeration-added", "may have other values than those that the reader lists"
    missing = [value for value in writer.values if value not in reader.values]
    return ("enumeration-value-unknown", f"may be {missing[0]!s}, which the reader does not list") if missing else None


def _bounds(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    for side, theirs, ours in (("less", reader.low, writer.low), ("more", reader.high, writer.high)):
        if _INTEGER in writer.names:
            ours, theirs = _closed(ours or _by_digits(writer, side), side == "less"), _closed(theirs, side == "less")
        if theirs is not None and not _is_bound_within(ours, theirs, side == "less"):
            return "bounds-narrowed", f"may be {side} than {theirs.value}, which the reader does not allow"
    return None


def _by_digits(found: SimpleType, side: str) -> FacetBound | None:
    """The bound of an integer that follows from its number of digits."""
    if found.digits is None or found.digits > 100:  # more than any bound in practice
        return None
    return FacetBound((10**found.digits - 1) * (-1 if side == "less" else 1), False)


def _closed(bound: FacetBound | None, low: bool) -> FacetBound | None:
    """An equivalent inclusive bound for integers."""
    if bound is None:
        return None
    value = _comparable(bound.value)
    if not isinstance(value, Decimal) or not value.is_finite():
        return bound
    whole = value.to_integral_value(ROUND_CEILING if low else ROUND_FLOOR)
    step = (1 if low else -1) if bound.open and whole == value else 0
    return FacetBound(whole + step, False)


def _is_bound_within(ours: FacetBound | None, theirs: FacetBound, low: bool) -> bool:
    if ours is None:
        return False
    try:
        a, b = _comparable(ours.value), _comparable(theirs.value)
        if a == b:
            return ours.open or not theirs.open
        return bool(a > b if low else a < b)
    except TypeError:  # values without an order between them
        return False


def _comparable(value: Any) -> Any:
    return Decimal(value) if isinstance(value, int) else value


def _digits(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    fraction = 0 if _is_integer(writer) else writer.fraction
    if reader.fraction is not None and (fraction is None or fraction > reader.fraction):
        return (
            "digits-narrowed",
            f"may have more than {reader.fraction} fraction digits, which the reader does not allow",
        )
    if reader.digits is not None and (_most_digits(writer, fraction) or reader.digits + 1) > reader.digits:
        return "digits-narrowed", f"may have more than {reader.digits} digits, which the reader does not allow"
    return None


def _most_digits(found: SimpleType, fraction: int | None) -> int | None:
    """The maximum digits of a number, from its facets or its bounds; None: unlimited."""
    if found.digits is not None:
        return found.digits
    if found.low is None or found.high is None or fraction is None:
        return None
    largest = max(abs(int(found.low.value)), abs(int(found.high.value)))
    return len(str(largest)) + fraction


def _assertions(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    if added := reader.assertions - writer.assertions:
        return "assertion-added", f"need not satisfy {min(added)}, which the reader asserts"
    if writer.zone not in _ZONES.get(reader.zone, {reader.zone}):
        return "timezone-changed", f"has a time zone that is {writer.zone}, the reader has it {reader.zone}"
    return None


def _values(writer: SimpleType, reader: SimpleType) -> TypeMismatch | None:
    """Compares each listed value separately, because it may be valid even where the types are not compatible."""
    if reader.values is not None and (_is_writable_as(writer, reader) or _is_writable_as(reader, writer)):
        if flaw := _enumerated(writer, reader):
            return flaw
    elif not _is_writable_as(writer, reader):
        return "type-changed", f"is {_named(writer)}, the reader expects {_named(reader)}"
    elif flaw := _form(writer, reader):
        return flaw
    wanted = [p for p in reader.patterns if not any(given <= p for given in writer.patterns)]
    try:
        checks = [list(map(_matcher, step)) for step in wanted]
    except (re.error, ValueError, OverflowError):
        return _patterns(writer, reader)
    # Checks that the writer's facets already pass need not run per value; facets may exclude some values.
    asked = [check for check in (_lengths, _spaces, _bounds, _digits) if check(writer, reader)]
    for value in writer.values or ():
        if not all(any(part.match(str(value)) for part in step) for step in checks):
            return "pattern-changed", f"may be {value}, which the reader's pattern does not match"
        if flaw := _first_mismatch(_value(check, value, writer, reader) for check in asked):
            return flaw
    return _assertions(writer, reader)


def _value(
    check: Callable[[SimpleType, SimpleType], TypeMismatch | None], value: Any, writer: SimpleType, reader: SimpleType
) -> TypeMismatch | None:
    """The result of a check for one value of a type."""
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    number, is_text = _is_number(writer), _X + "string" in writer.names
    if check is _spaces:
        changed = is_text and _spaced(text, reader.space) != text
        return (
            ("whitespace-changed", f"may be {text!r}, whose white space the reader does not preserve")
            if changed
            else None
        )
    if (check is _lengths and not is_text) or (check is _digits and not number):
        return None
    places = len(text.partition(".")[2].rstrip("0")) if number else None
    one = SimpleType(
        writer.names,
        "atomic",
        None,
        low=FacetBound(value, False),
        high=FacetBound(value, False),
        shortest=len(text),
        longest=len(text),
        digits=len(text.partition(".")[0].strip("-+").lstrip("0")) + (places or 0),
        fraction=places,
    )
    return check(one, reader)


def _matcher(pattern: str) -> re.Pattern[str]:
    """A matcher of whole texts for an XML Schema pattern. Raises: re.error, ValueError, OverflowError."""
    return re.compile(translate_pattern(pattern, back_references=False, lazy_quantifiers=False, anchors=False))
