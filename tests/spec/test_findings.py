"""Runs findings.yaml: each row with the validation levels `off`, `warn` and `strict`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.domain import formats
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.commands import WriteMethod, WriteTree
from annals.domain.decisions.decide import decide
from annals.domain.decisions.rules.domain_rules import ChangedEntities
from annals.domain.decisions.world import Context, Decision, DomainValidation
from annals.domain.errors.problems import Problem
from annals.domain.messaging.findings import VALIDATORS, Finding, ValidatedEntity, change_findings, entity_findings
from annals.domain.messaging.findings import kinds_by_type as judged_types
from annals.domain.model.builtin import default_source
from tests.spec.test_http import Loader
from tests.support.registries.memory import START, MemoryRegistry

TABLE = yaml.load(Path(__file__).with_name("findings.yaml").read_text(), Loader)
PLACES = {"endpoints": "/endpoints/e", "messages": "/messagegroups/g/messages/m"}
ROWS = [{"at": PLACES.get(kind), **row} for kind, rows in TABLE.items() if kind != "values" for row in rows]
MEMBERS = {"rule", "says", "at", "given", "put", "found"}


class ValidatingRegistry(MemoryRegistry):
    """A registry with the built-in model, with a validation level for each command."""

    def write(self, xid: str, tree: Mapping[str, Any], how: DomainValidation) -> Decision:
        context = Context(START, f"c{self.interactions + 1}", domainvalidation=how)
        decision = decide(WriteTree(xid, deepcopy(dict(tree)), WriteMethod.PUT), self.world, context)
        self.interactions += 1
        self.world.extend(decision.events, decision.documents)
        return decision


def registry(row: Mapping[str, Any]) -> ValidatingRegistry:
    made = ValidatingRegistry(default_source())
    for xid, tree in row.get("given", {}).items():
        made.write(xid, tree, "off")
    return made


def tree(row: Mapping[str, Any]) -> dict[str, Any]:
    usage = {"usage": ["producer"]} if row["at"] == PLACES["endpoints"] else {}
    return {name: value for name, value in {**usage, **row["put"]}.items() if value is not None}


def short(found: Any) -> list[str]:
    return [f"{each['level']} {each['rule']} {each['path']}" for each in found]


def name(row: Mapping[str, Any]) -> str:
    return f"{row['rule']}: {row['says']}"


@pytest.mark.parametrize("row", ROWS, ids=map(name, ROWS))
def test_row(row: dict[str, Any]) -> None:
    assert set(row) <= MEMBERS
    expected = row.get("found", [])
    if "MS-65" in row["rule"] and formats.find_format(row["put"]["dataschemaformat"]) is None:
        pytest.skip("the format is not there")
    assert registry(row).write(row["at"], tree(row), "off").findings == 0
    assert registry(row).write(row["at"], tree(row), "warn").findings == len(expected)
    strict = registry(row)
    if not any(each.startswith("L2") for each in expected):
        before = strict.world.get(row["at"])
        assert strict.write(row["at"], tree(row), "strict").findings == len(expected)
        assert stored(strict, row["at"], before.attributes if before else None) == expected
        return
    with pytest.raises(Problem) as refused:
        strict.write(row["at"], tree(row), "strict")
    problem = refused.value
    listed: Any = problem.extensions["findings"]
    assert short(listed) == expected
    first = next(each for each in listed if each["level"] == "L2")
    missing = first["rule"] == "EP-03"
    assert problem.name == ("required_attribute_missing" if missing else "invalid_attribute")
    assert problem.detail == f"{first['rule']} at {first['path']}: {first['text']}"
    assert problem.subject == first["xid"] == row["at"]


def stored(made: ValidatingRegistry, at: str, before: Mapping[str, Any] | None) -> list[str]:
    """The findings for the stored entity, and for its last change."""
    lookup = ChangedEntities(ChangeSet(made.world, Context(START, "c")))
    attributes = lookup.get(at)
    if attributes is None:
        return []
    subject = ValidatedEntity(at, attributes, lookup, lambda name, document: None)
    found = list(entity_findings(judged_types(made.world.model)[made.get(at).type], subject))
    found += change_findings(before, subject) if before else ()
    return [f"{each.level} {each.rule} {each.path}" for each in found]


class EmptyLookup:
    """A lookup that finds no entity."""

    def get(self, xid: str) -> None:
        return None

    def members(self, collection: str) -> tuple[str, ...]:
        return ()


def findings_of(kind: str, values: dict[str, Any]) -> list[Finding]:
    at = "/endpoints/e" if kind == "endpoints" else "/messagegroups/g/messages/m"
    return list(entity_findings(kind, ValidatedEntity(at, values, EmptyLookup(), lambda name, document: None)))


@pytest.mark.parametrize("row", TABLE["values"], ids=map(name, TABLE["values"]))
def test_values(row: dict[str, Any]) -> None:
    found = findings_of(row["kind"], row["values"])
    assert [f"{each.level} {each.rule} {each.path}" for each in found] == row.get("found", [])


def test_texts_are_sentences() -> None:
    # V-01 to V-13: a text continues "RULE at PATH: ", so it begins with a small letter and has no full stop at its end
    bare = {"usage": [], "channel": "", "envelope": "", "protocol": "", "dataschema": 1}
    rows = [(kind, row["put"]) for kind in PLACES for row in TABLE[kind]]
    rows += [(row["kind"], row["values"]) for row in TABLE["values"]]
    for kind, values in [*((kind, bare) for kind in VALIDATORS), *rows]:
        for finding in findings_of(kind, values):
            assert re.fullmatch(r"[a-z].*[^.\s]", finding.text), finding
