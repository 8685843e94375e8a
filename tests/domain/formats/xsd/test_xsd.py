"""XML Schema: valid documents, and compatible changes between them.

Rules SC-10, SC-14, SC-16, SC-36. No independent registry has a checker for XSD, so SC-39 does not apply. Instead,
xmlschema reads documents of one schema with another (test_instances.py).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.domain.formats import xsd
from annals.domain.formats.contract import MAX_INCOMPATIBILITIES, InvalidDocument

TABLE: dict[str, list[Any]] = yaml.load((Path(__file__).parent / "xsd.yaml").read_text(), yaml.CSafeLoader)
HEAD = (
    '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:t="urn:t" targetNamespace="urn:t"'
    ' elementFormDefault="qualified">'
)
#: Definitions that the rows may refer to.
SHARED = """
<xs:complexType name="Money"><xs:simpleContent><xs:extension base="xs:decimal"><xs:attribute name="currency"/>
</xs:extension></xs:simpleContent></xs:complexType>
<xs:complexType name="Node"><xs:sequence><xs:element name="n" type="t:Node" minOccurs="0"/></xs:sequence>
</xs:complexType><xs:group name="G"><xs:sequence>
<xs:element name="g1" type="xs:int"/><xs:element name="g2" type="xs:int"/></xs:sequence></xs:group>
"""


def schema(inside: str, version: str = "1.1") -> xsd.XsdDocument:
    return xsd.parse(f"{HEAD}\n{inside}\n</xs:schema>".encode(), f"xsd/{version}")


def order(content: str, version: str = "1.1") -> xsd.XsdDocument:
    return schema(
        f'<xs:element name="order"><xs:complexType>\n{content}\n</xs:complexType></xs:element>{SHARED}', version
    )


def cases(section: str) -> list[Any]:
    return [
        pytest.param(row, version, id=f"{version}-{row['change']}")
        for row in TABLE[section]
        for version in row.get("versions", ["1.0", "1.1"])
    ]


def check_row(row: dict[str, Any], old: xsd.XsdDocument, new: xsd.XsdDocument) -> None:
    backward, forward = xsd.incompatibilities(new, old), xsd.incompatibilities(old, new)
    assert ("B" * (not backward) + "F" * (not forward)) == row["allowed"], [*backward, *forward]
    reasons = [*backward, *forward]
    assert all(one.reader is None or one.reader.fragment for one in reasons)
    assert all(one.writer is None or one.writer.fragment for one in reasons)
    assert row.get("rule") in {None, *(one.rule for one in reasons)}, reasons


@pytest.mark.parametrize(("row", "version"), cases("changes"))
def test_a_change_of_content(row: dict[str, Any], version: str) -> None:
    # SC-36: content is closed unless declared open; wider facets are backward compatible, narrower ones forward
    check_row(row, order(row["old"], version), order(row["new"], version))


@pytest.mark.parametrize(("row", "version"), cases("schemas"))
def test_a_change_of_a_schema(row: dict[str, Any], version: str) -> None:
    # SC-36: root elements and the definitions that they use
    check_row(row, schema(row["old"], version), schema(row["new"], version))


@pytest.mark.parametrize("row", [*TABLE["changes"], *TABLE["schemas"]], ids=lambda row: row["change"])
def test_a_schema_reads_itself(row: dict[str, Any]) -> None:
    # SC-36: an unchanged schema is compatible both ways
    for side in ("old", "new"):
        made = order if row in TABLE["changes"] else schema
        assert xsd.incompatibilities(made(row[side]), made(row[side])) == []


def test_another_target_namespace() -> None:
    # SC-36: a renamed namespace renames everything
    inside = '<xs:element name="a" type="xs:int"/>'
    old = schema(inside)
    new = xsd.parse(f"{HEAD.replace('urn:t', 'urn:u')}{inside}</xs:schema>".encode(), "xsd/1.0")
    assert [one.rule for one in xsd.incompatibilities(new, old)] == ["target-namespace-changed"]
    assert [one.rule for one in xsd.incompatibilities(old, new)] == ["target-namespace-changed"]


def test_an_incompatibility_shows_both_places() -> None:
    # V-14: the rule, and line and fragment in both documents
    old = order('<xs:sequence>\n<xs:element name="a" type="xs:long"/></xs:sequence>')
    new = order('<xs:sequence>\n\n<xs:element name="a"\n type="t:Small"/></xs:sequence>'.replace("t:Small", "xs:int"))
    (found,) = xsd.incompatibilities(new, old)
    assert found.rule == "bounds-narrowed"
    assert found.text == "order/a may be less than -2147483648, which the reader does not allow"
    assert (found.writer.line, found.reader.line) == (4, 5)  # type: ignore[union-attr]
    assert found.writer.fragment == '<xs:element name="a" type="xs:long"/></xs:sequence>'  # type: ignore[union-attr]
    assert found.reader.fragment == '<xs:element name="a"'  # type: ignore[union-attr]


def test_the_number_of_differences_is_limited() -> None:
    # V-14: the response has a limited size
    many = "".join(f'<xs:element name="e{n}" type="xs:int"/>' for n in range(100))
    assert len(xsd.incompatibilities(order(""), order(f"<xs:sequence>{many}</xs:sequence>"))) == MAX_INCOMPATIBILITIES


@pytest.mark.parametrize("name", ["xsd/1.0", "xsd/1.1", "XMLSchema/1.0", "XMLSchema/1.1"])
@pytest.mark.parametrize("document", TABLE["accepted"])
def test_documents_that_are_schemas(document: str, name: str) -> None:
    # SC-10, SC-16: a valid document in each version, both spellings of the format
    parsed = xsd.parse(document.encode(), name)
    again = xsd.parse(xsd.canonical_form(parsed), name)
    assert xsd.canonical_form(again) == xsd.canonical_form(parsed)
    assert xsd.incompatibilities(again, parsed) == xsd.incompatibilities(parsed, again) == []


@pytest.mark.parametrize("row", TABLE["refused"], ids=lambda row: row["document"][:80] or "empty")
def test_documents_that_are_not(row: dict[str, str]) -> None:
    # SC-14, SC-16: empty, broken, in another language, of another version
    for version in [row["version"]] if "version" in row else ["1.0", "1.1"]:
        with pytest.raises(InvalidDocument, match=row["why"]) as caught:
            xsd.parse(row["document"].encode(), f"xsd/{version}")
        assert caught.value.location is not None and caught.value.location.line is not None, caught.value.text
    if "version" in row:
        xsd.parse(row["document"].encode(), "xsd/1.1")


def test_a_violation_names_its_line() -> None:
    # SC-10: with line and fragment
    with pytest.raises(InvalidDocument) as caught:
        schema('\n<xs:element name="a" type="xs:int"/>\n  <xs:element name="b" type="t:Nix"/>')
    assert caught.value.location is not None
    assert (caught.value.location.line, caught.value.location.fragment) == (4, '<xs:element name="b" type="t:Nix"/>')


@pytest.mark.parametrize("texts", TABLE["same"])
def test_canonical_forms(texts: list[str]) -> None:
    # V-14: documents that mean the same have the same canonical form
    shared = '<xs:complexType name="T"/>'
    first, second = (xsd.canonical_form(schema(text + shared)) for text in texts)
    assert first == second
    other = xsd.parse(first.replace(b"tns:", b"zz:").replace(b":tns=", b":zz="), "xsd/1.1")
    assert xsd.canonical_form(other) == first
    assert xsd.canonical_form(schema(shared)) != first


def inside(text: str) -> bytes:
    return f"{HEAD}{text}</xs:schema>".encode()


def text_type(facets: str) -> bytes:
    return inside(f'<xs:simpleType name="a"><xs:restriction base="xs:string">{facets}</xs:restriction></xs:simpleType>')


def hostile() -> dict[str, bytes]:
    nested = "<xs:sequence>" * 5000 + "</xs:sequence>" * 5000
    chain = "".join(
        f'<xs:complexType name="T{n}"><xs:sequence><xs:element name="e" type="t:T{n + 1}"/></xs:sequence>'
        "</xs:complexType>"
        for n in range(300)
    )
    bases = "".join(
        f'<xs:simpleType name="T{n}"><xs:restriction base="t:T{n + 1}"/></xs:simpleType>' for n in range(1500)
    )
    last = '<xs:simpleType name="T1500"><xs:restriction base="xs:int"/></xs:simpleType>'
    path, often = "a/" * 2000 + "a", "9" * 4000
    deep = "(" * 3000 + "1" + ")" * 3000
    group = f'<xs:group name="g"><xs:sequence><xs:element name="a" maxOccurs="{often}"/></xs:sequence></xs:group>'
    key = f'<xs:key name="k"><xs:selector xpath="{path}"/><xs:field xpath="@b"/></xs:key>'
    return {
        "deep groups": inside(f'<xs:group name="g">{nested}</xs:group>'),
        "a long chain of types": inside(f'{chain}<xs:complexType name="T300"/>'),
        "a long chain of bases": inside(bases + last),
        "a huge number": text_type(f'<xs:maxLength value="{"9" * 9000}"/>'),
        "huge occurrences": inside(group),
        "a huge repetition in a pattern": text_type('<xs:pattern value="(a{99999999999})*"/>'),
        "a pattern of brackets": text_type(f'<xs:pattern value="{deep}"/>'),
        "laughs": b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><x>&b;</x>',
        "an external entity": b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>',
        "no text": b"\xff\xfe\xff",
        "not UTF-8": b"<a>\xe9</a>",
        "zero bytes": b"\0" * 1000,
        "a zero in a name": inside('<xs:element name="a\0"/>'),
        "a strange encoding": b'<?xml version="1.0" encoding="zip"?><a>\xe9</a>',
        "half a character": inside('<xs:element name="a"/>')[:-3] + b"\xe2\x82",
        "a surrogate": inside('<xs:element name="&#xD800;"/>'),
        "many attributes": inside("<xs:element " + " ".join(f'a{n}=""' for n in range(3000)) + "/>"),
        "itself included": inside('<xs:include schemaLocation=""/><xs:element name="a" type="t:T"/>'),
        "a path in a key": inside(f'<xs:element name="a">{key}</xs:element>'),
        "a deep test": inside(f'<xs:complexType name="a"><xs:assert test="{deep}"/></xs:complexType>'),
        "a document in a test": inside(
            "<xs:complexType name='a'><xs:assert test=\"doc('file:///etc/passwd')\"/></xs:complexType>"
        ),
    }


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("what", hostile())
def test_hostile_documents(what: str, version: str) -> None:
    # V-14: each document is accepted or refused within seconds, without another exception
    document = hostile()[what]
    schema("")  # loads the libraries
    began = time.process_time()
    try:
        parsed = xsd.parse(document, f"xsd/{version}")
        assert xsd.incompatibilities(parsed, parsed) == []
        xsd.canonical_form(parsed)
    except InvalidDocument:
        pass
    assert time.process_time() - began < 10


#: Audit events of the interpreter about opened files and sockets, recorded while `listening` is not empty.
opened: list[str] = []
listening: list[bool] = []


def listen(event: str, arguments: object) -> None:
    if listening and (event in ("open", "urllib.Request") or event.startswith("socket.")):
        opened.append(f"{event} {arguments}")


sys.addaudithook(listen)  # for the rest of the process: an audit hook cannot be removed


@pytest.mark.parametrize(
    "reaching",
    [
        '<xs:import namespace="urn:o" schemaLocation="http://127.0.0.1:9/o.xsd"/>',
        '<xs:import namespace="http://www.w3.org/1999/xlink" schemaLocation="http://127.0.0.1:9/xlink.xsd"/>',
        '<xs:include schemaLocation="file:///etc/passwd"/>',
        '<xs:redefine schemaLocation="/etc/passwd"/>',
        '<xs:override schemaLocation="passwd"/>',
        """<xs:complexType name="a"><xs:assert test="doc('file:///etc/passwd')"/></xs:complexType>""",
        """<xs:simpleType name="s"><xs:restriction base="xs:int"><xs:assertion test="doc('file:///etc/passwd')"/>
        <xs:assertion test="collection('file:///etc')"/></xs:restriction></xs:simpleType>
        <xs:element name="a" type="t:s" default="3"/>""",
        """<xs:element name="a" type="xs:anyType">
        <xs:alternative test="doc-available('http://127.0.0.1:9/')" type="xs:int"/></xs:element>""",
    ],
)
def test_nothing_is_opened(reaching: str) -> None:
    # V-14: no file and no address that a document names is opened
    located = HEAD.replace(
        ">", ' xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:schemaLocation="urn:x file:///x">'
    )
    schema("")
    listening.append(True)
    try:
        xsd.parse(f"{located}{reaching}</xs:schema>".encode(), "xsd/1.1")
    except InvalidDocument:
        pass
    finally:
        listening.clear()
    assert opened == []


def test_the_encoding_of_a_document() -> None:
    # SC-10: bytes in the declared encoding, and text that was converted to another encoding
    text = '<?xml version="1.0" encoding="ISO-8859-1"?>\n' + HEAD + '\n<xs:element name="é" type="t:Ü"/></xs:schema>'
    for document in (text.encode("iso-8859-1"), text.encode(), text.encode("utf-16"), b"\xef\xbb\xbf" + text.encode()):
        with pytest.raises(InvalidDocument, match="Ü") as caught:
            xsd.parse(document, "xsd/1.0")
        assert caught.value.location is not None and caught.value.location.line == 3


def test_comparisons_are_quick() -> None:
    # V-14: comparing one new document with a thousand takes about a second; the bound is generous
    def version(extra: str) -> xsd.XsdDocument:
        elements = "".join(
            f'<xs:element name="e{n}" type="xs:{kind}" minOccurs="{n % 2}"/>\n'
            for n, kind in enumerate(["int", "string", "date", "decimal", "boolean"] * 5)
        )
        return order(f"<xs:sequence>{elements}{extra}</xs:sequence>")

    old, new = version(""), version('<xs:element name="x" type="xs:int" minOccurs="0"/>')
    began = time.process_time()
    for _ in range(1000):
        xsd.incompatibilities(new, old)
    assert time.process_time() - began < 10


def sequence(length: int, name: str) -> xsd.XsdDocument:
    inside = "".join(f'<xs:element name="{name}{n}" type="xs:int" minOccurs="{n % 2}"/>' for n in range(length))
    return order(f"<xs:sequence>{inside}</xs:sequence>", "1.0")


def test_thousands_of_elements_take_seconds() -> None:
    # V-14: a check ends in time, because it compares only elements whose names may clash, not all pairs.
    start = time.process_time()
    older, newer = sequence(3000, "e"), sequence(3001, "e")
    assert not xsd.incompatibilities(newer, older) and xsd.incompatibilities(older, newer)
    assert time.process_time() - start < 15


CLASHES = {
    "one name of two types": '<xs:element name="a" type="xs:int"/><xs:element name="a" type="xs:long"/>',
    "the same name after an optional one": '<xs:element name="a" minOccurs="0"/><xs:element name="a"/>',
    "a choice of the same name": '<xs:choice><xs:element name="a"/><xs:element name="a"/></xs:choice>',
    "what may stand for another": (
        '<xs:choice><xs:element ref="t:h" minOccurs="0"/><xs:element ref="t:s" minOccurs="0"/></xs:choice>'
    ),
    "one that another may stand for": (
        '<xs:choice><xs:element ref="t:s" minOccurs="0"/><xs:element ref="t:h" minOccurs="0"/></xs:choice>'
    ),
    "a wildcard before a name": '<xs:any minOccurs="0"/><xs:element name="a"/>',
    "a name before a wildcard": '<xs:element name="a" minOccurs="0"/><xs:any minOccurs="0"/>',
}
GLOBAL = '<xs:element name="h" type="xs:token"/><xs:element name="s" type="xs:token" substitutionGroup="t:h"/>'


@pytest.mark.parametrize("content", CLASHES.values(), ids=CLASHES)
def test_ambiguous_particles_are_refused(content: str) -> None:
    # SC-16: Unique Particle Attribution and Element Declarations Consistent are checked, as the library does.
    inside = f'<xs:element name="r"><xs:complexType><xs:sequence>{content}</xs:sequence></xs:complexType></xs:element>'
    with pytest.raises(InvalidDocument, match="not a valid schema"):
        schema(inside + GLOBAL, "1.0")
