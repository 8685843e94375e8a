"""The tables of a lake, column by column.

Columns are only ever added, at the end of a table and with a new meaning; readers of earlier columns go on as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class Column(NamedTuple):
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
    columns: tuple[Column, ...]
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


_POSITION: Final = Column("position", "bigint", "position of the event in the log")
_TIME: Final = Column("time", "timestamp", "time of the interaction")
_MONTH: Final = Column("month", "string", "month of `time` in UTC, such as `2026-11`; divides the files")
_STREAM: Final = Column("stream", "string", "the xid in lower case: ids that differ in case only are one entity")
_XID: Final = Column("xid", "string", "path of the entity")
_TYPE: Final = Column("type", "string", "type of the entity, such as `schemagroups.schemas.versions`")
_GROUP: Final = Column("groupxid", "string", "the Group that the entity is or belongs to; null for the registry")
_RESOURCE: Final = Column("resourcexid", "string", "the Resource that it is or belongs to; null above Resources")
_CALLER: Final = Column("caller", "string", "who sent the request")
_COMMAND: Final = Column("command", "string", "the command, such as `WriteTree PUT /schemagroups/g`")
_CORRELATION: Final = Column("xregcorrelationid", "string", "id of the interaction")
_STATE: Final = (
    *(_STREAM, _XID, _TYPE, _GROUP, _RESOURCE),
    Column("parent", "string", "the xid of the owner; null for the registry"),
    Column("id", "string", "last part of the xid"),
    Column("epoch", "bigint", "number of updates"),
    Column("createdat", "timestamp", "as the entity states it; null where it is no time that Spark has"),
    Column("modifiedat", "timestamp", "as the entity states it"),
    Column("attributes", "string", "all attributes as JSON"),
    Column("private", "string", "what only the registry needs, as JSON; part of the state hash"),
    Column("document", "string", "SHA-256 of its document, a Resource's of its default Version"),
    Column("since", "bigint", "position of the event that led to this state"),
    Column("since_time", "timestamp", "time of that event"),
)
_VERDICT: Final = (
    Column("breaking", "boolean", "whether the newer document cannot read what the older one wrote; null: unknown"),
    Column("breaking_reason", "string", "the first reason, in words of the format"),
)

_LOG: Final = LakeTable(
    "log",
    "Each event, with its interaction: the columns of segments. The other tables are computed from this one.",
    (
        _POSITION,
        Column("stream", "string", "the xid of the entity in lower case"),
        Column("revision", "bigint", "1, 2, 3 … in the stream"),
        Column("topic", "string", "kind and version of the event, such as `EntityCreated:1`"),
        Column("state", "string", "the stored event as JSON, with the whole entity after it"),
        Column("first", "bigint", "position of the first event of the interaction"),
        Column("last", "bigint", "position of its last event"),
        _CORRELATION,
        Column("time", "string", "time of the interaction, RFC 3339 in UTC with microseconds"),
        *(_CALLER, _COMMAND),
        Column("registry_url", "string", "public URL of the registry"),
        Column("chain", "binary", "hash over everything recorded up to the end of the interaction"),
        Column("statehash", "binary", "sum of the hashes of all live entities after the interaction"),
        Column("salt", "string", "hides the caller in the chain hash"),
        _MONTH,
    ),
    partition="month",
    sort=("position",),
)

_INTERACTIONS: Final = LakeTable(
    "interactions",
    "Each request that changed something.",
    (
        Column("first", "bigint", "position of its first event"),
        Column("last", "bigint", "position of its last event"),
        Column("events", "bigint", "number of its events"),
        *(_TIME, _CALLER, _COMMAND, _CORRELATION),
        Column("registry_url", "string", "public URL of the registry"),
        Column("chain", "binary", "chain hash after it"),
        Column("statehash", "binary", "state hash after it"),
        _MONTH,
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
        Column("until", "bigint", "position of the event that ended it; null while it is in force"),
        Column("until_time", "timestamp", "time of that event"),
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
        Column("kind", "string", "`created`, `updated`, `refreshed` or `deleted`"),
        *(_CALLER, _COMMAND, _CORRELATION),
        Column("of", "string", "`attribute` or `document`"),
        Column("path", "string", "path of the attribute; empty for a document"),
        Column("before", "string", "the value before as JSON, a document's hash; null: absent"),
        Column("after", "string", "the value after as JSON, a document's hash; null: absent"),
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
        Column("groupid", "string", "id of its Group"),
        Column("resourceid", "string", "id of its Resource"),
        Column("versionid", "string", "its own id"),
        Column("epoch", "bigint", "number of updates"),
        Column("ancestorid", "string", "the Version that it was made from; its own id for a root"),
        Column("name", "string", "its name"),
        Column("contenttype", "string", "media type of its document"),
        Column("format", "string", "format of its document, such as `Avro/1.12.0`"),
        Column("formatvalidatedreason", "string", "why the format was not validated"),
        Column("compatibilityvalidatedreason", "string", "why the compatibility was not validated"),
        Column("isdefault", "boolean", "whether it is, or last was, the default Version"),
        Column("formatvalidated", "boolean", "whether its document is known to be valid; null: not asked"),
        Column("compatibilityvalidated", "boolean", "whether it is known to be compatible; null: not asked"),
        Column("document", "string", "SHA-256 of its document"),
        Column("createdat", "timestamp", "as the Version states it"),
        Column("modifiedat", "timestamp", "as the Version states it"),
        Column("born", "bigint", "position of its creation"),
        Column("born_time", "timestamp", "time of its creation"),
        Column("born_caller", "string", "who created it"),
        Column("gone", "bigint", "position of its deletion; null while it exists"),
        Column("gone_time", "timestamp", "time of its deletion"),
        Column("gone_caller", "string", "who deleted it"),
        Column("reason", "string", "why it was deleted: `deleted`, `pruned` or `forgotten`"),
        Column("size", "bigint", "bytes of its document; null where the document is not known"),
        Column("breaking", "boolean", "whether its document cannot read what its ancestor's wrote; null: unknown"),
        Column("breaking_reason", "string", "the first reason, in words of the format"),
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
        Column("xid", "string", "path of the Version"),
        *(_GROUP, _RESOURCE),
        Column("versionid", "string", "id of the Version"),
        Column("document", "string", "SHA-256 of the document"),
        Column("format", "string", "format of the document"),
        Column("ordinal", "bigint", "1, 2, 3 … in the document"),
        Column("path", "string", "path of the field, such as `order.lines[].price`"),
        Column("name", "string", "name of the field, the last part of its path"),
        Column("fieldtype", "string", "type of the field, in words of the format"),
        Column("optional", "boolean", "whether a valid value may lack the field, or have null there"),
        Column("doc", "string", "description of the field"),
        _MONTH,
    ),
    sort=("name", "position"),
)

_DOCUMENTS: Final = LakeTable(
    "documents",
    "Each document that the log refers to, as far as the source of the log has it.",
    (
        Column("sha256", "string", "SHA-256 of the bytes, in lower-case hex"),
        Column("size", "bigint", "number of bytes"),
        Column("content", "binary", "the bytes"),
    ),
    sort=("sha256",),
)

LOG: Final = _LOG.name
DOCUMENTS: Final = _DOCUMENTS.name
#: The tables that the log and its documents determine, in the order in which they are filled.
TABLES: Final = {
    table.name: table
    for table in (*(_LOG, _DOCUMENTS, _INTERACTIONS, _ENTITIES, _ENTITY_HISTORY, _CHANGES, _VERSIONS, _SCHEMA_FIELDS),)
}
