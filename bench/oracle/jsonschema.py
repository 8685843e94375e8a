"""Families of JSON Schemas of four releases, with values that jsonschema-rs judges."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any, Final

import jsonschema_rs

from annals.domain.formats import jsonschema
from annals.domain.formats.contract import InvalidDocument
from bench.oracle import jsonschema_changes, jsonschema_schemas, jsonschema_values
from bench.oracle.jsonschema_declared import Declared
from bench.oracle.run import Member, Refusal

VALIDATORS: Final = {
    "draft-06": jsonschema_rs.Draft6Validator,
    "draft-07": jsonschema_rs.Draft7Validator,
    "draft/2019-09": jsonschema_rs.Draft201909Validator,
    "draft/2020-12": jsonschema_rs.Draft202012Validator,
}
#: Schemas of a family, and values that each of them adds to those of all.
MEMBERS: Final = 5
VALUES: Final = 8


@dataclass(eq=False)
class Schema:
    """One schema in the terms of 2020-12, which is spelt for the release of its family."""

    raw: Any
    release: str
    values: list[Any] = field(default_factory=list)

    @cached_property
    def text(self) -> str:
        return json.dumps(jsonschema_schemas.spelt(self.raw, self.release))

    @cached_property
    def parsed(self) -> jsonschema.SchemaGraph:
        return jsonschema.parse(self.text.encode(), f"JsonSchema/{self.release}")

    @cached_property
    def validator(self) -> Any:
        return VALIDATORS[self.release](json.loads(self.text))

    @cached_property
    def declared(self) -> Declared:
        return Declared(self.raw)

    @cached_property
    def valid(self) -> list[bool]:
        return [bool(self.validator.is_valid(value)) for value in self.values]

    def unreadable(self, writer: Member) -> bool:
        assert isinstance(writer, Schema)
        return bool(jsonschema.incompatibilities(self.parsed, writer.parsed))

    def reads(self, writer: Member) -> Iterator[Refusal | None]:
        assert isinstance(writer, Schema)
        for value, written, read in zip(self.values, writer.valid, self.valid, strict=True):
            if written:
                yield None if read else Refusal(json.dumps(value), writer.declared.holds(value))


def family(random: Random) -> Sequence[Schema]:
    """Some schemas that differ in one place or a few, with values of all of them and values near to those."""
    release = random.choice([*VALIDATORS, "draft/2020-12"])
    raws = [jsonschema_schemas.document(random)]
    while len(raws) < MEMBERS:
        raws.append(jsonschema_changes.changed(random.choice(raws), random))
    for place in [place for raw in raws for place in jsonschema_changes.places(raw)]:
        jsonschema_schemas.drop(place, release)
    members = []
    for raw in raws:
        member = Schema(raw, release)
        try:
            assert member.parsed
            assert member.validator
        except (InvalidDocument, jsonschema_rs.ValidationError, ValueError):
            continue
        members.append(member)
    values = {}
    for member in members:
        maker = jsonschema_values.Values(member.raw, random)
        for _ in range(VALUES):
            value = maker.value(member.raw)
            for each in (value, jsonschema_values.near(value, random)):
                values[json.dumps(each)] = each
    for member in members:
        member.values.extend(values.values())
    return members
