"""The tables of a lake, column by column.

Columns are only ever added, at the end of a table and with a new meaning; readers of earlier columns go on as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class LakeColumn(NamedTuple):
    """A column. type: in Spark's words. about: what it means."""

    name: str
    type: str
    about: str


class LakeTable(NamedTuple):
    """A table.

    sort: what files are sorted by, so that readers skip most of them. partition: the column that divides the files.
    key: the column whose value a later row may have again, and whose row it then replaces; None where rows are only
    added.
    """

    name: str
    about: str
    columns: tuple[LakeColumn, ...]
    sort: tuple[str, ...]
    partition: str | None = None
    key: str | None = None

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    @property
    def schema(self) -> StructType:
        """The columns as Spark has them; all may be null."""
        from pyspark.sql.types import StructType

        return cast(StructType, StructType.fromDDL(", ".join(f"`{one.name}` {one.type}" for one in self.columns)))


_POSITION: Final = LakeColumn("position", "bigint", "position of the event in the log")
_TIME: Final = LakeColumn("time", "timestamp", "time of the interaction")
_MONTH: Final = LakeColumn("month", "string", "month of `time` in UTC, such as `2026-11`; divides the files")
_STREAM: Final = LakeColumn("stream", "string", "the xid in lower case: ids that differ in case only are one entity")
_XID: Final = LakeColumn("xid", "string", "path of the entity")
_TYPE: Final = LakeColumn("type", "string", "type of the entity, such as `schemagroups.schemas.versions`")
_GROUP: Final = LakeColumn("groupxid", "string", "the Group that the entity is or belongs to; null for the registry")
_RESOURCE: Final = LakeColumn("resourcexid", "string", "the Resource that it is or belongs to; null above Resources")
_CALLER: Final = LakeColumn("caller", "string", "who sent the request")
_CREDENTIAL: Final = (
    LakeColumn(
        "authenticator", "string", "what proved who the caller is; empty if nothing did, and empty or null if not known"
    ),
    LakeColumn("keyid", "string", "id of the API key, likewise"),
)
_COMMAND: Final = LakeColumn("command", "string", "the command, such as `WriteTree PUT /schemagroups/g`")
_CORRELATION: Final = LakeColumn("xregcorrelationid", "string", "id of the interaction")
_TAKEN: Final = (
    LakeColumn("taken", "timestamp", "when the registry was asked"),
    LakeColumn("head", "bigint", "end of the registry's log at that time"),
)
_TAKEN_MONTH: Final = LakeColumn("month", "string", "month of `taken` in UTC; divides the files")
_STATE: Final = (
    *(_STREAM, _XID, _TYPE, _GROUP, _RESOURCE),
    LakeColumn("parent", "string", "the xid of the owner; null for the registry"),
    LakeColumn("id", "string", "last part of the xid"),
    LakeColumn("epoch", "bigint", "number of updates"),
    LakeColumn("createdat", "timestamp", "as the entity states it; null where it is no time that Spark has"),
    LakeColumn("modifiedat", "timestamp", "as the entity states it"),
    LakeColumn("attributes", "string", "all attributes as JSON"),
    LakeColumn("private", "string", "what only the registry needs, as JSON; part of the state hash"),
    LakeColumn("document", "string", "SHA-256 of its document, a Resource's of its default Version"),
    LakeColumn("since", "bigint", "position of the event that led to this state"),
    LakeColumn("since_time", "timestamp", "time of that event"),
)
_VERDICT: Final = (
    LakeColumn("breaking", "boolean", "whether the newer document cannot read what the older one wrote; null: unknown"),
    LakeColumn("breaking_reason", "string", "the first reason, in words of the format"),
)

_LOG: Final = LakeTable(
    "log",
    "Each event, with its interaction: the columns of segments. The other tables are computed from this one.",
    (
        _POSITION,
        LakeColumn("stream", "string", "the xid of the entity in lower case"),
        LakeColumn("revision", "bigint", "1, 2, 3 … in the stream"),
        LakeColumn("topic", "string", "kind and version of the event, such as `EntityCreated:1`"),
        LakeColumn("state", "string", "the stored event as JSON, with the whole entity after it"),
        LakeColumn("first", "bigint", "position of the first event of the interaction"),
        LakeColumn("last", "bigint", "position of its last event"),
        _CORRELATION,
        LakeColumn("time", "string", "time of the interaction, RFC 3339 in UTC with microseconds"),
        *(_CALLER, _COMMAND),
        LakeColumn("registry_url", "string", "public URL of the registry"),
        LakeColumn("chain", "binary", "hash over everything recorded up to the end of the interaction"),
        LakeColumn("statehash", "binary", "sum of the hashes of all live entities after the interaction"),
        LakeColumn("salt", "string", "hides the caller in the chain hash"),
        _MONTH,
        *_CREDENTIAL,
    ),
    partition="month",
    sort=("position",),
)

