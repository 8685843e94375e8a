"""xmlschema reads documents of one schema with another that is called compatible: an independent check of SC-36."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from random import Random

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from xmlschema import XMLSchema10

from annals.domain.formats import xsd
from annals.domain.formats.contract import InvalidDocument
from tests.support.examples import examples

XS = 'xmlns:xs="http://www.w3.org/2001/XMLSchema"'


def restricted(base: str, **facets: str | list[str]) -> str:
    """Returns a simple type that narrows another."""
    pairs = [
        (name, value) for name, values in facets.items() for value in ([values] if isinstance(values, str) else values)
    ]
    inner = "".join(f'<xs:{name} value="{value}"/>' for name, value in pairs)
    return f'<xs:simpleType><xs:restriction base="xs:{base}">{inner}</xs:restriction></xs:simpleType>'


BUILT_IN = (
    *("anySimpleType", "string", "normalizedString", "token", "NMTOKEN", "Name", "NCName", "language", "anyURI"),
    *("decimal", "integer", "long", "int", "short", "byte", "unsignedByte", "unsignedLong", "positiveInteger"),
    *("nonPositiveInteger", "float", "double", "boolean", "date", "dateTime", "time", "gYear", "duration", "hexBinary"),
    *("base64Binary", "QName", "NMTOKENS"),
)
SIMPLE = {name: f'<xs:simpleType><xs:restriction base="xs:{name}"/></xs:simpleType>' for name in BUILT_IN[1:]} | {
    "0..9": restricted("int", minInclusive="0", maxInclusive="9"),
    "-1<..<10": restricted("integer", minExclusive="-1", maxExclusive="10"),
    "0<..<9.5": restricted("decimal", minExclusive="0", maxExclusive="9.5"),
    "3 digits": restricted("decimal", totalDigits="3"),
    "3 digits whole": restricted("integer", totalDigits="3"),
    "4.2 digits": restricted("decimal", totalDigits="4", fractionDigits="2"),
    "no fraction": restricted("decimal", fractionDigits="0"),
    "probability": restricted("double", minInclusive="0", maxInclusive="1"),
    "length 3": restricted("string", length="3"),
    "2..4 long": restricted("token", minLength="2", maxLength="4"),
    "lower": restricted("string", pattern="[a-z]*"),
    "lower or digits": restricted("string", pattern=["[a-z]*", r"\d+"]),
    "a or b": restricted("string", enumeration=["a", "b"]),
    "a or abc": restricted("token", enumeration=["a", "abc"]),
    "1 or 2": restricted("int", enumeration=["1", "2"]),
    "1.0 or 7": restricted("decimal", enumeration=["1.0", "7"]),
    "since 2020": restricted("date", minInclusive="2020-01-01"),
    "int or date": '<xs:simpleType><xs:union memberTypes="xs:int xs:date"/></xs:simpleType>',
    "int or token": '<xs:simpleType><xs:union memberTypes="xs:int xs:token"/></xs:simpleType>',
    "byte or a": (
        '<xs:simpleType><xs:union memberTypes="xs:byte">'
        f"{restricted('string', enumeration='a')}</xs:union></xs:simpleType>"
    ),
    "ints": '<xs:simpleType><xs:list itemType="xs:int"/></xs:simpleType>',
    "bytes": '<xs:simpleType><xs:list itemType="xs:byte"/></xs:simpleType>',
    "two ints": (
        '<xs:simpleType><xs:restriction><xs:simpleType><xs:list itemType="xs:int"/></xs:simpleType>'
        '<xs:length value="2"/></xs:restriction></xs:simpleType>'
    ),
}
VALUES = [
    *(
        "",
        "a",
        "b",
        "A",
        "abc",
        "abcd",
        "a b",
        "a:b",
        "-a",
        "de-AT",
        "true",
        "0",
        "1",
        "1.0",
        "+1",
        "-0",
        "00",
        "2",
        "7",
    ),
    *("-129", "-32769", "-3000000000", "18446744073709551616", "-18446744073709551616", "32768", "100", "-99999"),
    *("9", "10", "9.49", "12.34", "123.4", "1234", "0.5", "-5", "127", "128", "255", "1e3", "INF", "NaN", "3000000000"),
    *("2020-01-01", "2019-12-31", "2021-02-03Z", "2020-01-01T00:00:00", "12:00:00", "2020", "P1D", "0F", "YWJj", "1 2"),
    *("1 2 3", "18446744073709551615", "http://x/y", "é"),
]


#: Numbers with spaces inside, which xmlschema accepts although they are invalid.
NO_NUMBERS = {
    (name, value) for name in ("decimal", "3 digits", "4.2 digits", "no fraction") for value in ("1 2", "1 2 3")
}


def valid(theirs: XMLSchema10, document: str) -> bool:
    try:
        return theirs.is_valid(document)
    except OverflowError:  # a year that the library cannot represent
        return False


@pytest.fixture(scope="module")
def simple() -> dict[str, tuple[xsd.XsdDocument, frozenset[str]]]:
    """Each simple type, parsed, and the values that xmlschema accepts for it."""
    made = {}
    for name, definition in SIMPLE.items():
        text = f'<xs:schema {XS}><xs:element name="v">{definition}</xs:element></xs:schema>'
        theirs = XMLSchema10(text)
        accepted = frozenset(
            value for value in VALUES if valid(theirs, f"<v>{value}</v>") and (name, value) not in NO_NUMBERS
        )
        made[name] = xsd.parse(text.encode(), "xsd/1.0"), accepted
    return made


@pytest.mark.parametrize("writer", SIMPLE)
def test_values_that_are_read(writer: str, simple: dict[str, tuple[xsd.XsdDocument, frozenset[str]]]) -> None:
    # SC-36: a type that is called compatible accepts all values of the narrower one
    written, values = simple[writer]
    assert values, "no value shows anything"
    assert xsd.incompatibilities(written, written) == []
    for reader, (reading, accepted) in simple.items():
        if not xsd.incompatibilities(reading, written):
            assert values <= accepted, f"{reader} does not read {sorted(values - accepted)} of {writer}"


#: Types of numbers; VALUES has values that distinguish any two of them.
NUMBERS = (
    *("decimal", "integer", "long", "int", "short", "byte", "unsignedByte", "unsignedLong", "positiveInteger"),
    *("nonPositiveInteger", "0..9", "-1<..<10", "3 digits whole", "1 or 2"),
)


def test_values_that_are_not(simple: dict[str, tuple[xsd.XsdDocument, frozenset[str]]]) -> None:
    # SC-36: if a change is refused, there is a number that the reader does not accept
    for writer, reader in product(NUMBERS, NUMBERS):
        (written, values), (reading, accepted) = simple[writer], simple[reader]
        assert bool(xsd.incompatibilities(reading, written)) == (not values <= accepted), f"{writer} > {reader}"


# -- content models ---------------------------------------------------------------------------------------------------

NAMES = "abcd"
#: Types of elements, each narrower than the next.
TYPES = ["byte", "int", "decimal", "string"]
TEXTS = {"byte": ["1", "-7"], "int": ["1", "70000"], "decimal": ["1.5", "3"], "string": ["x", "", "1"]}
OCCURS = [(1, 1), (0, 1), (0, None), (1, None), (2, 3), (0, 2), (1, 2)]
#: Groups occur at most once, because xmlschema does not backtrack and would refuse valid repetitions of groups.
GROUP_OCCURS = [(1, 1), (0, 1)]


@dataclass(frozen=True)
class Part:
    """A particle: kind is `element`, `sequence`, `choice`, `all` or `any`."""

    kind: str
    name: str = ""
    items: tuple[Part, ...] = ()
    occurs: tuple[int, int | None] = (1, 1)

    def text(self, types: dict[str, str]) -> str:
        low, high = self.occurs
        occurs = f'minOccurs="{low}" maxOccurs="{"unbounded" if high is None else high}"'
        if self.kind == "element":
            return f'<xs:element name="{self.name}" type="xs:{types[self.name]}" {occurs}/>'
        if self.kind == "any":
            return f'<xs:any namespace="##other" processContents="lax" {occurs}/>'
        return f"<xs:{self.kind} {occurs}>{''.join(item.text(types) for item in self.items)}</xs:{self.kind}>"


@dataclass(frozen=True)
class Sketch:
    """A schema whose root element `r` has content and attributes; attributes: whether each is required."""

    content: Part
    types: dict[str, str]
    attributes: dict[str, bool] = field(default_factory=dict)

    def text(self) -> str:
        attributes = "".join(
            f'<xs:attribute name="{name}" type="xs:{self.types[name]}" use="{"required" if must else "optional"}"/>'
            for name, must in self.attributes.items()
        )
        return (
            f'<xs:schema {XS} targetNamespace="urn:t"><xs:element name="r"><xs:complexType>'
            f"{self.content.text(self.types)}{attributes}</xs:complexType></xs:element></xs:schema>"
        )


occurs, group_occurs = st.sampled_from(OCCURS), st.sampled_from(GROUP_OCCURS)
element = st.builds(Part, st.just("element"), st.sampled_from(NAMES), occurs=occurs)
anything = st.builds(Part, st.just("any"), occurs=occurs)
group = st.recursive(
    element | element | anything,
    lambda inner: st.builds(
        Part,
        st.sampled_from(["sequence", "choice"]),
        items=st.lists(inner, min_size=1, max_size=3).map(tuple),
        occurs=group_occurs,
    ),
    max_leaves=4,
)
top = st.builds(Part, st.just("sequence"), items=st.lists(group, max_size=3).map(tuple)) | st.builds(
    Part,
    st.just("all"),
    items=st.lists(
        st.builds(Part, st.just("element"), st.sampled_from(NAMES), occurs=st.sampled_from([(0, 1), (1, 1)])),
        max_size=3,
        unique_by=lambda part: part.name,
    ).map(tuple),
)
sketches = st.builds(
    Sketch,
    top,
    st.fixed_dictionaries({name: st.sampled_from(TYPES) for name in NAMES}),
    st.dictionaries(st.sampled_from(NAMES), st.booleans(), max_size=3),
)


@st.composite
def changed(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    """Draws a schema that differs from another in a few places."""

    def vary(part: Part) -> Part:
        match draw(st.integers(0, 9)):
            case 0:
                times = group_occurs if part.items else occurs
                return replace(part, occurs=draw(times)) if sketch.content.kind != "all" else part
            case 1 if part.items and sketch.content.kind != "all":
                at = draw(st.integers(0, len(part.items)))
                return replace(part, items=(*part.items[:at], draw(element | anything), *part.items[at:]))
            case 2 if part.items:
                return replace(part, items=part.items[1:])
            case 3 if part.kind in ("sequence", "choice") and part is not sketch.content:
                return replace(part, kind="choice" if part.kind == "sequence" else "sequence")
        return replace(part, items=tuple(map(vary, part.items)))

    types = sketch.types | draw(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(TYPES), max_size=1))
    attributes = sketch.attributes | draw(st.dictionaries(st.sampled_from(NAMES), st.booleans(), max_size=1))
    return Sketch(vary(sketch.content), types, attributes)


def document(sketch: Sketch, chance: Random) -> str:
    """Returns a random document that a schema allows."""

    def written(part: Part) -> str:
        low, high = part.occurs
        return "".join(once(part) for _ in range(chance.randint(low, low + 3 if high is None else high)))

    def once(part: Part) -> str:
        match part.kind:
            case "element":
                return f"<{part.name}>{chance.choice(TEXTS[sketch.types[part.name]])}</{part.name}>"
            case "any":
                return '<o:any xmlns:o="urn:o">?</o:any>'
            case "choice":
                return written(chance.choice(part.items))
            case "all":
                return "".join(map(written, chance.sample(part.items, len(part.items))))
        return "".join(map(written, part.items))

    attributes = "".join(
        f' {name}="{chance.choice(TEXTS[sketch.types[name]])}"'
        for name, must in sketch.attributes.items()
        if must or chance.random() < 0.5
    )
    return f'<t:r xmlns:t="urn:t"{attributes}>{written(sketch.content)}</t:r>'


def parsed(sketch: Sketch) -> xsd.XsdDocument:
    try:
        return xsd.parse(sketch.text().encode(), "xsd/1.0")
    except InvalidDocument:  # most often an ambiguous content model
        assume(False)
        raise


SETTINGS = settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck))


@SETTINGS
@given(st.data(), st.integers(0))
def test_documents_that_are_read(data: st.DataObject, seed: int) -> None:
    # SC-36: documents are valid for schemas that are called compatible
    writing = data.draw(sketches)
    reading = data.draw(changed(writing))
    writer, reader = parsed(writing), parsed(reading)
    assert xsd.incompatibilities(writer, writer) == []
    if xsd.incompatibilities(reader, writer):
        event("incompatible")
        return
    event("the same" if writing == reading else "compatible")
    ours, theirs, chance = XMLSchema10(writing.text()), XMLSchema10(reading.text()), Random(seed)
    for made in [document(writing, chance) for _ in range(8)]:
        if ours.is_valid(made):
            assert theirs.is_valid(made), made


@SETTINGS
@given(st.data(), st.integers(0))
def test_what_is_refused_is_not_read(data: st.DataObject, seed: int) -> None:
    # SC-36: if a change of elements is refused, there is a document that the reader refuses
    writing = data.draw(sketches)
    reading = replace(data.draw(changed(writing)), types=writing.types, attributes=writing.attributes)
    found = xsd.incompatibilities(parsed(reading), parsed(writing))
    if not found:
        return
    theirs, chance = XMLSchema10(reading.text()), Random(seed)
    refused = any(not theirs.is_valid(document(writing, chance)) for _ in range(400))
    assert refused, f"{found[0]}, but no document shows it: {writing.text()} {reading.text()}"
