"""Generated XML Schemas as small trees, and their text.

A tree is a dict: an element with its type, a group of particles, a wildcard or a reference. A type is simple with
facets, restricted text with an attribute, content with attributes, or a named one that another extends.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final
from xml.sax.saxutils import quoteattr

NAMES: Final = ("a", "b", "c", "d")
OCCURS: Final = ((1, 1), (1, 1), (0, 1), (0, 1), (0, None), (1, None), (2, 3), (0, 2), (1, 2))
#: Groups do not come so and so often: xmlschema, which never goes back, would miss other ways to read them.
GROUP_OCCURS: Final = ((1, 1), (1, 1), (0, 1))
TEXTS: Final = ("string", "token", "NMTOKEN")
NUMBERS: Final = ("byte", "short", "int", "integer", "decimal", "unsignedByte", "positiveInteger")
OTHERS: Final = ("boolean", "date", "double", "float", "anyURI")
FACETS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(TEXTS, ("length", "minLength", "maxLength", "pattern", "enumeration")),
    **dict.fromkeys(NUMBERS, ("minInclusive", "maxInclusive", "minExclusive", "maxExclusive", "totalDigits") * 2),
    "decimal": ("minInclusive", "maxExclusive", "totalDigits", "fractionDigits", "enumeration"),
    "date": ("minInclusive", "maxInclusive"),
}
VALUES: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(TEXTS, ("", "a", "b", "ab", "abc", "abcd", "a b", "12", "x-1", "é")),
    **dict.fromkeys(
        NUMBERS, ("-129", "-1", "0", "1", "2", "5", "9", "10", "99", "100", "127", "128", "300", "40000", "+1")
    ),
    "decimal": ("-1", "0", "1", "1.5", "2.25", "9.99", "10", "12.345", "100", "1.0"),
    "boolean": ("true", "0"),
    "date": ("2019-12-31", "2020-01-01", "2020-06-01", "2021-02-03Z"),
    "double": ("1", "1.5", "1e3", "INF", "NaN", "-0"),
    "float": ("1", "1.5", "1e3", "-INF"),
    "anyURI": ("", "a", "http://x/y"),
    "list": ("", "1", "1 2", "1 2 3", "127 1"),
    "union": ("1", "2020-01-01", "-5", "300"),
}


def document(random: Random) -> dict[str, Any]:
    """A root element, and further global elements that it may refer to."""
    head = {"type": simple(random), "abstract": False, "block": "", "members": 1}
    return {"root": content(random, 2), "head": head, "named": {"block": "", "extended": random.random() < 0.7}}


def content(random: Random, depth: int) -> dict[str, Any]:
    kind = random.choice(["sequence", "sequence", "sequence", "choice", "all"])
    found = group(random, kind, depth) if kind != "all" else all_of(random)
    return {"kind": "content", "group": found, "attributes": attributes(random), "mixed": random.random() < 0.1}


def attributes(random: Random) -> dict[str, Any]:
    return {
        name: {"type": simple(random), "required": random.random() < 0.4, "fixed": None}
        for name in random.sample("xyz", random.choice([0, 0, 1, 2]))
    }


def group(random: Random, kind: str, depth: int) -> dict[str, Any]:
    items = [particle(random, depth) for _ in range(random.randint(1, 3))]
    return {"kind": kind, "items": items, "occurs": random.choice(GROUP_OCCURS)}


def all_of(random: Random) -> dict[str, Any]:
    items = [element(random, 0, name) for name in random.sample(NAMES, random.randint(1, 3))]
    for item in items:
        item["occurs"] = random.choice([(0, 1), (1, 1)])
    return {"kind": "all", "items": items, "occurs": (1, 1)}


def particle(random: Random, depth: int) -> dict[str, Any]:
    chance = random.random()
    if depth > 0 and chance < 0.15:
        return group(random, random.choice(["sequence", "choice"]), depth - 1)
    if chance < 0.22:
        return {"kind": "any", "occurs": random.choice(OCCURS)}
    if chance < 0.3:
        return {"kind": "ref", "occurs": random.choice(OCCURS)}
    return element(random, depth, random.choice(NAMES))


def element(random: Random, depth: int, name: str) -> dict[str, Any]:
    chance = random.random()
    kind: dict[str, Any] = simple(random)
    if depth > 0 and chance < 0.15:
        kind = content(random, depth - 1)
    elif chance < 0.3:
        kind = {"kind": "text", "facets": []}
    elif chance < 0.4:
        kind = {"kind": "named", "block": ""}
    nillable = random.random() < 0.1
    return {"kind": "element", "name": name, "type": kind, "occurs": random.choice(OCCURS), "nillable": nillable} | {
        "default": None,
        "fixed": None,
    }


def simple(random: Random) -> dict[str, Any]:
    base = random.choice([*TEXTS, *NUMBERS, "string", "int", "decimal", *OTHERS, "list", "union"])
    facets = [facet(random, base) for _ in range(random.choice([0, 0, 1, 2])) if base in FACETS]
    return {"kind": "simple", "base": base, "facets": facets}


def facet(random: Random, base: str) -> tuple[str, str]:
    name = random.choice(FACETS[base])
    match name:
        case "enumeration":
            return name, random.choice(VALUES[base])
        case "pattern":
            return name, random.choice(["[a-z]*", "\\w+", "[a-z]*|\\d+"])
        case "length" | "minLength" | "maxLength" | "totalDigits":
            return name, str(random.randint(1, 4))
        case "fractionDigits":
            return name, str(random.randint(0, 2))
    return name, random.choice(VALUES[base])


def text(schema: dict[str, Any]) -> str:
    """The schema's document."""
    head = schema["head"]
    flags = f' abstract="{str(head["abstract"]).lower()}"' + (f' block="{head["block"]}"' if head["block"] else "")
    members = "".join(f'<xs:element name="h{n}" type="H" substitutionGroup="h"/>' for n in range(head["members"]))
    named = _simple(head["type"]).replace("<xs:simpleType>", '<xs:simpleType name="H">', 1)
    root = f'<xs:element name="r">{_type(schema["root"])}</xs:element>'
    heads = f'<xs:element name="h" type="H"{flags}/>{members}'
    inside = f"{root}{named}{_named(schema['named'])}{heads}"
    return f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{inside}</xs:schema>'