_INTERACTIONS: Final = LakeTable(
    "interactions",
    "Each request that changed something.",
    (
        LakeColumn("first", "bigint", "position of its first event"),
        LakeColumn("last", "bigint", "position of its last event"),
        LakeColumn("events", "bigint", "number of its events"),
        *(_TIME, _CALLER, _COMMAND, _CORRELATION),
        LakeColumn("registry_url", "string", "public URL of the registry"),
        LakeColumn("chain", "binary", "chain hash after it"),
        LakeColumn("statehash", "binary", "state hash after it"),
        _MONTH,
        *_CREDENTIAL,
    ),
    partition="month",
    sort=("last",),
)

_ENTITIES: Final = LakeTable(
    "entities",
    "Each entity that exists at the table's position.",
    _STATE,
    partition="type",
    sort=("stream",),
    key="stream",
)

_ENTITY_HISTORY: Final = LakeTable(
    "entity_history",
    "Each state that an entity ever had, with the positions and times between which it was in force.",
    (
        *_STATE,
        LakeColumn("until", "bigint", "position of the event that ended it; null while it is in force"),
        LakeColumn("until_time", "timestamp", "time of that event"),
    ),
    partition="type",
    sort=("stream", "since"),
    key="since",
)

_CHANGES: Final = LakeTable(
    "changes",
    "Each attribute and each document that an event changed. A creation or a deletion changes all that there is.",
    (
        *(_POSITION, _TIME, _XID, _TYPE, _GROUP, _RESOURCE),
        LakeColumn("kind", "string", "`created`, `updated`, `refreshed` or `deleted`"),
        *(_CALLER, _COMMAND, _CORRELATION),
        LakeColumn("of", "string", "`attribute` or `document`"),
        LakeColumn("path", "string", "path of the attribute; empty for a document"),
        LakeColumn("before", "string", "the value before as JSON, a document's hash; null: absent"),
        LakeColumn("after", "string", "the value after as JSON, a document's hash; null: absent"),
        *_VERDICT,
        _MONTH,
    ),
    partition="month",
    sort=("position",),
)

_VERSIONS: Final = LakeTable(
    "versions",
    "Each life of a Version, from its creation to its deletion, with its last attributes.",
    (
        *(_STREAM, _XID, _GROUP, _RESOURCE),
        LakeColumn("groupid", "string", "id of its Group"),
        LakeColumn("resourceid", "string", "id of its Resource"),
        LakeColumn("versionid", "string", "its own id"),
        LakeColumn("epoch", "bigint", "number of updates"),
        LakeColumn("ancestorid", "string", "the Version that it was made from; its own id for a root"),
        LakeColumn("name", "string", "its name"),
        LakeColumn("contenttype", "string", "media type of its document"),
        LakeColumn("format", "string", "format of its document, such as `Avro/1.12.0`"),
        LakeColumn("formatvalidatedreason", "string", "why the format was not validated"),
        LakeColumn("compatibilityvalidatedreason", "string", "why the compatibility was not validated"),
        LakeColumn("isdefault", "boolean", "whether it is, or last was, the default Version"),
        LakeColumn("formatvalidated", "boolean", "whether its document is known to be valid; null: not asked"),
        LakeColumn("compatibilityvalidated", "boolean", "whether it is known to be compatible; null: not asked"),
        LakeColumn("document", "string", "SHA-256 of its document"),
        LakeColumn("createdat", "timestamp", "as the Version states it"),
        LakeColumn("modifiedat", "timestamp", "as the Version states it"),
        LakeColumn("born", "bigint", "position of its creation"),
        LakeColumn("born_time", "timestamp", "time of its creation"),
        LakeColumn("born_caller", "string", "who created it"),
        LakeColumn("gone", "bigint", "position of its deletion; null while it exists"),
        LakeColumn("gone_time", "timestamp", "time of its deletion"),
        LakeColumn("gone_caller", "string", "who deleted it"),
        LakeColumn("reason", "string", "why it was deleted: `deleted`, `pruned` or `forgotten`"),
        LakeColumn("size", "bigint", "bytes of its document; null where the document is not known"),
        LakeColumn(
            "breaking", "boolean", "whether its first document cannot read what its ancestor's wrote; null: unknown"
        ),
        LakeColumn("breaking_reason", "string", "the first reason, in words of the format"),
    ),
    sort=("stream", "born"),
    key="born",
)

