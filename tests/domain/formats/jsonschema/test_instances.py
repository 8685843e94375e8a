"""JSON Schema, tested with values: if a change is called compatible, values of the writer are valid for the reader.

SC-36, SC-39. jsonschema-rs checks the comparison in two ways: it validates values of the writer with the schema of the
reader, and it tests whether one schema covers another. The latter does not support recursive schemas and closed content
and gives no reasons, so it only provides evidence against a verdict.
"""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema_specifications import REGISTRY

from annals.domain.formats import jsonschema
from tests.support.examples import examples

Schema = Any
QUICK = settings(deadline=None, max_examples=examples(300), suppress_health_check=list(HealthCheck))

DRAFT = jsonschema_rs.Draft7Validator(REGISTRY.contents("http://json-schema.org/draft-07/schema#"))

SMALL = st.integers(0, 3)
NAMES = st.sampled_from(["a", "b", "c"])


def keywords(kind: str, **others: st.SearchStrategy[Any]) -> st.SearchStrategy[Schema]:
    return st.fixed_dictionaries({"type": st.just(kind)}, optional=others)


NUMBERS = keywords("number", minimum=SMALL, exclusiveMinimum=SMALL, maximum=st.integers(3, 6))
INTEGERS = keywords("integer", minimum=SMALL, exclusiveMaximum=st.integers(4, 6), multipleOf=st.integers(1, 4))
STRINGS = keywords("string", minLength=SMALL, maxLength=st.integers(3, 5), pattern=st.sampled_from(["^a", "b$"]))
ENUMS = st.builds(
    lambda found: {"enum": found},
    st.lists(st.sampled_from([None, True, 1, 2.5, 3, "a", "abb", [], [1], {}, {"a": 1}]), min_size=1, max_size=4),
)
PLAIN = st.one_of(NUMBERS, INTEGERS, STRINGS, ENUMS, st.sampled_from([{"type": "null"}, {"type": "boolean"}]))


