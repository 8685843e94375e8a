"""The tables `schema_version` and `schema_reference`: what Confluent's API looks up, now and as of a moment."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import product
from typing import Any, Final

from sqlalchemy import Connection

from annals.commands.store.damage import UnreadableRow
from annals.commands.store.database.sql import chunks
from annals.domain.confluent.schema_versions import MAX_ID, SchemaVersion
from annals.domain.confluent.subjects import DEFAULT_CONTEXT, GROUPS, parse_subject
from annals.domain.values import xid as xids
from annals.domain.values.json_text import dumps, loads_trusted
from annals.projections.database import drivers
from annals.projections.database.drivers import Database, Values

#: The columns of `schema_version`, in their order.
SCHEMA_VERSION_COLUMNS: Final = (
    *("tree_key", "since", "xid", "subject", "subject_hash", "number", "id", "key", "guid", "type", "document"),
    *("extras", "replaced", "deleted", "gone"),
)

_FIELDS: Final = ", ".join(f"v.{name}" for name in SchemaVersion._fields)
_SELECT: Final = f"SELECT {_FIELDS} FROM schema_version v WHERE "
_REFERRERS: Final = (
    f"SELECT {_FIELDS} FROM schema_reference r JOIN schema_version v ON v.tree_key = r.tree_key AND v.since = r.since"
    " WHERE r.subject_hash = ? AND r.number = ? AND "
)
# Two probes of the index by key and id, however many Versions have the content. For min() and max() with a condition
# for the key, PostgreSQL may read the index by id instead, which passes over all Versions with other contents.
_LOWEST_ID: Final = (
    "(SELECT CASE WHEN v.key = list.key THEN v.id END FROM schema_version v"
    " WHERE (v.key, v.id) >= (list.key, 0) ORDER BY v.key, v.id LIMIT 1)"
)
_HIGHEST_ID: Final = (
    "(SELECT CASE WHEN v.key = list.key THEN v.id END FROM schema_version v"
    f" WHERE (v.key, v.id) <= (list.key, {MAX_ID}) ORDER BY v.key DESC, v.id DESC LIMIT 1)"
)
#: Whether other contents have an id too, as imports may give it. Looks at a few rows: where many have one content, the
#: others are those of its copies, and a content that was imported later finds the older ones first.
_IS_SHARED: Final = (
    "EXISTS (SELECT 1 FROM (SELECT v.key FROM schema_version v WHERE v.id = found.lowest LIMIT 64) AS named"
    " WHERE named.key <> found.key)"
)
_KEY, _DOCUMENT, _EXTRAS = map(SchemaVersion._fields.index, ("key", "document", "extras"))


def schema_version_row(version: SchemaVersion) -> Values:
    """The values of a row of `schema_version`."""
    return (
        xids.tree_key(version.xid),
        version.since,
        version.xid,
        version.subject,
        subject_hash(f"{version.group}/{version.subject}"),
        version.number,
        version.id,
        _key_text(version.key),
        version.guid,
        version.type,
        bytes.fromhex(version.document),
        dumps(dict(version.extras)).decode(),
        version.replaced,
        version.deleted,
        version.gone,
    )


def schema_reference_rows(version: SchemaVersion) -> Iterator[Values]:
    """The rows of `schema_reference` of a version, one for each version that it refers to."""
    targets = {(subject_hash(path), number) for path, number in _targets(version)}
    yield from ((*target, xids.tree_key(version.xid), version.since) for target in sorted(targets))


def _targets(version: SchemaVersion) -> set[tuple[str, int]]:
    """The paths and numbers of the versions that a version refers to."""
    return {(reference_path(version.group, reference.subject), reference.version) for reference in version.references}


def reference_rows_of(row: Values) -> Iterator[Values]:
    """The rows of `schema_reference` of a row of `schema_version`."""
    members = dict(zip(SCHEMA_VERSION_COLUMNS, row, strict=True))
    return schema_reference_rows(_schema_version([members[name] for name in SchemaVersion._fields]))


def subject_hash(path: str) -> int:
    """The hash of a subject, for indexes; another one can have the same. path: its context's Group, a slash, its name.

    A number takes a fifth of the bytes of most names, in the row and again in the index.
    """
    return int.from_bytes(blake2b(path.encode(), digest_size=8).digest(), "big", signed=True)


def reference_path(group: str, subject: str) -> str:
    """The path of the subject that a schema in a Group refers to. A qualified one keeps the name of its context."""
    return f"/{qualified_reference(subject)}" if subject.startswith(":.") else f"{group}/{subject}"


def qualified_reference(subject: str) -> str:
    """A qualified subject in its one spelling; the default context has none in it."""
    parsed = parse_subject(subject)
    return f":{DEFAULT_CONTEXT}:{parsed.name}" if parsed.context == DEFAULT_CONTEXT else parsed.qualified


def stored_schema_rows(db: Database, table: str, keys: Collection[str]) -> dict[str, list[SchemaVersion]]:
    """The rows of some streams that are not gone, by tree key."""
    if not keys:
        return {}
    rows: dict[str, list[SchemaVersion]] = {}
    sql = f"SELECT {_FIELDS} FROM {table} v WHERE v.gone IS NULL AND {db.in_list('v.tree_key')}"
    for values in db.all(sql, [db.list_parameter(keys)]):
        version = _schema_version(values)
        rows.setdefault(xids.tree_key(version.xid), []).append(version)
    return rows


def open_schemas(connection: Connection) -> StoredSchemas:
    """The look-ups on the connection of a write transaction."""
    return StoredSchemas(drivers.database_of(connection))


class StoredSchemas:
    """`annals.domain.confluent.schema_versions.SchemaIndex` over the tables. position: of a moment; None for now."""

    def __init__(self, db: Database, position: int | None = None) -> None:
        self._db = db
        self._position = position

    def versions(self, group: str, subject: str) -> list[SchemaVersion]:
        found = self._all(
            "v.subject_hash = ? AND {visible} ORDER BY v.number, v.since", (subject_hash(f"{group}/{subject}"),)
        )
        place = f"/{GROUPS}/{group}/"
        return [one for one in found if one.is_listed and one.subject == subject and one.xid.startswith(place)]

    def versions_of(self, subjects: Collection[tuple[str, str]]) -> dict[tuple[str, str], list[SchemaVersion]]:
        found: dict[tuple[str, str], list[SchemaVersion]] = {subject: [] for subject in subjects}
        condition = f"{self._db.in_list('v.subject_hash')} AND {{visible}} ORDER BY v.number, v.since"
        for chunk in chunks(sorted(subject_hash("/".join(subject)) for subject in found)):
            for one in self._all(condition, (self._db.list_parameter(chunk),)):
                if one.is_listed and (one.group, one.subject) in found:
                    found[one.group, one.subject].append(one)
        return found

    def by_key(self, key: str) -> list[SchemaVersion]:
        return self._all("v.key = ? AND {visible} ORDER BY v.since DESC", (_key_text(key),))

    def by_id(self, id: int) -> list[SchemaVersion]:
        return self._all("v.id = ? AND {visible} ORDER BY v.since", (id,))

    def by_ids(self, ids: Collection[int]) -> dict[int, list[SchemaVersion]]:
        found: dict[int, list[SchemaVersion]] = {id: [] for id in ids}
        for chunk in chunks(sorted(found)):
            condition = f"{self._db.in_list('v.id')} AND {{visible}} ORDER BY v.since"
            for one in self._all(condition, (self._db.list_parameter(chunk),)):
                found[one.id].append(one)
        return found

    def by_guid(self, guid: str) -> list[SchemaVersion]:
        return self._all("v.guid = ? AND {visible} ORDER BY v.since", (guid,))

    def sole_ids(self, keys: Collection[str]) -> dict[str, int | None]:
        ids = f"SELECT key, {_LOWEST_ID} AS lowest, {_HIGHEST_ID} AS highest FROM {self._db.list_table} AS list"
        sql = f"SELECT key, lowest, highest, {_IS_SHARED} FROM ({ids}) AS found"
        key_of_text = {_key_text(key): key for key in keys}
        return {
            key_of_text[text]: lowest if lowest == highest and not is_shared else None
            for chunk in chunks(sorted(key_of_text))
            for text, lowest, highest, is_shared in self._db.all(sql, (self._db.list_parameter(chunk),))
            if lowest is not None
        }

    def ids_of_keys(self, keys: Collection[str]) -> dict[str, list[tuple[str, int]]]:
        found: dict[str, list[tuple[str, int]]] = {}
        sql = f"SELECT key, xid, id FROM schema_version WHERE {self._db.in_list('key')} ORDER BY since DESC"
        key_of_text = {_key_text(key): key for key in keys}
        for chunk in chunks(sorted(key_of_text)):
            for text, xid, id in self._db.all(sql, (self._db.list_parameter(chunk),)):
                found.setdefault(key_of_text[text], []).append((xids.segments(xid)[1], id))
        return found

    def highest_id(self) -> int:
        limit = "" if self._position is None else f" WHERE since <= {self._position}"
        row = self._db.one(f"SELECT max(id) FROM schema_version{limit}")
        return int(row[0] or 0)

    def referrers(self, group: str, subject: str, number: int, qualified: str = "") -> list[SchemaVersion]:
        """See SchemaIndex. qualified: the name with its context, as schemas of other contexts refer to it."""
        found: dict[tuple[str, int], SchemaVersion] = {}
        for path in (f"{group}/{subject}", *([f"/{qualified}"] if qualified else [])):
            for version in self._query(_REFERRERS + self._visible("r"), (subject_hash(path), number)):
                if version.is_listed and (path, number) in _targets(version):
                    found[version.xid, version.since] = version
        return list(found.values())

    def names_at(self, resource: str) -> list[str]:
        rows = self._all("v.tree_key > ? AND v.tree_key < ? AND {visible}", xids.subtree(f"{resource}/versions"))
        return list(dict.fromkeys(row.subject for row in rows if row.is_listed))

    def at(self, xid: str) -> list[SchemaVersion]:
        """The rows of a Version that are listed."""
        rows = self._all("v.tree_key = ? AND {visible} ORDER BY v.since", (xids.tree_key(xid),))
        return [row for row in rows if row.is_listed and row.xid == xid]

    def below(self, xid: str) -> list[SchemaVersion]:
        """The rows of all Versions below an entity that are listed, in tree order."""
        rows = self._all("v.tree_key > ? AND v.tree_key < ? AND {visible} ORDER BY v.tree_key", xids.subtree(xid))
        return [row for row in rows if row.is_listed]

    def has_versions(self, group: str) -> bool:
        low, high = xids.subtree(f"/{GROUPS}/{group}")
        rows = self._all("v.tree_key > ? AND v.tree_key < ? AND {visible} LIMIT 1", (low, high))
        return bool(rows)

    def listed(self, groups: Iterable[str] | None = None) -> Iterator[SchemaVersion]:
        """All live and soft-deleted versions, in tree order, streamed. groups: only those of these Groups."""
        ranges = [xids.subtree(f"/{GROUPS}/{group}") for group in groups] if groups is not None else [("!", "~")]
        for low, high in ranges:
            sql = _SELECT + f"v.tree_key > ? AND v.tree_key < ? AND {self._visible('v')} ORDER BY v.tree_key, v.since"
            for values in self._db.stream(sql, (low, high, *self._parameters)):
                version = self._as_of(_schema_version(values))
                if version.is_listed:
                    yield version

    def subjects(self, groups: Iterable[str], *, with_deleted: bool, only_deleted: bool) -> Iterator[tuple[str, str]]:
        """The Group and the name of each subject, in no order, streamed.

        with_deleted: include those of which all versions are soft-deleted. only_deleted: only those.
        """
        for group in groups:
            low, high = xids.subtree(f"/{GROUPS}/{group}")
            live = (
                "v.deleted IS NULL"
                if self._position is None
                else f"(v.deleted IS NULL OR v.deleted > {self._position})"
            )
            replaced = (
                "v.replaced IS NULL"
                if self._position is None
                else f"(v.replaced IS NULL OR v.replaced > {self._position})"
            )
            having = f"HAVING sum(CASE WHEN {live} THEN 1 ELSE 0 END) {'= 0' if only_deleted else '> 0'}"
            sql = (
                f"SELECT v.subject FROM schema_version v WHERE v.tree_key > ? AND v.tree_key < ? AND {replaced}"
                f" AND {self._visible('v')} GROUP BY v.subject_hash, v.subject"
                f" {having if only_deleted or not with_deleted else ''}"
            )
            for (subject,) in self._db.stream(sql, (low, high, *self._parameters)):
                yield group, subject

    def _all(self, condition: str, values: Values) -> list[SchemaVersion]:
        visible = condition.format(visible=self._visible("v"))
        return self._query(_SELECT + visible, values)

    def _query(self, sql: str, values: Values) -> list[SchemaVersion]:
        return [self._as_of(_known_version(tuple(row))) for row in self._db.all(sql, (*values, *self._parameters))]

    def _visible(self, since_table: str) -> str:
        """The condition for rows that existed and were not gone."""
        if self._position is None:
            return "v.gone IS NULL"
        return f"{since_table}.since <= ? AND (v.gone IS NULL OR v.gone > ?)"

    @property
    def _parameters(self) -> Values:
        return () if self._position is None else (self._position, self._position)

    def _as_of(self, version: SchemaVersion) -> SchemaVersion:
        """The row as it was at the position."""
        position = self._position
        if position is None:
            return version
        replaced, deleted, gone = (
            end if end is None or end <= position else None for end in (version.replaced, version.deleted, version.gone)
        )
        return version._replace(replaced=replaced, deleted=deleted, gone=gone)


def _key_text(key: str) -> str:
    """The key of a content as its column has it: two thirds of the characters. key: SHA-256 in hex."""
    return urlsafe_b64encode(bytes.fromhex(key)).decode()


_NUMBERS: Final = ("since", "number", "id", "replaced", "deleted", "gone")
_COLUMN_TYPES: Final = {**dict.fromkeys(_NUMBERS, int), "document": bytes}
_OPTIONAL: Final = frozenset({"replaced", "deleted", "gone"})
#: The types of the values of a valid row. A registration reads the rows of its subject, so they are compared at once.
_ROW_TYPES: Final = frozenset(
    product(
        *(
            (_COLUMN_TYPES.get(name, str), type(None)) if name in _OPTIONAL else (_COLUMN_TYPES.get(name, str),)
            for name in SchemaVersion._fields
        )
    )
)


def _schema_version(values: Sequence[Any]) -> SchemaVersion:
    """Raises: UnreadableRow for a value of another type than its column's, which SQLite can store as well."""
    row = list(values)
    if tuple(map(type, row)) not in _ROW_TYPES:
        raise _invalid_row(row)
    row[_DOCUMENT] = row[_DOCUMENT].hex()
    try:
        row[_KEY] = urlsafe_b64decode(row[_KEY]).hex()
        row[_EXTRAS] = loads_trusted(row[_EXTRAS])
    except ValueError as error:
        raise UnreadableRow(f"a row of schema_version has an invalid key or invalid extras: {error}") from error
    return SchemaVersion._make(row)


def _known_version(row: Values) -> SchemaVersion:
    """`_schema_version`, through which most rows have gone before: a registration looks at all versions of its subject
    several times, and mostly the same subjects are written and read."""
    is_small = isinstance(row[_EXTRAS], str) and len(row[_EXTRAS]) <= _MAX_KEPT_EXTRAS
    return _small_version(row) if is_small else _schema_version(row)


_small_version: Final = lru_cache(maxsize=4096)(_schema_version)
#: The number of characters of extras up to which a version stays in memory.
_MAX_KEPT_EXTRAS: Final = 1000


def _invalid_row(row: Sequence[Any]) -> UnreadableRow:
    """The error for a row of which a value has another type than its column."""
    valid_types = [{types[column] for types in _ROW_TYPES} for column in range(len(SchemaVersion._fields))]
    members = zip(SchemaVersion._fields, row, valid_types, strict=True)
    name, value = next((name, value) for name, value, types in members if type(value) not in types)
    return UnreadableRow(f"a row of schema_version has the invalid {name} {value!r:.100}")
