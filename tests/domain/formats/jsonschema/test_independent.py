"""JSON Schema compared with the checker of another registry; all differences are listed with reasons.

SC-39. The other checker supports drafts 04 to 07, and fetches documents that a document refers to. So rows with
external references are left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from annals.domain.formats import jsonschema
from tests.domain.formats.independent import check

pytestmark = pytest.mark.uses("Java")

TABLE: dict[str, list[dict[str, Any]]] = yaml.load(
    (Path(__file__).parent / "jsonschema.yaml").read_text(), yaml.CSafeLoader
)
URIS: Final = {
    "draft-04": "http://json-schema.org/draft-04/schema#",
    "draft-07": "http://json-schema.org/draft-07/schema#",
}
DEVIATIONS: Final = {row: each["reason"] for each in TABLE["apicurio"] for row in each["rows"]}


def questions() -> dict[str, tuple[str, Any, Any]]:
    """Returns release, reader and writer of every row in both directions."""
    found: dict[str, tuple[str, Any, Any]] = {}
    for row in TABLE["changes"]:
        found[f"{row['what']} B"] = (row.get("name", "draft-07"), row["newer"], row["older"])
        found[f"{row['what']} F"] = (row.get("name", "draft-07"), row["older"], row["newer"])
    for row in TABLE["keywords"]:
        found[f"{row['what']} W"] = (row.get("name", "draft-07"), row["wide"], row["narrow"])
        found[f"{row['what']} N"] = (row.get("name", "draft-07"), row["narrow"], row["wide"])
    return {what: each for what, each in found.items() if each[0] in URIS and '"http' not in json.dumps(each)}


@pytest.mark.parametrize(("what", "question"), [pytest.param(*each, id=each[0]) for each in questions().items()])
def test_agrees(what: str, question: tuple[str, Any, Any]) -> None:
    # SC-39: the same verdict, or a reason in the table for a different one.
    name, reader, writer = question
    reads, writes = (jsonschema.parse(json.dumps(each).encode(), f"jsonschema/{name}") for each in (reader, writer))
    ours = not jsonschema.incompatibilities(reads, writes)
    theirs = check("json", "backward", text(name, writer), text(name, reader))
    assert (ours != theirs.compatible) == (what in DEVIATIONS), (DEVIATIONS.get(what), theirs)


def text(name: str, schema: Any) -> str:
    return json.dumps({"$schema": URIS[name]} | schema if isinstance(schema, dict) else schema)


def test_each_deviation_belongs_to_a_row() -> None:
    # SC-39: no deviation is left over from a removed row.
    assert questions().keys() >= DEVIATIONS.keys()
