"""Comparisons and compatibility checks agree on generated pairs of documents of each format.

UI-93. The tests of the compatibility checks use the same pairs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import pytest
from graphql import find_breaking_changes
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from annals.domain import formats
from annals.domain.formats import graphql
from annals.domain.formats.changes.compare import compare_documents
from annals.domain.formats.contract import Incompatibility, InvalidDocument
from tests.domain.formats import test_graphql as graphql_tables
from tests.domain.formats.avro.avro_documents import evolutions
from tests.domain.formats.jsonschema.test_instances import pairs
from tests.domain.formats.jsonstructure.test_instances import TABLE as JSON_STRUCTURE
from tests.domain.formats.jsonstructure.test_instances import TOP
from tests.domain.formats.openapi.test_compatibility import TABLE as OPENAPI_TABLE
from tests.domain.formats.openapi.test_compatibility import document
from tests.domain.formats.protobuf.test_instances import changes as protobuf_changes
from tests.domain.formats.xsd.test_instances import changed, sketches
from tests.support.examples import examples

OPENAPI: Final = [json.dumps(document(row, side)) for row in OPENAPI_TABLE["changes"] for side in ("older", "newer")]

Pair = tuple[str, str, str, str]

GRAPHQL: Final = "GraphQL/September2025"
#: Documents of the table; any two of them make a pair.
GRAPHQL_TEXTS: Final = sorted(
    {graphql_tables.with_query(row[side]) for row in graphql_tables.TABLE["changes"] for side in ("old", "new")}
)
STRUCTURES: Final = [json.dumps(TOP | row[side]) for row in JSON_STRUCTURE["changes"] for side in ("older", "newer")]


def same_format(format: str, texts: st.SearchStrategy[Any]) -> st.SearchStrategy[Pair]:
    """Adds the format to pairs of texts."""
    return texts.map(lambda pair: (format, pair[0], format, pair[1]))


def as_json(pair: tuple[Any, Any]) -> tuple[str, str]:
    return json.dumps(pair[0]), json.dumps(pair[1])


PAIRS: Final[dict[str, st.SearchStrategy[Pair]]] = {
    "avro": same_format("Avro/1.11", evolutions().map(as_json)),
    "jsonschema": same_format("JsonSchema/draft-07", pairs().map(as_json)),
    "jsonstructure": same_format("JsonStructure/draft-04", st.tuples(*[st.sampled_from(STRUCTURES)] * 2)),
    "protobuf": protobuf_changes().map(
        lambda change: (f"Protobuf/{change[1]}", change[0], f"Protobuf/{change[3]}", change[2])
    ),
    "xsd": same_format(
        "XSD/1.0",
        sketches.flatmap(lambda sketch: st.tuples(st.just(sketch), changed(sketch))).map(
            lambda pair: (pair[0].text(), pair[1].text())
        ),
    ),
    "openapi": same_format("OpenAPI/3.0", st.tuples(*[st.sampled_from(OPENAPI)] * 2)),
    "graphql": same_format(GRAPHQL, st.tuples(*[st.sampled_from(GRAPHQL_TEXTS)] * 2)),
}


def parsed(format: str, text: str) -> Any:
    format_module = formats.find_format(format)
    assert format_module is not None
    try:
        return format_module.load().parse(text.encode(), format)
    except InvalidDocument:  # a change has made it invalid
        assume(False)


@pytest.mark.parametrize("name", PAIRS)
@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_comparison_agrees_with_a_check(name: str, data: st.DataObject) -> None:
    # UI-93: each reason of a check is at exactly one change, no change has other reasons, and the levels agree
    left_format, left_text, right_format, right_text = data.draw(PAIRS[name])
    left, right = parsed(left_format, left_text), parsed(right_format, right_text)
    format_module = formats.find_format(left_format)
    assert format_module is not None
    module = format_module.load()
    backward = module.incompatibilities(right, left, "reader")
    forward = module.incompatibilities(left, right, "writer")
    found = compare_documents(left_format, left, right)
    event(f"{name}: {not backward} {not forward}")
    assert (found.backward, found.forward) == (not backward, not forward)
    assert found.levels["full_transitive"] == (not backward and not forward)
    assert_same_reasons([change.backward for change in found.changes], backward)
    assert_same_reasons([change.forward for change in found.changes], forward)
    same_meaning = module.canonical_form(left) == module.canonical_form(right)
    assert found.changes or same_meaning, "a difference is never silent"


def assert_same_reasons(reported: Sequence[Incompatibility | None], checked: Sequence[Incompatibility]) -> None:
    """Asserts that the changes have each reason of the check once; a check reports a limited number of reasons."""
    reasons = Counter(reason for reason in reported if reason is not None)
    assert not Counter(checked) - reasons
    assert reasons == Counter(checked) or len(checked) >= 20


@pytest.mark.parametrize("name", PAIRS)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_document_has_no_changes_from_itself(name: str, data: st.DataObject) -> None:
    format, text, *_ = data.draw(PAIRS[name])
    found = compare_documents(format, parsed(format, text), parsed(format, text))
    assert not found.changes or name == "jsonschema"  # undecidable combinations count as breaking


@settings(max_examples=examples(200), deadline=None)
@given(PAIRS["graphql"])
def test_graphql_core_finds_the_same(pair: Pair) -> None:
    # SC-39: breaking changes are those that graphql-core finds, and changes of the root operation types
    _, old, _, new = pair
    left, right = parsed(GRAPHQL, old), parsed(GRAPHQL, new)
    assert isinstance(left, graphql.GraphqlDocument) and isinstance(right, graphql.GraphqlDocument)
    theirs = Counter(change.description.rstrip(".") for change in find_breaking_changes(left.schema, right.schema))
    ours = Counter(
        change.backward.text
        for change in compare_documents(GRAPHQL, left, right).changes
        if change.backward is not None and not change.backward.rule.startswith("root-")
    )
    assert ours == theirs
