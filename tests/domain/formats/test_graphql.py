"""GraphQL schemas: valid documents, and changes that are compatible for clients.

Rules SC-10, SC-14, SC-16, SC-36, SC-39. The checker is that of graphql-core, so the tables test how it is called. The
independent implementation is GraphQL Inspector, from npm.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from annals.domain.formats import graphql
from annals.domain.formats.contract import InvalidDocument
from tests.support.downloads import npm
from tests.support.examples import examples

TABLE: dict[str, list[Any]] = yaml.load((Path(__file__).parent / "graphql.yaml").read_text(), yaml.CSafeLoader)
EDITIONS = {18: "graphql/june2018", 21: "GraphQL/October2021", 25: "graphql/september2025"}
INSPECTOR = ("@graphql-inspector/core@8.0.0", "graphql@16.15.0")
PUBLISHED = "@octokit/graphql-schema@15.26.1"


def with_query(text: str) -> str:
    return text if "type Query" in text else f"type Query {{ ok: Int }}\n{text}"


def schema(text: str) -> graphql.GraphqlDocument:
    return graphql.parse(with_query(text).encode(), "graphql/september2025")


@pytest.mark.parametrize("row", TABLE["changes"], ids=lambda row: row["change"])
def test_a_change(row: dict[str, str]) -> None:
    # SC-36, applied to clients: a client of the old schema works with the new one (B), or the reverse (F)
    old, new = schema(row["old"]), schema(row["new"])
    backward, forward = graphql.incompatibilities(new, old), graphql.incompatibilities(old, new)
    assert "B" * (not backward) + "F" * (not forward) == row["allowed"], [*backward, *forward]
    reasons = [*backward, *forward]
    assert row.get("rule") in {None, *(one.rule for one in reasons)}, reasons
    assert all(one.writer is not None and one.writer.fragment for one in reasons), (
        "each shows what the client relies on"
    )


def test_an_incompatibility_shows_both_places() -> None:
    # V-14: the rule, and line and fragment in both documents
    old = schema('type A {\n  """\n  Words.\n  """\n  a(x: Int): Int\n}')
    new = schema("type A {\n  a(\n    x: Int!): Int\n}")
    (found,) = graphql.incompatibilities(new, old)
    assert (found.rule, found.text) == ("arg-changed-kind", "Argument A.a(x:) has changed type from Int to Int!")
    assert found.writer is not None and found.reader is not None
    assert (found.writer.line, found.writer.fragment) == (6, "x: Int): Int")
    assert (found.reader.line, found.reader.fragment) == (4, "x: Int!): Int")


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("row", TABLE["accepted"], ids=lambda row: row["document"][:60])
def test_documents_that_are_schemas(row: dict[str, Any], edition: int) -> None:
    # SC-10, SC-16: a document of the declared edition is accepted, one of a later edition is refused
    document = row["document"].encode()
    if edition in row["editions"]:
        parsed = graphql.parse(document, EDITIONS[edition])
        again = graphql.parse(graphql.canonical_form(parsed), EDITIONS[edition])
        assert graphql.canonical_form(again) == graphql.canonical_form(parsed)
        assert graphql.incompatibilities(again, parsed) == graphql.incompatibilities(parsed, again) == []
    else:
        with pytest.raises(InvalidDocument) as caught:
            graphql.parse(document, EDITIONS[edition])
        assert caught.value.location is not None and caught.value.location.line == 1


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("row", TABLE["refused"], ids=lambda row: row["document"][:60] or "empty")
def test_documents_that_are_not(row: dict[str, str], edition: int) -> None:
    # SC-14, SC-16: empty, broken, in another language
    with pytest.raises(InvalidDocument, match=row["why"]) as caught:
        graphql.parse(row["document"].encode("utf-8", "surrogatepass"), EDITIONS[edition])
    assert caught.value.location is not None and caught.value.location.line, caught.value.text


def test_canonical_forms() -> None:
    # V-14: documents that mean the same have the same canonical form
    one = schema('enum E { B A } "words" type A implements N & M { b: Int a(y: Int = 1, x: [Int] = [2, 1]): Int }'
                 " interface M { a(x: [Int], y: Int): Int } interface N { b: Int }")  # fmt: skip
    other = schema("interface N { b: Int } interface M { a(y: Int, x: [Int]): Int } # words\n"
                   "type A implements M & N { a(x: [Int] = [2 1] y: Int = 1): Int b: Int } enum E { A B }")  # fmt: skip
    assert graphql.canonical_form(one) == graphql.canonical_form(other)
    assert graphql.canonical_form(schema("type A { a(x: [Int] = [1, 2]): Int }")) != graphql.canonical_form(
        schema("type A { a(x: [Int] = [2, 1]): Int }")
    )


RING = "".join(f"input I{n} {{ i: I{(n + 1) % 400}! }}" for n in range(400))
CHAIN = "".join(f"input I{n} {{ i: I{n + 1}! }}" for n in range(3000))
HOSTILE = {
    "deep lists": "type Query { a: " + "[" * 50_000 + "Int" + "]" * 50_000 + " }",
    "deep values": "type Query { a(x: Int = " + "[" * 50_000 + "]" * 50_000 + "): Int }",
    "deep objects": "type Query { a(x: Int = " + "{a:" * 50_000 + "1" + "}" * 50_000 + "): Int }",
    "a ring of inputs": "type Query { a(i: I0): Int }" + RING,
    "a chain of inputs": "type Query { a(i: I0): Int }" + CHAIN,
    "a ring of interfaces": "interface A implements B { a: Int } interface B implements A { a: Int }",
    "a huge number": "type Query { a(x: Int = " + "9" * 100_000 + "): Int }",
    "a long string": "type Query { a(x: String = " + '"' + "\\u0041" * 50_000 + '"' + "): Int }",
    "many names": "type Query { " + " ".join(f"a{n}: Int" for n in range(5_000)) + " }",
    "a member many times": "type Query { a: Int } union U = " + " | ".join(["Query"] * 5_000),
    "a member in many places": "type Query { a: Int } union U = Query " + "extend union U = Query " * 5_000,
    "an interface many times": "interface I { a: Int } type Query implements " + "I & " * 5_000 + "I { a: Int }",
    "a ring of defaults": "type Query { a(i: I): Int } input I { i: I = {} }",
    "half a string": 'type Query { a(x: String = "' + "a" * 100_000,
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_documents(what: str) -> None:
    # V-14: each document is accepted or refused within seconds, without another exception
    began = time.process_time()
    try:
        parsed = graphql.parse(HOSTILE[what].encode(), "graphql/september2025")
        assert graphql.incompatibilities(parsed, parsed) == []
        graphql.canonical_form(parsed)
    except InvalidDocument:
        pass
    assert time.process_time() - began < 10


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=40) | st.text("type Query{}:!@#\"'()[]=|&\\u0\n ", max_size=60).map(str.encode))
def test_any_bytes(document: bytes) -> None:
    # V-14: each text is accepted, or refused as an invalid document
    try:
        graphql.parse(document, "graphql/september2025")
    except InvalidDocument as violation:
        assert violation.text


#: Verdicts of GraphQL Inspector that differ, by change and direction, and why that of graphql-core stays.
DEVIATIONS = {
    ("a directive may be repeated", "F"): "it does not look whether a directive may be repeated, which clients do",
}

SCRIPT = """
const {diff} = require('@graphql-inspector/core'), {buildSchema} = require('graphql');
const pairs = JSON.parse(require('fs').readFileSync(0, 'utf8'));
Promise.all(pairs.map(async ([a, b]) => (await diff(buildSchema(a), buildSchema(b)))
  .filter(change => change.criticality.level === 'BREAKING').map(change => change.type)))
  .then(found => console.log(JSON.stringify(found)));
