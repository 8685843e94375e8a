"""Changes of an XML Schema in one place or a few, as people make them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any, Final

from bench.oracle import xsd_schemas as schemas

#: What a built-in type is often changed into.
WIDER: Final = {
    **{"byte": "short", "short": "int", "int": "integer", "integer": "decimal", "decimal": "double"},
    **{"unsignedByte": "short", "positiveInteger": "integer", "float": "double", "NMTOKEN": "token", "token": "string"},
}


def changed(schema: dict[str, Any], random: Random) -> dict[str, Any]:
    """A copy with one to three changes, which may leave a document that is no schema any more."""
    found = copy.deepcopy(schema)
    for _ in range(random.choice([1, 1, 1, 1, 2])):
        place = random.choice(list(places(found["root"])))
        _CHANGES[place["kind"]](place, random)
        if random.random() < 0.1:
            _head(found["head"], random)
        if random.random() < 0.05:
            found["named"]["block"] = random.choice(["", "extension", "restriction", "#all"])
        elif random.random() < 0.05:
            found["named"]["extended"] = not found["named"]["extended"]
    return found


def places(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every type and particle below a type or a particle, itself first."""
    yield found
    match found["kind"]:
        case "element":
            yield from places(found["type"])
        case "content":
            yield from places(found["group"])
        case "sequence" | "choice" | "all":
            for item in found["items"]:
                yield from places(item)
    for attribute in found.get("attributes", {}).values():
        yield from places(attribute["type"])


def _element(place: dict[str, Any], random: Random) -> None:
    match random.choice(["occurs", "occurs", "name", "nillable", "default", "fixed", "type"]):
        case "occurs":
            place["occurs"] = random.choice(schemas.OCCURS)
        case "name":
            place["name"] = random.choice(schemas.NAMES)
        case "nillable":
            place["nillable"] = not place["nillable"]
        case "type":
            place["type"] = schemas.element(random, 1, "a")["type"]
        case name if place["type"]["kind"] == "simple":
            value = random.choice(schemas.VALUES[place["type"]["base"]])
            place |= {"default": None, "fixed": None} | ({name: value} if place[name] is None else {})


def _group(place: dict[str, Any], random: Random) -> None:
    items = place["items"]
    match random.choice(["add", "add", "add", "drop", "kind", "occurs", "order", "wrap"]):
        case "add" if place["kind"] == "all":
            items.append(schemas.all_of(random)["items"][0])
        case "add":
            added = schemas.particle(random, 0)
            if random.random() < 0.6:
                added["occurs"] = (0, 1)
            items.insert(random.randint(0, len(items)), added)
        case "drop" if len(items) > 1:
            items.pop(random.randrange(len(items)))
        case "kind" if all(item["kind"] == "element" for item in items):
            place["kind"] = random.choice(["sequence", "choice", "all"])
        case "occurs" if place["kind"] != "all":
            place["occurs"] = random.choice(schemas.GROUP_OCCURS)
        case "order":
            items.reverse()
        case "wrap" if place["kind"] != "all" and items:
            at = random.randrange(len(items))
            items[at] = {"kind": random.choice(["sequence", "choice"]), "items": [items[at]], "occurs": (1, 1)}


def _content(place: dict[str, Any], random: Random) -> None:
    if random.random() < 0.2:
        place["mixed"] = not place["mixed"]
    else:
        _attributes(place, random)


def _attributes(place: dict[str, Any], random: Random) -> None:
    known = place["attributes"]
    name = random.choice("xyz")
    if name not in known:
        known |= schemas.attributes(random)
        return
    match random.choice(["drop", "required", "required", "fixed"]):
        case "drop":
            del known[name]
        case "required":
            known[name]["required"] = not known[name]["required"]
        case _:
            base = known[name]["type"]["base"]
            known[name]["fixed"] = random.choice(schemas.VALUES[base]) if known[name]["fixed"] is None else None


def _simple(place: dict[str, Any], random: Random) -> None:
    base, facets = place["base"], place["facets"]
    match random.choice(["wider", "wider", "base", "add", "add", "drop", "move", "move"]):
        case "wider":
            place |= {"base": WIDER.get(base, base), "facets": [] if base in ("decimal", "token") else facets}
        case "base":
            place |= schemas.simple(random)
        case "add" if base in schemas.FACETS:
            facets.append(schemas.facet(random, base))
        case "drop" if facets:
            facets.pop(random.randrange(len(facets)))
        case "move" if facets:
            at = random.randrange(len(facets))
            name, value = facets[at]
            if value.isdigit():
                facets[at] = name, str(max(0, int(value) + random.choice([-1, 1])))
            elif base in schemas.FACETS:
                facets[at] = schemas.facet(random, base)


def _text(place: dict[str, Any], random: Random) -> None:
    facets = place["facets"]
    if facets and random.random() < 0.4:
        facets.pop()
    else:
        facets.append(schemas.facet(random, random.choice(list(schemas.FACETS))))


def _blocked(place: dict[str, Any], random: Random) -> None:
    place["block"] = random.choice(["", "extension", "restriction", "#all"])


def _times(place: dict[str, Any], random: Random) -> None:
    place["occurs"] = random.choice(schemas.OCCURS)


def _head(head: dict[str, Any], random: Random) -> None:
    match random.choice(["type", "abstract", "block", "members"]):
        case "type":
            _simple(head["type"], random)
        case "abstract":
            head["abstract"] = not head["abstract"]
        case "block":
            head["block"] = random.choice(["", "substitution", "restriction", "#all"])
        case _:
            head["members"] = random.randint(0, 2)


_CHANGES: Final = {
    **{"element": _element, "sequence": _group, "choice": _group, "all": _group, "content": _content},
    **{"text": _text, "named": _blocked, "simple": _simple, "any": _times, "ref": _times},
}
