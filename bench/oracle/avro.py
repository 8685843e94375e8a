"""Families of Avro schemas, with data that fastavro writes with one and reads with another."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from random import Random
from typing import Any, Final
from uuid import UUID

import fastavro
from fastavro.validation import validate

from annals.domain.formats import avro
from annals.domain.formats.contract import InvalidDocument
from bench.oracle.avro_changes import changed, places
from bench.oracle.avro_schemas import PRIMITIVES, document, label
from bench.oracle.run import Member, Refusal

MEMBERS: Final = 5
DATA: Final = 8


@dataclass(eq=False)
class Schema:
    raw: Any
    chance: Random

    @cached_property
    def text(self) -> str:
        return json.dumps(self.raw)

    @cached_property
    def parsed(self) -> Any:
        return avro.parse(self.text.encode(), "Avro/1.12")

    @cached_property
    def theirs(self) -> Any:
        return fastavro.parse_schema(json.loads(self.text))

    @cached_property
    def plain(self) -> Any:
        # In a record of one field, as the library looks again at the defaults of what is no record.
        field = {"name": "value", "type": _plain(self.raw)}
        found = fastavro.parse_schema({"type": "record", "name": "Whole", "fields": [field]})
        for where, key in places([found]):
            # The library reads a default of bytes as text.
            default = where.get("default") if key == "type" else None
            if isinstance(default, str) and _is_bytes(where["type"], default):
                where["default"] = default.encode("latin-1")
        return found

    @cached_property
    def written(self) -> list[tuple[Any, bytes]]:
        values = Values(self.theirs, self.chance)
        found = []
        for _ in range(DATA):
            try:
                value, out = values.value(self.theirs), io.BytesIO()
            except RecursionError:
                return []  # a record that holds itself for certain has no data
            fastavro.schemaless_writer(out, self.theirs, value)
            found.append((value, out.getvalue()))
        return found

    def unreadable(self, writer: Member) -> bool:
        assert isinstance(writer, Schema)
        return bool(avro.incompatibilities(self.parsed, writer.parsed))

    def reads(self, writer: Member) -> Iterator[Refusal | None]:
        """An Avro writer emits declared fields only, so there is no open world."""
        assert isinstance(writer, Schema)
        for value, data in writer.written:
            try:
                fastavro.schemaless_reader(io.BytesIO(data), writer.theirs, self.theirs)
                # What a value becomes is looked at without logical types: the library makes it by the writer's.
                found = fastavro.schemaless_reader(io.BytesIO(data), writer.plain, self.plain)
                fits = validate(found, self.plain, raise_errors=False)
            except UnicodeDecodeError:
                yield None  # by the specification bytes are read as text, whatever they hold
            except Exception as error:  # whatever the library says
                yield Refusal(f"{value!r}: {type(error).__name__} {error}", True)
            else:
                yield (
                    None if fits else Refusal(f"{value!r} is read as {found!r}, which the reader does not allow", True)
                )


def family(random: Random) -> Sequence[Schema]:
    """Some schemas that differ in one place or a few."""
    members = [Schema(document(random), random)]
    for _ in range(3 * MEMBERS):
        member = Schema(changed(random.choice(members).raw, random), random)
        if len(members) < MEMBERS and _holds(member):
            members.append(member)
    return [member for member in members if _holds(member)]


def _plain(schema: Any) -> Any:
    """A schema without logical types."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _plain(value) for key, value in schema.items() if key != "logicalType"}


def _is_bytes(schema: Any, default: str) -> bool:
    """Whether a default stands for bytes: no branch takes it as text."""
    branches = schema if isinstance(schema, list) else [schema]
    kinds = {each["type"] if isinstance(each, dict) else each for each in branches}
    symbols = {symbol for each in branches if isinstance(each, dict) for symbol in each.get("symbols", ())}
    return not kinds.isdisjoint({"bytes", "fixed"}) and "string" not in kinds and default not in symbols


def _holds(member: Schema) -> bool:
    try:
        return bool(member.parsed and member.theirs)
    except (InvalidDocument, fastavro.schema.SchemaParseException, fastavro.schema.UnknownType):
        return False


class Values:
    """Makes data for a schema, in the form that fastavro writes."""

    def __init__(self, schema: Any, random: Random) -> None:
        self.random = random
        found = [where[key] for where, key in places([schema])]
        self.named = {each["name"]: each for each in found if isinstance(each, dict) and "name" in each}

    def value(self, schema: Any, depth: int = 6) -> Any:
        random = self.random
        if isinstance(schema, list):
            # The null branch ends types that hold themselves.
            branch = "null" if depth <= 0 and "null" in schema else random.choice(schema)
            return (label(branch), self.value(branch, depth - 1))
        if isinstance(schema, str):
            return self._simple(schema) if schema in PRIMITIVES else self.value(self.named[schema], depth)
        if "logicalType" in schema:
            return self._logical(schema)
        match schema["type"]:
            case "record":
                return {field["name"]: self.value(field["type"], depth - 1) for field in schema["fields"]}
            case "array":
                return [self.value(schema["items"], depth - 1) for _ in range(random.randint(0, 2 if depth > 0 else 0))]
            case "map":
                return {
                    key: self.value(schema["values"], depth - 1)
                    for key in random.sample("kl", random.randint(0, 2 if depth > 0 else 0))
                }
            case "enum":
                return random.choice(schema["symbols"])
            case "fixed":
                return b"\x01" * schema["size"]
        return self.value(schema["type"], depth)

    def _simple(self, kind: str) -> Any:
        random = self.random
        match kind:
            case "null":
                return None
            case "boolean":
                return random.random() < 0.5
            case "int":
                return random.choice([0, 1, -1, 2**31 - 1, -(2**31)])
            case "long":
                return random.choice([0, 1, -1, 2**31, 2**63 - 1, -(2**63)])
            case "float":
                return random.choice([0.0, 0.5, -1.5, 2.0**100])
            case "double":
                return random.choice([0.0, 0.1, -1.5, 1e300])
            case "bytes":
                return random.choice([b"", b"ab"])
        return random.choice(["", "s", "é"])

    def _logical(self, schema: dict[str, Any]) -> Any:
        match schema["logicalType"]:
            case "decimal":
                most = 10 ** schema["precision"] - 1
                return Decimal(self.random.randint(-most, most)).scaleb(-schema["scale"])
            case "date":
                return date(2020, 2, 29) + timedelta(self.random.randint(-9999, 9999))
            case "time-millis":
                return time(self.random.randint(0, 23), 59, 0, 999000)
            case "uuid":
                return UUID(int=self.random.getrandbits(128))
        return datetime(2020, 1, 1, tzinfo=UTC) + timedelta(milliseconds=self.random.randint(-(10**9), 10**9))
