"""docs/reference/tables.md: the tables of a store, as a new one has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import Inspector

from annals.projections.access.denied_writes import DeniedWrites
from annals.projections.access.key_uses import KeyUses
from annals.projections.sessions.session_store import SessionStore
from docs.generate.application import running_registry
from docs.generate.markdown import code, page, table

_INTRODUCTION: Final = """\
The tables of a store on SQLite; PostgreSQL has the same with its own types. They are no interface: other programs read
the [log](../guides/history.md#following-changes), [segments](../guides/segments.md) or a
[topic](../guides/publishing.md). Never write to them: `annals log verify` finds that.

The log is permanent. The read model can be dropped, and `annals rebuild` creates it again from the log, as it does with
the search index. A backup needs the rest, which cannot be derived from the log: the state of deliveries and links, the
uses of API keys, refused requests and sessions."""
#: The tables by what they are for, each with its meaning.
_GROUPS: Final[dict[str, dict[str, str]]] = {
    "The log": {
        "log": "Every event, by position: 1, 2, 3 … without gaps, in commit order. `state` is JSON with the entity "
        "after the event, compressed with zstd and a dictionary that is part of the program. It is empty where only "
        "the archive has the state.",
        "interaction": "One row for each request that recorded something: the positions of its events, its id, time, "
        "caller and command, and the hashes up to it.",
        "document": "Documents, each once, by the SHA-256 of their bytes; a zstd frame if that is shorter.",
        "head": "The last event of each stream, so that a write finds the state of an entity with one lookup.",
        "secret": "Encrypted secrets of subscriptions and links. The log has only references to them.",
        "archived_segment": "The files of the archive: their positions, sizes and hashes.",
        "store": "Settings of the store itself, such as the version of its tables.",
    },
    "The read model": {
        "entity": "Every existing entity as the API shows it. `tree_key` is the lower-cased xid with `/` as `!`, so "
        "that string order is tree order. `compressed_attributes` is JSON, compressed like `state` in the log.",
        "entity_history": "Replaced and deleted rows of `entity`, each with the position at which it ended.",
        "attribute": "The filter index: one row for each scalar value of an entity, in the order of values. `id_key` "
        "is the tree key without the names of collections.",
        "attribute_path": "The numbers that stand for the paths of values in `attribute`.",
        "published": "Numbers, ids and URIs of versions that the legacy APIs publish.",
        "schema_version": "The versions of subjects in Confluent's API: one row for each content that a Version has "
        "had, with its id and the positions at which it was replaced, deleted, or deleted for good.",
        "schema_reference": "The versions that a row of `schema_version` refers to, by subject and number.",
        "reference": "The xids whose text is in the attributes of an entity, with the positions from and until which "
        "it was, to find what refers to an entity.",
        "projection": "The position up to which each projection has read the log.",
    },
    "The search index": {
        "search_index": "The form of the tables below, and a number that each new index gets.",
        "search_segment": "Ranges of numbers of entities that were written or merged together. Each change of an "
        "entity gives it a new number.",
        "search_gone": "The numbers of entities that have been changed or deleted since, as compressed bitmaps of "
        "65,536 numbers each.",
        "search_block": "Words of a segment, each with the numbers of the entities that have it, as one zstd frame.",
        "search_key": "The tree keys of some entities by their numbers, as one zstd frame.",
        "search_text": "What answers show of some entities, as one zstd frame.",
    },
    "The state of subscriptions": {
        "delivery_state": "The progress of each subscription.",
        "delivery_pending": "Events that wait for an attempt, while later ones are done.",
        "delivery_deadletter": "Events that were given up.",
        "delivery_attempt": "The last thousand attempts of each subscription, for seven days.",
        "delivery_hour": "The number of attempts of each subscription in each hour, by their outcomes.",
        "delivery_callback": "Hashes of the secrets with which a sink may consent to deliveries.",
        "delivery_request": "Requests to the process that delivers for a subscription, such as a given consent.",
        "delivery_process": "The processes that deliver, each with the time until which it counts as alive.",
        "delivery_lease": "Which process delivers for which subscription.",
    },
    "The state of API keys": {"key_use": "When and from where each API key was last used."},
    "Refused requests": {"denied_write": "The last writes that were refused, for `/-/denials`."},
    "Sessions of browsers": {
        "session": "Each session by the hash of its id, with its caller and its times, and the encrypted refresh token "
        "of its provider.",
        "session_used_state": "Sign-ins at a provider that have been completed, for ten minutes, so that none is "
        "completed twice.",
        "session_key": "The key that signs cookies. It opens no session by itself.",
    },
    "The state of links": {
        "replication_state": "The progress and the status of each link.",
        "replication_sent": "What a link has written to another registry over a legacy API.",
        "replication_subject": "Subjects of events that a link has received and not handled yet.",
        "replication_process": "The processes that run links, each with the time until which it counts as alive.",
        "replication_lease": "Which process runs which link.",
    },
}


def text() -> str:
    """The whole page. Raises: ValueError for a table without a meaning, or a meaning without a table."""
    with running_registry() as registry:
        KeyUses(registry.database).open()  # only servers that accept keys make it
        DeniedWrites(registry.database, 1).open()  # only servers that keep some make it
        SessionStore(registry.database).open()  # only servers with an authenticator make its tables
        found = registry.tables()
        explained = {name for group in _GROUPS.values() for name in group}
        if different := set(found.get_table_names()) ^ explained:
            raise ValueError(f"explain these tables in {__file__}, or remove their explanation: {sorted(different)}")
        parts = [part for heading, tables in _GROUPS.items() for part in _section(found, heading, tables)]
    return page("Tables", _INTRODUCTION, *parts)


def _section(found: Inspector, heading: str, tables: dict[str, str]) -> Iterator[str]:
    yield f"## {heading}"
    rows = ((code(name), meaning, _columns(found, name)) for name, meaning in tables.items())
    yield table(("Table", "Contents", "Columns"), rows)


def _columns(found: Inspector, name: str) -> str:
    key = found.get_pk_constraint(name)["constrained_columns"]
    columns: list[Any] = found.get_columns(name)
    return ", ".join(
        f"{code(column['name'])} {str(column['type']).lower()}{' (key)' if column['name'] in key else ''}"
        for column in columns
    )
