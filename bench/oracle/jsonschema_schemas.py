"""Generated JSON Schemas in the terms of 2020-12, and their spelling in other releases."""

from __future__ import annotations

from random import Random
from typing import Any, Final

NAMES: Final = ("a", "b", "c", "d")
PATTERNS: Final = ("^a", "^x", "b$")
TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")
LISTED: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    1,
    2,
    2.5,
    3,
    "",
    "a",
    "ab",
    "abb",
    [],
    [1],
    {},
    {"a": 1},
    {"a": "a", "b": 2},
)
KEYWORDS: Final[dict[str, tuple[str, ...]]] = {
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "string": ("minLength", "maxLength", "pattern"),
    "array": (
        *("items", "items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains"),
        *("maxContains", "unevaluatedItems"),
    ),
    "object": (
        *("properties", "properties", "properties", "required", "additionalProperties", "patternProperties"),
        *("minProperties", "maxProperties", "propertyNames", "dependentRequired", "dependentSchemas"),
        "unevaluatedProperties",
    ),
}
COMBINED: Final = ("allOf", "anyOf", "oneOf", "not", "if")
#: Keywords with a schema, with a list of schemas and with schemas by name.
ONE: Final = (
    *("items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames", "unevaluatedProperties"),
    *("not", "if", "then", "else"),
)
MANY: Final = ("prefixItems", "allOf", "anyOf", "oneOf")
NAMED: Final = ("properties", "patternProperties", "dependentSchemas", "$defs")


NEW: Final = frozenset({"unevaluatedItems", "unevaluatedProperties", "minContains", "maxContains"})


def document(random: Random) -> dict[str, Any]:
    """A schema with a definition or two that it may refer to."""
    found = schema(random, 3)
    raw: dict[str, Any] = found if isinstance(found, dict) else {"allOf": [found]}
    raw["$defs"] = {name: schema(random, 1) for name in ("x", "y")}
    return pruned(raw)


def pruned(raw: dict[str, Any]) -> dict[str, Any]:
    """A document without definitions that nothing refers to, and with those that something does."""
    known, raw["$defs"] = raw.get("$defs", {}), {}
    while missing := {name for name in "xy" if f"#/$defs/{name}" in str(raw)} - raw["$defs"].keys():
        raw["$defs"] |= {name: known.get(name, {}) for name in missing}
    return raw


def schema(random: Random, depth: int) -> Any:
    """A schema of one kind of values, mostly of objects while there is depth."""
    chance = random.random()
    if depth > 0 and chance < 0.18:
        return combined(random, depth)
    if chance < 0.22:
        return random.choice([True, {}, {}, False])
    if chance < 0.30:
        return {"enum": random.sample(LISTED, random.randint(1, 4))}
    if chance < 0.33:
        return {"const": random.choice(LISTED)}
    if chance < 0.40:
        return {"$ref": f"#/$defs/{random.choice('xy')}"}
    kind = random.choice(["object", "object", "object", "array", *TYPES] if depth > 0 else TYPES[:5])
    return typed(random, kind, depth)


def typed(random: Random, kind: str, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {"type": kind}
    if random.random() < 0.1:
        found["type"] = [kind, random.choice([each for each in TYPES if each != kind])]
    elif random.random() < 0.05:
        del found["type"]
    for keyword in random.sample(KEYWORDS.get(kind, ()), min(len(KEYWORDS.get(kind, ())), random.randint(0, 3))):
        found[keyword] = of(keyword, random, depth)
    if depth > 1 and random.random() < 0.15:
        found.update(combined(random, depth - 1))
    return found


def combined(random: Random, depth: int) -> dict[str, Any]:
    keyword = random.choice(COMBINED)
    found = {keyword: of(keyword, random, depth)}
    if keyword == "if":
        found |= {each: schema(random, depth - 1) for each in ("then", "else") if random.random() < 0.8}
    return found


def of(keyword: str, random: Random, depth: int) -> Any:
    """Something that may stand for a keyword."""
    match keyword:
        case "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties":
            return random.randint(0, 2)
        case "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties":
            return random.randint(1, 4)
        case "minContains" | "maxContains":
            return random.randint(0, 2)
        case "multipleOf":
            return random.choice([1, 2, 3, 0.5])
        case "pattern":
            return random.choice(PATTERNS)
        case "uniqueItems":
            return random.random() < 0.8
        case "required":
            return random.sample(NAMES, random.randint(1, 2))
        case "dependentRequired":
            return {random.choice(NAMES): random.sample(NAMES, random.randint(1, 2))}
        case "propertyNames":
            return random.choice([{"maxLength": 1}, {"maxLength": 3}, {"enum": ["a", "b", "x"]}, {"pattern": "^a"}])
        case "properties":
            return {name: schema(random, depth - 1) for name in random.sample(NAMES, random.randint(1, 3))}
        case "patternProperties":
            return {random.choice(PATTERNS): schema(random, depth - 1)}
        case "dependentSchemas":
            return {random.choice(NAMES): schema(random, depth - 1)}
        case "prefixItems":
            return [schema(random, depth - 1) for _ in range(random.randint(1, 2))]
        case "allOf" | "anyOf" | "oneOf":
            return [schema(random, depth - 1) for _ in range(random.randint(1, 3))]
        case "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems":
            return random.choice([False, False, True, schema(random, depth - 1)])
    return schema(random, depth - 1)


#: Keywords that releases do not have.
MISSING: Final[dict[str, frozenset[str]]] = {
    "draft-06": NEW | {"if", "then", "else"},
    "draft-07": NEW,
    "draft/2019-09": frozenset(),
    "draft/2020-12": frozenset(),
}


def drop(place: dict[str, Any], release: str) -> None:
    """Takes the keywords out of a schema that a release does not have, and those that say nothing by themselves."""
    gone = set(MISSING[release])
    gone |= {"then", "else"} if "if" in gone or "if" not in place else set()
    gone |= {"minContains", "maxContains"} if "contains" not in place else set()
    for keyword in gone & place.keys():
        del place[keyword]
    for name in place.get("dependentSchemas", ()):  # older releases have one keyword for both
        place.get("dependentRequired", {}).pop(name, None)


def spelt(raw: Any, release: str) -> Any:
    """A schema in the spelling of a release."""
    if not isinstance(raw, dict):
        return raw
    old = release in ("draft-06", "draft-07")
    found: dict[str, Any] = {}
    for keyword, value in raw.items():
        if keyword in ONE:
            found[keyword] = spelt(value, release)
        elif keyword in MANY:
            found[keyword] = [spelt(each, release) for each in value]
        elif keyword in NAMED:
            found[keyword] = {name: spelt(each, release) for name, each in value.items()}
        elif keyword == "$ref" and old:
            found[keyword] = value.replace("$defs", "definitions")
        else:
            found[keyword] = value
    if release != "draft/2020-12" and "prefixItems" in found:
        prefix = found.pop("prefixItems")
        found |= {"additionalItems": found.pop("items")} if "items" in found else {}
        found["items"] = prefix
    return _older(found) if old else found


def _older(found: dict[str, Any]) -> dict[str, Any]:
    if "$defs" in found:
        found["definitions"] = found.pop("$defs")
    dependencies = {**found.pop("dependentRequired", {}), **found.pop("dependentSchemas", {})}
    if dependencies:
        found["dependencies"] = dependencies
    if "$ref" in found and len(found) > 1:
        # In these releases, everything next to a reference is ignored.
        found["allOf"] = [*found.get("allOf", ()), {"$ref": found.pop("$ref")}]
    return found