def _named(named: dict[str, Any]) -> str:
    """Text with an attribute, for elements to restrict; and a type with one that extends it."""
    block = f' block="{named["block"]}"' if named["block"] else ""
    found = (
        '<xs:complexType name="T"><xs:simpleContent><xs:extension base="H"><xs:attribute name="u" type="xs:int"/>'
        f'</xs:extension></xs:simpleContent></xs:complexType><xs:complexType name="C"{block}><xs:sequence>'
        '<xs:element name="p" type="xs:int" minOccurs="0"/></xs:sequence></xs:complexType>'
    )
    if named["extended"]:
        found += (
            '<xs:complexType name="D"><xs:complexContent><xs:extension base="C"><xs:sequence>'
            '<xs:element name="q" type="xs:int"/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>'
        )
    return found


def _occurs(found: dict[str, Any]) -> str:
    low, high = found["occurs"]
    return f'minOccurs="{low}" maxOccurs="{"unbounded" if high is None else high}"'


def _particle(found: dict[str, Any]) -> str:
    match found["kind"]:
        case "element":
            flags = ' nillable="true"' if found["nillable"] else ""
            flags += "".join(
                f" {name}={quoteattr(found[name])}" for name in ("default", "fixed") if found[name] is not None
            )
            if found["type"]["kind"] == "named":
                flags += ' type="C"' + (f' block="{found["type"]["block"]}"' if found["type"]["block"] else "")
                return f'<xs:element name="{found["name"]}" {_occurs(found)}{flags}/>'
            return f'<xs:element name="{found["name"]}" {_occurs(found)}{flags}>{_type(found["type"])}</xs:element>'
        case "any":
            return f'<xs:any namespace="##other" processContents="lax" {_occurs(found)}/>'
        case "ref":
            return f'<xs:element ref="h" {_occurs(found)}/>'
    kind = found["kind"]
    return f"<xs:{kind} {_occurs(found)}>{''.join(map(_particle, found['items']))}</xs:{kind}>"


def _type(found: dict[str, Any]) -> str:
    match found["kind"]:
        case "simple":
            return _simple(found)
        case "text":
            facets = _facets(found["facets"])
            inner = f'<xs:simpleContent><xs:restriction base="T">{facets}</xs:restriction></xs:simpleContent>'
            return f"<xs:complexType>{inner}</xs:complexType>"
    mixed = ' mixed="true"' if found["mixed"] else ""
    return f"<xs:complexType{mixed}>{_particle(found['group'])}{_attributes(found)}</xs:complexType>"


def _attributes(found: dict[str, Any]) -> str:
    return "".join(
        f'<xs:attribute name="{name}" use="{"required" if each["required"] else "optional"}"'
        + (f" fixed={quoteattr(each['fixed'])}" if each["fixed"] is not None else "")
        + f">{_simple(each['type'])}</xs:attribute>"
        for name, each in found["attributes"].items()
    )


def _simple(found: dict[str, Any]) -> str:
    if found["base"] == "list":
        return '<xs:simpleType><xs:list itemType="xs:int"/></xs:simpleType>'
    if found["base"] == "union":
        return '<xs:simpleType><xs:union memberTypes="xs:int xs:date"/></xs:simpleType>'
    facets = _facets(found["facets"])
    return f'<xs:simpleType><xs:restriction base="xs:{found["base"]}">{facets}</xs:restriction></xs:simpleType>'


def _facets(facets: list[tuple[str, str]]) -> str:
    return "".join(f"<xs:{name} value={quoteattr(value)}/>" for name, value in facets)
