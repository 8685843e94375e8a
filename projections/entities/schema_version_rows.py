"""The rows of the tables `schema_version` and `schema_reference`."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import product
from typing import Any, Final

from annals.commands.store.damage import UnreadableRow
from annals.domain.confluent.schema_versions import SchemaVersion
from annals.domain.confluent.subjects import DEFAULT_CONTEXT, parse_subject
from annals.domain.values import xid as xids
from annals.domain.values.json_text import dumps, loads_trusted
from annals.projections.database.drivers import Values

#: The columns of `schema_version`, in their order.
SCHEMA_VERSION_COLUMNS: Final = (
    *("tree_key", "since", "xid", "subject", "subject_hash", "number", "id", "key", "guid", "type", "document"),
    *("extras", "replaced", "deleted", "gone"),
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
        key_text(version.key),
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
    targets = {(subject_hash(path), number) for path, number in reference_targets(version)}
    yield from ((*target, xids.tree_key(version.xid), version.since) for target in sorted(targets))


def reference_targets(version: SchemaVersion) -> set[tuple[str, int]]:
    """The paths and numbers of the versions that a version refers to."""
    return {(reference_path(version.group, reference.subject), reference.version) for reference in version.references}


def reference_rows_of(row: Values) -> Iterator[Values]:
    """The rows of `schema_reference` of a row of `schema_version`."""
    members = dict(zip(SCHEMA_VERSION_COLUMNS, row, strict=True))
    return schema_reference_rows(read_schema_version([members[name] for name in SchemaVersion._fields]))


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


def key_text(key: str) -> str:
    """The key of a content as its column has it: two thirds of the characters. key: SHA-256 in hex."""
    return urlsafe_b64encode(bytes.fromhex(key)).decode()


_NUMBERS: Final = ("since", "number", "id", "replaced", "deleted", "gone")
_COLUMN_TYPES: Final = {**dict.fromkeys(_NUMBERS, int), "document": bytes}
_OPTIONAL: Final = frozenset({"replaced", "deleted", "gone"})
#: The types of the values of a valid row. Compared at once, because look-ups read many rows.
_ROW_TYPES: Final = frozenset(
    product(
        *(
            (_COLUMN_TYPES.get(name, str), type(None)) if name in _OPTIONAL else (_COLUMN_TYPES.get(name, str),)
            for name in SchemaVersion._fields
        )
    )
)


def read_schema_version(values: Sequence[Any]) -> SchemaVersion:
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


def known_schema_version(row: Values) -> SchemaVersion:
    """`read_schema_version`, through which most rows have gone before: mostly the same subjects are used."""
    is_small = isinstance(row[_EXTRAS], str) and len(row[_EXTRAS]) <= _MAX_KEPT_EXTRAS
    return _small_version(row) if is_small else read_schema_version(row)


_small_version: Final = lru_cache(maxsize=4096)(read_schema_version)
#: The number of characters of extras up to which a version stays in memory.
_MAX_KEPT_EXTRAS: Final = 1000


def _invalid_row(row: Sequence[Any]) -> UnreadableRow:
    """The error for a row of which a value has another type than its column."""
    valid_types = [{types[column] for types in _ROW_TYPES} for column in range(len(SchemaVersion._fields))]
    members = zip(SchemaVersion._fields, row, valid_types, strict=True)
    name, value = next((name, value) for name, value, types in members if type(value) not in types)
    return UnreadableRow(f"a row of schema_version has the invalid {name} {value!r:.100}")