"""


def test_graphql_inspector_agrees() -> None:
    # SC-39: another implementation agrees on breaking changes
    home = npm.packages(*INSPECTOR)
    rows = TABLE["changes"]
    pairs = [[with_query(row["old"]), with_query(row["new"])] for row in rows]
    backward, forward = npm.run(SCRIPT, home, pairs), npm.run(SCRIPT, home, [pair[::-1] for pair in pairs])
    wrong = {
        (row["change"], way): found
        for row, *results in zip(rows, backward, forward, strict=True)
        for way, found in zip("BF", results, strict=True)
        if (way in row["allowed"]) == bool(found)
    }
    assert wrong.keys() == DEVIATIONS.keys(), wrong


@pytest.mark.long
def test_a_published_schema() -> None:
    # SC-10, SC-36: the schema of GitHub's API is parsed, changed and compared
    home = npm.packages(PUBLISHED)
    text = (home / "node_modules/@octokit/graphql-schema/schema.graphql").read_text()
    with pytest.raises(
        InvalidDocument, match=r"EnterpriseOwnerInfo\.repositoryDeployKeySetting.* only be defined once"
    ):
        graphql.parse(text.encode(), "graphql/october2021")  # the published schema defines two fields twice
    for field in ("repositoryDeployKeySetting", "repositoryDeployKeySettingOrganizations"):
        text = text.replace(f"  {field}", f"  {field}2", 1)
    published = graphql.parse(text.encode(), "graphql/october2021")
    assert graphql.incompatibilities(published, published) == []
    assert json.dumps(graphql.canonical_form(published).decode())
    changed = graphql.parse(text.replace("\n  viewer: User!\n", "\n  seer: User!\n", 1).encode(), "graphql/october2021")
    assert [found.text for found in graphql.incompatibilities(published, changed)] == ["Field Query.seer was removed"]
    (found,) = graphql.incompatibilities(changed, published)
    assert found.rule == "field-removed" and found.writer is not None and found.writer.fragment == "viewer: User!"
