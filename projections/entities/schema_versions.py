"""The tables `schema_version` and `schema_reference`: what Confluent's API looks up, now and as of a moment."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from annals.commands.store.database.sql import chunks
from annals.domain.confluent.schema_versions import MAX_ID, SchemaVersion
from annals.domain.confluent.subject_versions import SubjectVersions
from annals.domain.confluent.subjects import GROUPS
from annals.domain.values import xid as xids
from annals.projections.database import drivers
from annals.projections.database.drivers import Database, Values
from annals.projections.entities.schema_version_rows import (
    key_text,
    known_schema_version,
    read_schema_version,
    reference_targets,
    subject_hash,
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
#: The number of a subject's newest versions that are read at once: of most subjects all.
NEWEST_VERSIONS: Final = 16
_NUMBER_OF_SUBJECT: Final = (
    "(SELECT v.number FROM schema_version v WHERE v.subject_hash = CAST(list.key AS BIGINT) AND {listed}"
    " ORDER BY v.number"
)
# Ranges of the index by subject. The first two find the lowest number of the newest versions, and that of all.
_NEWEST: Final = (
    "WITH page AS MATERIALIZED (SELECT CAST(key AS BIGINT) AS hash,"
    f" {_NUMBER_OF_SUBJECT} DESC LIMIT 1 OFFSET {{count}}) AS lowest, {_NUMBER_OF_SUBJECT} LIMIT 1) AS oldest"
    " FROM {list_table} AS list)"
    f" SELECT hash, lowest, {_FIELDS} FROM page"
    " JOIN schema_version v ON v.subject_hash = hash AND v.number >= coalesce(lowest, 0) WHERE {listed}"
    f" UNION ALL SELECT hash, lowest, {_FIELDS} FROM page"
    " JOIN schema_version v ON v.subject_hash = hash AND v.number = oldest WHERE oldest < lowest AND {listed}"
    " ORDER BY number, since"
)


def stored_schema_rows(db: Database, table: str, keys: Collection[str]) -> dict[str, list[SchemaVersion]]:
    """The rows of some streams that are not gone, by tree key."""
    if not keys:
        return {}
    rows: dict[str, list[SchemaVersion]] = {}
    sql = f"SELECT {_FIELDS} FROM {table} v WHERE v.gone IS NULL AND {db.in_list('v.tree_key')}"
    for values in db.all(sql, [db.list_parameter(keys)]):
        version = read_schema_version(values)
        rows.setdefault(xids.tree_key(version.xid), []).append(version)
    return rows


def open_schemas(connection: Connection) -> StoredSchemas:
    """The look-ups on the connection of a write transaction."""
    return StoredSchemas(drivers.database_of(connection))


class StoredSchemas:
    """`annals.domain.confluent.schema_index.SchemaIndex` over the tables. position: of a moment; None for now."""

    def __init__(self, db: Database, position: int | None = None) -> None:
        self._db = db
        self._position = position

    def versions(self, group: str, subject: str) -> list[SchemaVersion]:
        return self.versions_where(group, subject)

    def versions_where(self, group: str, subject: str, condition: str = "", *values: Any) -> list[SchemaVersion]:
        """`versions` that fulfil a condition. values: for its placeholders."""
        found = self._all(
            f"v.subject_hash = ? {condition} AND {{visible}} ORDER BY v.number, v.since",
            (subject_hash(f"{group}/{subject}"), *values),
        )
        return _of_subject(found, group, subject)

    def versions_of(self, subjects: Collection[tuple[str, str]]) -> dict[tuple[str, str], list[SchemaVersion]]:
        found: dict[tuple[str, str], list[SchemaVersion]] = {subject: [] for subject in subjects}
        condition = f"{self._db.in_list('v.subject_hash')} AND {{visible}} ORDER BY v.number, v.since"
        for chunk in chunks(sorted(subject_hash("/".join(subject)) for subject in found)):
            for one in self._all(condition, (self._db.list_parameter(chunk),)):
                if one.is_listed and (one.group, one.subject) in found:
                    found[one.group, one.subject].append(one)
        return found

    def subject_versions(self, subjects: Collection[tuple[str, str]]) -> dict[tuple[str, str], SubjectVersions]:
        sql = _NEWEST.format(listed=self._listed, count=NEWEST_VERSIONS, list_table=self._db.list_table)
        hashes = {subject: subject_hash("/".join(subject)) for subject in subjects}
        rows: dict[int, list[SchemaVersion]] = {}
        lowest_numbers: dict[int, int | None] = {}
        for chunk in chunks(sorted({*hashes.values()})):
            for hash, lowest, *row in self._db.all(sql, (self._db.list_parameter(map(str, chunk)),)):
                rows.setdefault(hash, []).append(self._as_of(known_schema_version(tuple(row))))
                lowest_numbers[hash] = lowest
        return {
            subject: self._subject_versions(subject, rows.get(hash, ()), lowest_numbers.get(hash))
            for subject, hash in hashes.items()
        }

    def _subject_versions(
        self, subject: tuple[str, str], rows: Iterable[SchemaVersion], lowest: int | None
    ) -> SubjectVersions:
        """rows: the newest and the oldest ones of all subjects with the same hash.

        lowest: the lowest number of the newest ones; None if they are all.
        """
        own = _of_subject(rows, *subject)
        if lowest is None:
            return SubjectVersions(own)
        newest = [version for version in own if version.number >= lowest]
        if not newest:  # they are all of another subject
            return SubjectVersions(self.versions(*subject))
        return SubjectVersions(newest, VersionsOf(self, *subject), own[0])

    def by_key(self, key: str) -> list[SchemaVersion]:
        return self._all("v.key = ? AND {visible} ORDER BY v.since DESC", (key_text(key),))

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
        key_of_text = {key_text(key): key for key in keys}
        return {
            key_of_text[text]: lowest if lowest == highest and not is_shared else None
            for chunk in chunks(sorted(key_of_text))
            for text, lowest, highest, is_shared in self._db.all(sql, (self._db.list_parameter(chunk),))
            if lowest is not None
        }

    def ids_of_keys(self, keys: Collection[str]) -> dict[str, list[tuple[str, int]]]:
        found: dict[str, list[tuple[str, int]]] = {}
        sql = f"SELECT key, xid, id FROM schema_version WHERE {self._db.in_list('key')} ORDER BY since DESC"
        key_of_text = {key_text(key): key for key in keys}
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
                if version.is_listed and (path, number) in reference_targets(version):
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
                version = self._as_of(read_schema_version(values))
                if version.is_listed:
                    yield version

    def subjects(self, groups: Iterable[str], *, with_deleted: bool, only_deleted: bool) -> Iterator[tuple[str, str]]:
        """The Group and the name of each subject, in no order, streamed.

        with_deleted: include those of which all versions are soft-deleted. only_deleted: only those.
        """
        for group in groups:
            low, high = xids.subtree(f"/{GROUPS}/{group}")
            live = self._before_end("deleted")
            having = f"HAVING sum(CASE WHEN {live} THEN 1 ELSE 0 END) {'= 0' if only_deleted else '> 0'}"
            sql = (
                f"SELECT v.subject FROM schema_version v WHERE v.tree_key > ? AND v.tree_key < ? AND {self._listed}"
                f" GROUP BY v.subject_hash, v.subject {having if only_deleted or not with_deleted else ''}"
            )
            for (subject,) in self._db.stream(sql, (low, high)):
                yield group, subject

    def _all(self, condition: str, values: Values) -> list[SchemaVersion]:
        visible = condition.format(visible=self._visible("v"))
        return self._query(_SELECT + visible, values)

    def _query(self, sql: str, values: Values) -> list[SchemaVersion]:
        rows = self._db.all(sql, (*values, *self._parameters))
        return [self._as_of(known_schema_version(tuple(row))) for row in rows]

    def _visible(self, since_table: str) -> str:
        """The condition for rows that existed and were not gone."""
        if self._position is None:
            return "v.gone IS NULL"
        return f"{since_table}.since <= ? AND (v.gone IS NULL OR v.gone > ?)"

    @property
    def _listed(self) -> str:
        """The condition for rows that were live or soft-deleted, without parameters."""
        since = f"v.since <= {self._position} AND " if self._position is not None else ""
        return f"{since}{self._before_end('gone')} AND {self._before_end('replaced')}"

    def _before_end(self, column: str) -> str:
        """The condition for rows of which an end is not reached, without parameters."""
        later = f" OR v.{column} > {self._position}" if self._position is not None else ""
        return f"(v.{column} IS NULL{later})"

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


def _of_subject(versions: Iterable[SchemaVersion], group: str, subject: str) -> list[SchemaVersion]:
    """Those versions of a hash that are live or soft-deleted ones of a subject."""
    place = f"/{GROUPS}/{group}/"
    return [one for one in versions if one.is_listed and one.subject == subject and one.xid.startswith(place)]


class VersionsOf(NamedTuple):
    """`annals.domain.confluent.subject_versions.VersionLookups` over the table."""

    schemas: StoredSchemas
    group: str
    subject: str

    def all(self) -> list[SchemaVersion]:
        return self.schemas.versions(self.group, self.subject)

    def with_number(self, number: int) -> list[SchemaVersion]:
        return self.schemas.versions_where(self.group, self.subject, "AND v.number = ?", number)

    def with_key(self, key: str) -> list[SchemaVersion]:
        return self.schemas.versions_where(self.group, self.subject, "AND v.key = ?", key_text(key))

    def with_key_or_member(self, key: str, names: Collection[str]) -> list[SchemaVersion]:
        # The database passes over the rows of the subject, which costs a twentieth of reading them here.
        condition = f"AND (v.key = ?{' OR v.extras LIKE ?' * len(names)})"
        patterns = (f'%"{name}"%' for name in names)
        return self.schemas.versions_where(self.group, self.subject, condition, key_text(key), *patterns)
