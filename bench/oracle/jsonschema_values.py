"""Values that a JSON Schema is likely to allow, and values near to them."""

from __future__ import annotations

import copy
from random import Random
from typing import Any, Final

from bench.oracle import jsonschema_schemas as schemas

ANY: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, 2, 3, 4, 5, 6, -1, 2.5, 0.5, "", "a", "ab", "abb", "xab", "xbbbb", [], [1], ["a"]),
    *([1, "a"], [None, None], {}, {"a": 1}, {"b": "a"}, {"a": {}, "x": []}),
)
MEMBERS: Final = (*schemas.NAMES, "ab", "x", "long")
_BY_TYPE: Final[dict[str, tuple[Any, ...]]] = {
    "null": (None,),
    "boolean": (True, False),
    "integer": (0, 1, 2, 3, 4, 5, 6, -1),
    "number": (0, 1, 2, 3, 4, 2.5, 0.5, 1.5, 3.5, -1),
    "string": ("", "a", "ab", "abb", "xab", "xbbbb", "xx", "aaa"),
}


class Values:
    """Makes values of one document's schemas."""

    def __init__(self, document: Any, random: Random) -> None:
        self.definitions = document.get("$defs", {}) if isinstance(document, dict) else {}
        self.random = random

    def value(self, schema: Any, depth: int = 5) -> Any:
        random = self.random
        if not isinstance(schema, dict) or not depth or random.random() < 0.03:
            return copy.deepcopy(random.choice(ANY))
        if "enum" in schema:
            return copy.deepcopy(random.choice(schema["enum"]))
        if "const" in schema:
            return copy.deepcopy(schema["const"])
        if "$ref" in schema and random.random() < 0.8:
            return self.value(self.definitions.get(schema["$ref"].rpartition("/")[2]), depth - 1)
        flat = self._flat(schema, depth)
        kinds = flat.get("type")
        if kinds is None:
            kinds = [kind for kind, keywords in schemas.KEYWORDS.items() if any(each in flat for each in keywords)]
            kinds = kinds or list(schemas.TYPES)
        kind = kinds if isinstance(kinds, str) else random.choice(kinds)
        if kind == "object":
            return self._object(flat, depth)
        if kind == "array":
            return self._array(flat, depth)
        return random.choice(_BY_TYPE[kind])

    def _flat(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        """A schema with one choice of what it combines."""
        random, found = self.random, dict(schema)
        below = [*schema.get("allOf", ())]
        below += [random.choice(schema[name]) for name in ("anyOf", "oneOf") if schema.get(name)]
        below += [schema[name] for name in ("if", "then", "else") if name in schema and random.random() < 0.5]
        below += [each for each in schema.get("dependentSchemas", {}).values() if random.random() < 0.5]
        if "$ref" in schema:
            below.append(self.definitions.get(schema["$ref"].rpartition("/")[2]))
        for each in below:
            if isinstance(each, dict) and depth > 0:
                for name, value in self._flat(each, depth - 1).items():
                    if name == "properties":
                        found[name] = {**value, **found.get(name, {})}
                    elif name == "required":
                        found[name] = [*found.get(name, ()), *value]
                    else:
                        found.setdefault(name, value)
        return found

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        random = self.random
        members, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        rest = schema.get("additionalProperties", schema.get("unevaluatedProperties"))
        names = {name for name in members if random.random() < 0.6} | set(schema.get("required", ()))
        names |= {pattern.strip("^$") + random.choice(["", "b"]) for pattern in patterns if random.random() < 0.6}
        if rest is not False and (rest is not None or not members or random.random() < 0.2):
            names |= set(random.sample(MEMBERS, random.randint(0, 2)))
        for name, needed in schema.get("dependentRequired", {}).items():
            names |= set(needed) if name in names else set()
        below = next(iter(patterns.values()), rest)
        return {name: self.value(members.get(name, below), depth - 1) for name in sorted(names)}

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        random = self.random
        prefix, rest = schema.get("prefixItems", []), schema.get("items", schema.get("unevaluatedItems"))
        found = [self.value(each, depth - 1) for each in prefix]
        found += [self.value(rest, depth - 1) for _ in range(random.randint(0, 3)) if rest is not False]
        if "contains" in schema:
            for _ in range(random.randint(0, 2)):
                found.insert(random.randint(0, len(found)), self.value(schema["contains"], depth - 1))
        least, most = schema.get("minItems", 0), schema.get("maxItems", 9)
        return found[: max(least, random.randint(0, most))]


def near(value: Any, random: Random) -> Any:
    """A value that differs in one place."""
    found = copy.deepcopy(value)
    if isinstance(found, dict):
        if found and random.random() < 0.6:
            name = random.choice(list(found))
            if random.random() < 0.5:
                del found[name]
            else:
                found[name] = near(found[name], random)
        else:
            found[random.choice(MEMBERS)] = copy.deepcopy(random.choice(ANY))
        return found
    if isinstance(found, list) and found:
        at = random.randrange(len(found))
        return [*found[:at], *([near(found[at], random)] if random.random() < 0.6 else []), *found[at + 1 :]]
    return copy.deepcopy(random.choice(ANY))
