"""Families of XML Schemas, with documents that xmlschema judges.

Their wildcards take elements of other namespaces only, so content is closed and there is no open world. Text is written
with the white space that its type leaves.

Where xmlschema is not right, a rule keeps it out. Groups do not repeat, as it never goes back in them. A schema with
wildcards or substitutes writes only the documents that are made for it, as the library takes text before a wildcard,
and more elements than it allows of both. Several numbers do not count for schemas with decimals, of which it takes
several for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

from xmlschema import XMLSchema10, XMLSchemaException

from annals.domain.formats import xsd
from annals.domain.formats.contract import InvalidDocument
from bench.oracle import xsd_schemas as schemas
from bench.oracle.run import Member, Refusal
from bench.oracle.xsd_changes import changed

#: More than of other formats, as the library takes most of the time to build them.
MEMBERS: Final = 10
DOCUMENTS: Final = 4
#: Numbers as a list has them.
NUMBERS: Final = re.compile(r"\d \d")
#: Wildcards and heads of substitution groups.
LOOSE: Final = re.compile(r"<xs:any |<xs:element ref=")
XSI: Final = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'


@dataclass(eq=False)
class Schema:
    raw: dict[str, Any]
    documents: list[str] = field(default_factory=list)
    own: set[str] = field(default_factory=set)

    @cached_property
    def text(self) -> str:
        return schemas.text(self.raw)

    @cached_property
    def parsed(self) -> xsd.XsdDocument:
        return xsd.parse(self.text.encode(), "XSD/1.0")

    @cached_property
    def theirs(self) -> Any:
        return XMLSchema10(self.text)

    @cached_property
    def valid(self) -> list[bool]:
        return [self._takes(document) for document in self.documents]

    def _takes(self, document: str) -> bool:
        try:
            return bool(self.theirs.is_valid(document))
        except XMLSchemaException:  # an `xsi:type` that is not there
            return False

    def unreadable(self, writer: Member) -> bool:
        assert isinstance(writer, Schema)
        return bool(xsd.incompatibilities(self.parsed, writer.parsed))

    def reads(self, writer: Member) -> Iterator[Refusal | None]:
        assert isinstance(writer, Schema)
        for document, written, read in zip(self.documents, writer.valid, self.valid, strict=True):
            foreign = LOOSE.search(writer.text) and document not in writer.own
            numbers = NUMBERS.search(document) and "xs:decimal" in writer.text
            if written and not (foreign or numbers):
                yield None if read else Refusal(document, True)


def family(random: Random) -> Sequence[Schema]:
    """Some schemas that differ in one place or a few, with documents of all of them."""
    members: list[Schema] = []
    for _ in range(2 * MEMBERS):
        if len(members) < MEMBERS:
            base = random.choice([members[0], random.choice(members)]) if members else None
            raw = changed(base.raw, random) if base else schemas.document(random)
            member = Schema(raw)
            members += [member] if _holds(member) else []
    documents: dict[str, None] = {}
    for member in members:
        made = [document(member.raw, random) for _ in range(DOCUMENTS)]
        member.own.update(made)
        documents.update(dict.fromkeys(made))
    for member in members:
        member.documents.extend(documents)
    return members


def _holds(member: Schema) -> bool:
    try:
        return bool(member.parsed and member.theirs)
    except (InvalidDocument, XMLSchemaException):
        return False


def document(schema: dict[str, Any], random: Random) -> str:
    """A document that is likely to be valid."""
    return f"<r{_attributes(schema['root'], random)}>{_content(schema['root'], schema, random)}</r>"


def _content(found: dict[str, Any], schema: dict[str, Any], random: Random) -> str:
    match found["kind"]:
        case "simple":
            listed = [value for name, value in found["facets"] if name == "enumeration"]
            return escape(random.choice(listed or schemas.VALUES[found["base"]]))
        case "text":
            listed = [value for name, value in found["facets"] if name == "enumeration"]
            return escape(random.choice(listed)) if listed else _content(schema["head"]["type"], schema, random)
        case "named":
            return random.choice(["", "<p>1</p>"])
    words = random.choice(["", "words"]) if found["mixed"] else ""
    return words + _particle(found["group"], schema, random)


def _particle(found: dict[str, Any], schema: dict[str, Any], random: Random) -> str:
    low, high = found["occurs"]
    return "".join(_once(found, schema, random) for _ in range(random.randint(low, low + 2 if high is None else high)))


def _once(found: dict[str, Any], schema: dict[str, Any], random: Random) -> str:
    match found["kind"]:
        case "element":
            return _element(found, schema, random)
        case "any":
            return '<o:any xmlns:o="urn:o">?</o:any>'
        case "ref":
            name = random.choice(["h", *(f"h{n}" for n in range(schema["head"]["members"]))])
            return f"<{name}>{_content(schema['head']['type'], schema, random)}</{name}>"
        case "choice":
            return _particle(random.choice(found["items"]), schema, random) if found["items"] else ""
    items = found["items"]
    ordered = random.sample(items, len(items)) if found["kind"] == "all" else items
    return "".join(_particle(item, schema, random) for item in ordered)


def _element(found: dict[str, Any], schema: dict[str, Any], random: Random) -> str:
    name, attributes = found["name"], _attributes(found["type"], random)
    if found["nillable"] and random.random() < 0.3:
        return f'<{name}{attributes} {XSI} xsi:nil="true"/>'
    if found["type"]["kind"] == "named" and random.random() < 0.4:
        return f'<{name} {XSI} xsi:type="D"><q>1</q></{name}>'
    given = found["fixed"] if found["fixed"] is not None else found["default"]
    if given is not None and random.random() < 0.6:
        return f"<{name}{attributes}/>" if random.random() < 0.5 else f"<{name}{attributes}>{escape(given)}</{name}>"
    return f"<{name}{attributes}>{_content(found['type'], schema, random)}</{name}>"


def _attributes(found: dict[str, Any], random: Random) -> str:
    return "".join(
        f" {name}={quoteattr(each['fixed'] if each['fixed'] is not None else _value(each['type'], random))}"
        for name, each in found.get("attributes", {}).items()
        if each["required"] or random.random() < 0.5
    )


def _value(found: dict[str, Any], random: Random) -> str:
    listed = [value for name, value in found["facets"] if name == "enumeration"]
    return str(random.choice(listed or schemas.VALUES[found["base"]]))
