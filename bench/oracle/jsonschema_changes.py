"""Changes of a JSON Schema in one place or a few, as people make them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any, Final

from bench.oracle import jsonschema_schemas as schemas


def changed(raw: dict[str, Any], random: Random) -> dict[str, Any]:
    """A copy with one to three changes."""
    found = copy.deepcopy(raw)
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        place = random.choice(list(places(found)))
        random.choice(_CHANGES)(place, random)
    return schemas.pruned(found)


def places(raw: Any) -> Iterator[dict[str, Any]]:
    """Every schema of a document that is an object, itself first."""
    if not isinstance(raw, dict):
        return
    yield raw
    for keyword, value in raw.items():
        if keyword in schemas.ONE:
            yield from places(value)
        elif keyword in schemas.MANY:
            for each in value:
                yield from places(each)
        elif keyword in schemas.NAMED:
            for each in value.values():
                yield from places(each)


def _member(place: dict[str, Any], random: Random) -> None:
    """Adds a member, or drops one."""
    members = place.get("properties", {})
    if members and random.random() < 0.4:
        del members[random.choice(list(members))]
    else:
        place["properties"] = members | {random.choice(schemas.NAMES): schemas.schema(random, 1)}


def _needed(place: dict[str, Any], random: Random) -> None:
    names = set(place.get("required", ()))
    names ^= {random.choice([*place.get("properties", ()), *schemas.NAMES])}
    place["required"] = sorted(names)


def _retyped(place: dict[str, Any], random: Random) -> None:
    known = place.get("type")
    kinds = known if isinstance(known, list) else [known] if known else []
    if known == "integer" and random.random() < 0.6:
        place["type"] = "number"
    elif len(kinds) > 1 and random.random() < 0.5:
        place["type"] = random.choice(kinds)
    elif kinds:
        place["type"] = sorted({*kinds, random.choice(schemas.TYPES)})
    else:
        place["type"] = random.choice(schemas.TYPES)


def _moved(place: dict[str, Any], random: Random) -> None:
    """Moves a bound by one."""
    bounds = [name for name, value in place.items() if isinstance(value, int) and not isinstance(value, bool)]
    bounds = [name for name in bounds if name not in ("const", "multipleOf")]
    if bounds:
        name = random.choice(bounds)
        place[name] = max(0, place[name] + random.choice([-1, 1]))


def _listed(place: dict[str, Any], random: Random) -> None:
    if "enum" in place and random.random() < 0.5 and len(place["enum"]) > 1:
        place["enum"].pop(random.randrange(len(place["enum"])))
    elif "enum" in place:
        place["enum"] = [
            *place["enum"],
            *(each for each in [random.choice(schemas.LISTED)] if each not in place["enum"]),
        ]
    elif "const" in place:
        place["enum"] = [place.pop("const")]


def _keyword(place: dict[str, Any], random: Random) -> None:
    """Adds a keyword, or drops one."""
    known = [name for name in place if name not in ("$defs", "type")]
    if known and random.random() < 0.5:
        del place[random.choice(known)]
        return
    kinds = place.get("type", "object")
    kind = kinds if isinstance(kinds, str) else random.choice(kinds)
    name = random.choice([*schemas.KEYWORDS.get(kind, ()), *schemas.COMBINED])
    place[name] = schemas.of(name, random, 1)


def _closed(place: dict[str, Any], random: Random) -> None:
    """Opens or closes an object."""
    if "additionalProperties" in place and random.random() < 0.5:
        del place["additionalProperties"]
    else:
        place[random.choice(["additionalProperties", "unevaluatedProperties"])] = random.choice([True, False])


def _wrapped(place: dict[str, Any], random: Random) -> None:
    """Makes a schema one of some, or takes it out from among them."""
    definitions = place.pop("$defs", None)
    keyword = random.choice(["allOf", "anyOf", "oneOf"])
    if len(place.get(keyword, ())) > 1 and random.random() < 0.6:
        place[keyword].pop(random.randrange(len(place[keyword])))
    elif keyword in place and random.random() < 0.6:
        place[keyword].append(schemas.schema(random, 1))
    else:
        inner = dict(place)
        place.clear()
        place[keyword] = [inner, *([schemas.schema(random, 1)] if random.random() < 0.7 else [])]
    if definitions is not None:
        place["$defs"] = definitions


def _inlined(place: dict[str, Any], random: Random) -> None:
    """Takes the types out of a schema that another keyword narrows."""
    for name in ("anyOf", "oneOf", "allOf"):
        if name in place and len(place[name]) == 1 and isinstance(place[name][0], dict):
            inner = place.pop(name)[0]
            place.update({key: value for key, value in inner.items() if key not in place})
            return
    place.pop("type", None)


def _replaced(place: dict[str, Any], random: Random) -> None:
    definitions = place.get("$defs")
    found = schemas.schema(random, 1)
    place.clear()
    place.update(found if isinstance(found, dict) else {"not": {}} if found is False else {})
    if definitions is not None:
        place["$defs"] = definitions


def _renamed(place: dict[str, Any], random: Random) -> None:
    """Gives a member another name, or swaps a member and a pattern."""
    members = place.get("properties", {})
    if members:
        below = members.pop(random.choice(list(members)))
        if random.random() < 0.5:
            members[random.choice(schemas.NAMES)] = below
        else:
            place["patternProperties"] = place.get("patternProperties", {}) | {random.choice(schemas.PATTERNS): below}


_CHANGES: Final = (
    *(_member, _member, _needed, _needed, _retyped, _moved, _moved, _listed, _listed, _keyword, _keyword, _keyword),
    *(_closed, _wrapped, _inlined, _replaced, _renamed),
)
