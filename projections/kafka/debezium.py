"""Change events in the form in which Debezium writes those of a table, as Kafka Connect's JSON converter encodes them.

A value has the row before and after the change, the source, and the operation. With schemas, a value and a key are an
object of `schema` and `payload`; without them, the payload alone.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from annals import __version__
from annals.commands.store.hashes import Interaction
from annals.projections.entities.rows import EntityRow

#: The table whose changes are published.
TABLE: Final = "entities"
CONNECTOR: Final = "annals"
CREATE, UPDATE, DELETE = "c", "u", "d"

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_SNAPSHOT: Final = "false"  # the whole log is published, so nothing is read from the current state
_SNAPSHOT_STATES: Final = "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"

Schema = dict[str, Any]


def _schema(type: str, *, optional: bool = False, **members: Any) -> Schema:
    return {"type": type, "optional": optional, **members}


def _struct(name: str, fields: dict[str, Schema], **members: Any) -> Schema:
    return _schema(
        "struct", fields=[schema | {"field": field} for field, schema in fields.items()], name=name, **members
    )


_STRING: Final = _schema("string")
_NUMBER: Final = _schema("int64")
_OPTIONAL_STRING: Final = _schema("string", optional=True)
_OPTIONAL_NUMBER: Final = _schema("int64", optional=True)
_TIME: Final = _schema("string", optional=True, name="io.debezium.time.ZonedTimestamp", version=1)
_JSON: Final = _schema("string", name="io.debezium.data.Json", version=1)
_KEY_FIELDS: Final = {"xid": _STRING}
_ROW_FIELDS: Final = {
    **_KEY_FIELDS,
    "type": _STRING,
    "parent": _OPTIONAL_STRING,
    "id": _STRING,
    "epoch": _NUMBER,
    "createdat": _TIME,
    "modifiedat": _TIME,
    "attributes": _JSON,
    "document": _OPTIONAL_STRING,
    "since": _NUMBER,
}
_SOURCE_FIELDS: Final = {
    "version": _STRING,
    "connector": _STRING,
    "name": _STRING,
    "ts_ms": _NUMBER,
    "snapshot": _schema(
        "string",
        optional=True,
        name="io.debezium.data.Enum",
        version=1,
        parameters={"allowed": _SNAPSHOT_STATES},
        default=_SNAPSHOT,
    ),
    "db": _STRING,
    "sequence": _OPTIONAL_STRING,
    "ts_us": _OPTIONAL_NUMBER,
    "ts_ns": _OPTIONAL_NUMBER,
    "table": _STRING,
    "position": _NUMBER,
    "xregcorrelationid": _STRING,
    "caller": _STRING,
}
_TRANSACTION_FIELDS: Final = {"id": _STRING, "total_order": _NUMBER, "data_collection_order": _NUMBER}


class RowChange(NamedTuple):
    """The change of a row by one stored event. before, after: at least one of them is not None."""

    interaction: Interaction
    position: int
    before: EntityRow | None
    after: EntityRow | None

    @property
    def operation(self) -> str:
        """The operation as Debezium names it."""
        if self.before is None:
            return CREATE
        return DELETE if self.after is None else UPDATE


class DebeziumEncoder:
    """Encodes keys and values of one topic."""

    def __init__(self, prefix: str, *, schemas: bool = True) -> None:
        """prefix: the logical name of the source, with which schema names begin. schemas: whether to include them."""
        self._name = prefix
        self._key_start = self._value_start = self._end = b""
        if schemas:
            table = f"{prefix}.{TABLE}"
            self._key_start = _schema_start(_struct(f"{table}.Key", _KEY_FIELDS))
            self._value_start = _schema_start(_envelope_schema(table))
            self._end = b"}"

    def key(self, change: RowChange) -> bytes:
        """The key of the row that a change concerns."""
        row = change.after or change.before
        assert row is not None
        return self._key_start + orjson.dumps({"xid": row.xid}) + self._end

    def value(self, change: RowChange) -> bytes:
        """The change event. All its times are that of the interaction, so an equal log has equal change events."""
        interaction, microseconds = change.interaction, _microseconds(change.interaction.time)
        times = {"ts_ms": microseconds // 1000, "ts_us": microseconds, "ts_ns": microseconds * 1000}
        order = change.position - interaction.first + 1
        payload = {
            "before": _row_members(change.before),
            "after": _row_members(change.after),
            "source": {
                "version": __version__,
                "connector": CONNECTOR,
                "name": self._name,
                "ts_ms": times["ts_ms"],
                "snapshot": _SNAPSHOT,
                "db": interaction.registry_url,
                "sequence": f'["{interaction.last}","{change.position}"]',
                "ts_us": times["ts_us"],
                "ts_ns": times["ts_ns"],
                "table": TABLE,
                "position": change.position,
                "xregcorrelationid": interaction.xregcorrelationid,
                "caller": interaction.caller,
            },
            "transaction": {
                "id": interaction.xregcorrelationid,
                "total_order": order,
                "data_collection_order": order,
            },
            "op": change.operation,
            **times,
        }
        return self._value_start + orjson.dumps(payload) + self._end


def _envelope_schema(table: str) -> Schema:
    row = _struct(f"{table}.Value", _ROW_FIELDS) | {"optional": True}
    source = _struct(f"io.debezium.connector.{CONNECTOR}.Source", _SOURCE_FIELDS)
    transaction = _struct("event.block", _TRANSACTION_FIELDS, version=1) | {"optional": True}
    times = dict.fromkeys(("ts_ms", "ts_us", "ts_ns"), _OPTIONAL_NUMBER)
    fields = {"before": row, "after": row, "source": source, "transaction": transaction, "op": _STRING, **times}
    return _struct(f"{table}.Envelope", fields, version=2)


def _schema_start(schema: Schema) -> bytes:
    return b'{"schema":' + orjson.dumps(schema) + b',"payload":'


def _row_members(row: EntityRow | None) -> dict[str, Any] | None:
    if row is None:
        return None
    times = row.times
    return {
        "xid": row.xid,
        "type": row.type,
        "parent": row.parent,
        "id": row.id,
        "epoch": row.epoch,
        "createdat": times.createdat or None,
        "modifiedat": times.modifiedat or None,
        "attributes": row.attributes,
        "document": row.document,
        "since": row.since,
    }


@lru_cache(maxsize=8)
def _microseconds(time: str) -> int:
    """A time of the log in microseconds since 1970."""
    return (datetime.fromisoformat(time) - _EPOCH) // _MICROSECOND