_SCHEMA_FIELDS: Final = LakeTable(
    "schema_fields",
    "Each field of each document that a Version has or had, for formats that this program reads.",
    (
        _POSITION,
        _TIME,
        LakeColumn("xid", "string", "path of the Version"),
        *(_GROUP, _RESOURCE),
        LakeColumn("versionid", "string", "id of the Version"),
        LakeColumn("document", "string", "SHA-256 of the document"),
        LakeColumn("format", "string", "format of the document"),
        LakeColumn("ordinal", "bigint", "1, 2, 3 … in the document"),
        LakeColumn("path", "string", "path of the field, such as `order.lines[].price`"),
        LakeColumn("name", "string", "name of the field, the last part of its path"),
        LakeColumn("fieldtype", "string", "type of the field, in words of the format"),
        LakeColumn("optional", "boolean", "whether a valid value may lack the field, or have null there"),
        LakeColumn("doc", "string", "description of the field"),
        _MONTH,
    ),
    sort=("name", "position"),
)

_DOCUMENTS: Final = LakeTable(
    "documents",
    "Each document that the log refers to, as far as the source of the log has it.",
    (
        LakeColumn("sha256", "string", "SHA-256 of the bytes, in lower-case hex"),
        LakeColumn("size", "bigint", "number of bytes"),
        LakeColumn("content", "binary", "the bytes"),
    ),
    sort=("sha256",),
)

_DELIVERIES: Final = LakeTable(
    "deliveries",
    "Each subscription at each moment at which the registry was asked.",
    (
        *_TAKEN,
        LakeColumn("subscription", "string", "id of the subscription"),
        LakeColumn("protocol", "string", "protocol of its sink"),
        LakeColumn("state", "string", "`active`, `paused`, or why there are no attempts"),
        LakeColumn("position", "bigint", "up to which all its events are delivered or given up"),
        LakeColumn("lag", "bigint", "positions between that and the head"),
        LakeColumn("pending", "bigint", "events that wait"),
        LakeColumn("deadletters", "bigint", "events that are given up"),
        LakeColumn("lastsuccess", "timestamp", "time of the last delivery"),
        LakeColumn("lasterror", "string", "code of the last failure; null after a success"),
        _TAKEN_MONTH,
    ),
    sort=("subscription", "taken"),
    partition="month",
)

_REPLICATION: Final = LakeTable(
    "replication",
    "Each replication link at each moment at which the registry was asked.",
    (
        *_TAKEN,
        LakeColumn("link", "string", "id of the link"),
        LakeColumn("state", "string", "`active`, `failing`, `diverged`, `resting` or `promoted`"),
        LakeColumn("position", "bigint", "up to which the other log is copied"),
        LakeColumn("otherhead", "bigint", "end of the other log, as far as it is known"),
        LakeColumn("lag", "bigint", "positions that the copy lacks"),
        LakeColumn("lagseconds", "double", "seconds between the last copied interaction and the end of the other log"),
        LakeColumn("verdict", "string", "whether both ends are `equal`; null for links that do not follow a log"),
        LakeColumn("error", "string", "the last failure; null after a success"),
        _TAKEN_MONTH,
    ),
    sort=("link", "taken"),
    partition="month",
)

LOG: Final = _LOG.name
DOCUMENTS: Final = _DOCUMENTS.name
DELIVERIES: Final = _DELIVERIES.name
REPLICATION: Final = _REPLICATION.name
#: The tables that the log and its documents determine, in the order in which they are filled.
TABLES: Final = {
    table.name: table
    for table in (_LOG, _DOCUMENTS, _INTERACTIONS, _ENTITIES, _ENTITY_HISTORY, _CHANGES, _VERSIONS, _SCHEMA_FIELDS)
}
#: The tables of what a log does not have: the positions of deliveries and replicas, each time they were recorded.
OBSERVATIONS: Final = {table.name: table for table in (_DELIVERIES, _REPLICATION)}
ALL_TABLES: Final = TABLES | OBSERVATIONS