def objects(below: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return keywords(
        "object",
        properties=st.dictionaries(NAMES, below, max_size=3),
        required=st.lists(NAMES, max_size=2, unique=True),
        additionalProperties=st.one_of(st.booleans(), below),
        patternProperties=st.dictionaries(st.sampled_from(["^a", "^x"]), below, max_size=1),
        minProperties=st.integers(0, 2),
        maxProperties=st.integers(1, 4),
        propertyNames=st.sampled_from([{"maxLength": 1}, {"maxLength": 3}, {"enum": ["a", "b"]}]),
        dependencies=st.dictionaries(NAMES, st.lists(NAMES, min_size=1, max_size=2, unique=True), max_size=1),
    )


def arrays(below: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return keywords(
        "array",
        items=st.one_of(below, st.lists(below, min_size=1, max_size=2)),
        additionalItems=below,
        minItems=st.integers(0, 2),
        maxItems=st.integers(2, 4),
        uniqueItems=st.booleans(),
        contains=below,
    )


def combined(below: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    some = st.lists(below, min_size=1, max_size=3)
    return st.one_of(
        st.builds(lambda found: {"anyOf": found}, some),
        st.builds(lambda found: {"oneOf": found}, some),
        st.builds(lambda found: {"not": found}, PLAIN),
        st.builds(lambda one, two: {"if": one, "then": two, "else": True}, PLAIN, below),
        st.builds(lambda one, two: {"allOf": [one, two]}, PLAIN, PLAIN),
    )


SCHEMAS = st.recursive(PLAIN, lambda below: st.one_of(objects(below), arrays(below), combined(below)), max_leaves=6)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Schema, Schema]:
    """Draws a schema and a version with a part replaced or removed, so that many pairs are compatible."""
    schema = draw(SCHEMAS)
    changed = json.loads(json.dumps(schema))
    for _ in range(draw(st.integers(1, 2))):
        place = changed
        while isinstance(place, dict) and (inner := [key for key in place if isinstance(place[key], dict)]):
            if not draw(st.booleans()):
                break
            place = place[draw(st.sampled_from(inner))]
        if isinstance(place, dict) and place:
            key = draw(st.sampled_from(sorted(place)))
            if draw(st.booleans()):
                del place[key]
            elif isinstance(place[key], int) and not isinstance(place[key], bool):
                place[key] += draw(st.sampled_from([-1, 1]))
            elif isinstance(place[key], dict):
                place[key] = json.loads(json.dumps(draw(SCHEMAS)))  # a copy, because it may be changed later
    assume(DRAFT.is_valid(changed))
    return (schema, changed) if draw(st.booleans()) else (changed, schema)


def closed(schema: Schema, undeclared: frozenset[str] = frozenset()) -> Schema:
    """Returns a schema whose values have declared members only, as producers emit them.

    undeclared: names that even a map with any members does not have, because only its reader declares them.
    """
    if isinstance(schema, list):
        return [closed(each, undeclared) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: value if key in {"enum", "not", "if"} else closed(value, undeclared) for key, value in schema.items()}
    open_content = allows_all(schema.get("additionalProperties", True))
    named = schema.get("properties") or schema.get("patternProperties")
    if schema.get("type") == "object" and open_content and (named or "additionalProperties" not in schema):
        found["additionalProperties"] = False
        missing = set(schema.get("required", [])) - set(schema.get("properties", {}))
        # A required member counts as declared.
        found["properties"] = closed(schema.get("properties", {}), undeclared) | {
            name: True
            for name in missing
            if not any(name.startswith(p[1:]) for p in schema.get("patternProperties", {}))
        }
    elif schema.get("type") == "object" and open_content:
        found["properties"] = dict.fromkeys(undeclared - set(schema.get("required", [])), False)
    return found


def allows_all(schema: Schema) -> bool:
    """Whether a schema allows everything; one with `then` or `else` but without `if` does."""
    if not isinstance(schema, dict):
        return schema is True
    branches = {"then", "else"} & schema.keys() if "if" in schema else ()
    return schema.keys() <= {"if", "then", "else"} and all(allows_all(schema[branch]) for branch in branches)


def declared(schema: Schema) -> frozenset[str]:
    """Returns the names of members that a schema declares, at any depth."""
    if isinstance(schema, list):
        return frozenset().union(*map(declared, schema))
    if not isinstance(schema, dict):
        return frozenset()
    named = schema.get("properties", {})
    return frozenset(named).union(*map(declared, schema.values()))


def parsed(schema: Schema) -> jsonschema.SchemaGraph:
    return jsonschema.parse(json.dumps(schema).encode(), "jsonschema/draft-07")


@QUICK
@given(pairs())
def test_a_library_that_compares_schemas_does_not_object(pair: tuple[Schema, Schema]) -> None:
    # SC-36, SC-39: the library does not prove that a pair called readable is unreadable.
    if not hasattr(jsonschema_rs, "canonicalize"):
        pytest.skip("jsonschema-rs is too old to compare schemas: pip install 'jsonschema-rs>=0.60'")
    reader, writer = pair
    readable = not jsonschema.incompatibilities(parsed(reader), parsed(writer))
    contained = holds(reader, {"allOf": [writer, closed(writer, declared(reader))]})
    assert not (readable and contained == "no"), json.dumps(pair)


def holds(reader: Schema, writer: Schema) -> str:
    """Returns whether the reader's schema covers the writer's, by the library: yes, no or unknown."""
    try:
        left, right = (jsonschema_rs.canonicalize(each, draft=7, offline=True) for each in (reader, writer))
        return str(left.covers(right)).lower()
    except (ValueError, jsonschema_rs.canonical.CanonicalizationError):
        return "unknown"


@QUICK
@given(st.data(), pairs())
def test_values_of_the_writer_are_read(data: st.DataObject, pair: tuple[Schema, Schema]) -> None:
    # SC-36: an independent validator accepts the values of pairs that are called readable.
    reader, writer = pair
    assume(not jsonschema.incompatibilities(parsed(reader), parsed(writer)))
    emitted = closed(writer, declared(reader))
    emits, reads = jsonschema_rs.Draft7Validator({"allOf": [writer, emitted]}), jsonschema_rs.Draft7Validator(reader)
    for value in data.draw(st.lists(values(emitted, 3), min_size=8, max_size=8)):
        assert reads.is_valid(value) or not emits.is_valid(value), (value, pair)


ANY = st.sampled_from(
    [None, True, False, 0, 1, 2, 3, 4, 5, 6, 2.5, 0.5, -1, "", "a", "ab", "abb", "xbbbb", "ax", [], [1], {}, {"a": 1}]
)


def values(schema: Schema, depth: int) -> st.SearchStrategy[Any]:
    """Draws values that may be valid for a schema, most of them close to its bounds."""
    if not isinstance(schema, dict) or not depth:
        return ANY
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    for name in ("anyOf", "oneOf", "allOf"):
        if name in schema:
            return st.one_of([values(each, depth - 1) for each in schema[name]])
    match schema.get("type"):
        case "object":
            return _objects(schema, depth)
        case "array":
            return _arrays(schema, depth)
    return st.one_of(ANY, values(schema["then"], depth - 1)) if "then" in schema else ANY


def _objects(schema: Schema, depth: int) -> st.SearchStrategy[Any]:
    properties, more = schema.get("properties", {}), schema.get("additionalProperties")
    members = {
        name: values(properties.get(name, more), depth - 1) for name in {*properties, *schema.get("required", [])}
    }
    for pattern, below in schema.get("patternProperties", {}).items():
        members[pattern[1:] + "y"] = values(below, depth - 1)
    if isinstance(more, dict) or more is True:
        members |= {name: values(more, depth - 1) for name in ("c", "y", "long") if name not in members}
    needed = {name: each for name, each in members.items() if name in schema.get("required", [])}
    others = {name: each for name, each in members.items() if name not in needed}
    return st.fixed_dictionaries(needed, optional=others)


def _arrays(schema: Schema, depth: int) -> st.SearchStrategy[Any]:
    items = schema.get("items", True)
    first = items if isinstance(items, list) else []
    rest = values(schema.get("additionalItems", True) if first else items, depth - 1)
    return st.builds(
        lambda some, others, cut: [*some, *others][:cut],
        st.tuples(*(values(each, depth - 1) for each in first)),
        st.lists(rest, max_size=4),
        st.integers(0, 5),
    )


@QUICK
@given(SCHEMAS)
def test_a_schema_reads_itself(schema: Schema) -> None:
    # SC-36: any schema is compatible with itself and with its normal form.
    one = parsed(schema)
    other = jsonschema.parse(jsonschema.canonical_form(one), "jsonschema/draft-07")
    assert not jsonschema.incompatibilities(one, other)
    assert not jsonschema.incompatibilities(other, one)
