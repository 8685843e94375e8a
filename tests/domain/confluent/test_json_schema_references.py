"""Where the references of a JSON Schema lead: into its own text or to its references, never further."""

from __future__ import annotations

import json
from typing import Any

import pytest

from annals.domain.confluent.texts import json_schema
from annals.domain.formats.contract import InvalidDocument

DRAFT_04 = {"$schema": "http://json-schema.org/draft-04/schema#"}
DRAFT_07 = {"$schema": "http://json-schema.org/draft-07/schema#"}
DRAFT_2020 = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
ROOT = {"$id": "http://x.org/root"}
EMBEDDED = {"$defs": {"a": {"$id": "a.json", "type": "string"}}}


def parse(schema: Any, **references: Any) -> json_schema.JsonText:
    texts = {name.replace("_", "."): json.dumps(text).encode() for name, text in references.items()}
    return json_schema.parse(json.dumps(schema).encode(), texts)


@pytest.mark.parametrize(
    "schema",
    [
        ROOT | EMBEDDED | {"properties": {"p": {"$ref": "a.json"}}},
        ROOT | EMBEDDED | {"properties": {"p": {"$ref": "http://x.org/a.json"}}},
        ROOT | EMBEDDED | {"properties": {"p": {"$ref": "http://x.org/a.json#"}}},
        EMBEDDED | {"properties": {"p": {"$ref": "a.json"}}},
        DRAFT_2020 | ROOT | EMBEDDED | {"$ref": "a.json"},
        {"$id": "http://x.org/root.json#", "definitions": {"a": {}}, "$ref": "http://x.org/root.json#/definitions/a"},
        {"$id": "http://x.org/root.json#", "definitions": {"a": {}}, "not": {"$ref": "root.json#/definitions/a"}},
        DRAFT_04 | {"id": "http://x.org/root#", "definitions": {"a": {"id": "a.json"}}, "not": {"$ref": "a.json"}},
        ROOT | {"definitions": {"a": {"$id": "d/a", "items": {"$ref": "b"}}, "b": {"$id": "d/b"}}},
        ROOT | {"definitions": {"a": {"$id": "urn:a", "not": {"$ref": "#/definitions/b"}, "definitions": {"b": {}}}}},
        DRAFT_2020 | {"$defs": {"a": {"$id": "a", "$anchor": "n"}, "n": {"$anchor": "n"}}, "$ref": "a#n"},
    ],
)
def test_a_reference_leads_to_an_embedded_id(schema: Any) -> None:
    # CSR-510: only what nothing resolves is refused; an embedded `$id` is relative to the one around it
    parse(schema)


@pytest.mark.parametrize(
    "schema",
    [
        ROOT | {"properties": {"p": {"$id": "http://y.org/p", "$ref": "#/definitions/a"}}, "definitions": {"a": {}}},
        ROOT
        | {"properties": {"p": {"$id": "/properties/p", "not": {"$ref": "#/definitions/a"}}}, "definitions": {"a": {}}},
        {"properties": {"p": {"$id": "#/properties/p", "not": {"$ref": "#p"}}, "q": {"$id": "#p"}}},
        {"properties": {"$id": {"type": "string"}, "$ref": {"type": "string"}, "id": {"$ref": "#"}}},
    ],
)
def test_texts_with_unusual_ids_are_accepted(schema: Any) -> None:
    # CSR-510: generators write such ids, and references in their schemas mean the root of the text
    parse(schema)


@pytest.mark.parametrize(
    "schema",
    [
        *({"properties": {name: {"$ref": "#/nowhere"}}} for name in ("x", "default", "enum", "const", "examples")),
        *({"$defs": {name: {"$ref": "#/nowhere"}}} for name in ("default", "properties")),
        {"properties": {"properties": {"properties": {"default": {"$ref": "#/nowhere"}}}}},
        {"patternProperties": {"const": {"items": [{"$ref": "#/nowhere"}]}}},
        DRAFT_2020 | {"dependentSchemas": {"enum": {"$ref": "#/nowhere"}}},
        ROOT | EMBEDDED | {"$ref": "b.json"},
        ROOT | EMBEDDED | {"$ref": "http://y.org/a.json"},
        {"title": "x", "properties": {"p": {"$ref": "#/title"}}},
        DRAFT_2020 | {"properties": {"p": {"$ref": "http://["}}},
    ],
)
def test_a_reference_that_leads_nowhere_is_refused(schema: Any) -> None:
    # CSR-510: a `$ref` that nothing resolves, also in a property that is called like a keyword
    with pytest.raises(InvalidDocument, match="nothing resolves"):
        parse(schema)


@pytest.mark.parametrize("keyword", ["default", "const", "enum", "examples"])
def test_a_reference_in_data_is_none(keyword: str) -> None:
    # CSR-510: the values of these keywords are no schemas
    parse({"properties": {"p": {keyword: [{"$ref": "#/nowhere"}]}}})


def test_references_are_found_by_their_names_and_embedded_ids() -> None:
    # CSR-509: the name of a reference is the `$ref`; what its text embeds has an id of its own
    embedded = {"$id": "a.json", "type": "string"}
    other = {"$id": "http://y.org/other", "definitions": {"a": embedded}}
    parsed = parse({"items": [{"$ref": "o.json"}, {"$ref": "http://y.org/a.json"}]}, o_json=other)
    resolved = json_schema.resolved(parsed)
    assert resolved is not None
    assert resolved.document == {"items": [other, embedded]}


@pytest.mark.parametrize(
    ("schema", "resolved"),
    [
        (DRAFT_07 | {"$ref": "a.json", "maxLength": 3}, {"type": "string"}),
        (DRAFT_2020 | {"$ref": "a.json", "title": "x"}, {"type": "string"}),
        (
            DRAFT_2020 | {"$ref": "a.json", "maxLength": 3, "allOf": [{}]},
            DRAFT_2020 | {"maxLength": 3, "allOf": [{"type": "string"}, {}]},
        ),
        ({"properties": {"default": {"$ref": "a.json"}}}, {"properties": {"default": {"type": "string"}}}),
    ],
)
def test_the_text_with_references_put_in(schema: Any, resolved: Any) -> None:
    # CSR-509: it gives the same schema, so keywords next to `$ref` stay where their draft applies them
    text = json_schema.resolved(parse(schema, a_json={"type": "string"}))
    assert text is not None
    assert text.document == resolved
