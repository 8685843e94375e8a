"""Upgrades the stores of older programs, by named steps from one schema to the next.

A step takes at most some ten seconds for a million entities. It runs in one transaction with the record of it, which is
the schema in the table `store`. So opening a store takes the steps that it lacks, and an interruption leaves none half
done.
Work that takes longer is only recorded by a step, and waits for `annals upgrade`; the program also works without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, inspect

from annals.commands.store.database import sql, tables
from annals.commands.store.database.store_lost import StoreLost

#: The key in `store` of the last position whose state an older program has stored as it is; none once all are
#: compressed, see `annals.commands.store.compression.log_compression`.
PLAIN_UNTIL: Final = "plain_until"
#: The key in `store` of the last document, by its hash, that has been compressed of those that an older program has
#: stored as they are; none once all are.
PLAIN_DOCUMENTS_AFTER: Final = "plain_documents_after"

#: The key in `store` that is there while schemas of an older program have no ids, see
#: `annals.commands.missing_schema_ids`.
SCHEMAS_WITHOUT_IDS: Final = "schemas_without_ids"

#: The schema of a store, as text.
SELECT_SCHEMA: Final = "SELECT value FROM store WHERE key = 'schema'"
_SET_SCHEMA: Final = "UPDATE store SET value = ? WHERE key = 'schema'"


class UpgradeStep(NamedTuple):
    """One step. schema: of the store after it. name: what it brings. run: does it; a second time changes nothing."""

    schema: str
    name: str
    run: Callable[[Connection], None]


#: Called before a step.
BeginStep = Callable[[UpgradeStep], None]


def ignore_step(step: UpgradeStep) -> None:
    """The BeginStep of callers that report nothing."""


class UnusableSchema(RuntimeError):
    """This program cannot use a store with its schema."""


class StoreUpgraded(StoreLost):
    """Another release has changed the schema of the store while this process has it open."""


def _add_to_interactions(connection: Connection, *names: str) -> None:
    present = {column["name"] for column in inspect(connection).get_columns("interaction")}
    for name in names:
        if name not in present:
            sql.run(connection, f"ALTER TABLE interaction ADD COLUMN {name} TEXT NOT NULL DEFAULT ''")


def _add_salts(connection: Connection) -> None:
    _add_to_interactions(connection, "salt")


def _add_credentials(connection: Connection) -> None:
    _add_to_interactions(connection, "authenticator", "keyid")


def _note_plain_states(connection: Connection) -> None:
    log_end = sql.scalar(connection, "SELECT coalesce(max(position), 0) FROM log")
    if log_end:
        sql.insert(connection, tables.store, [(PLAIN_UNTIL, str(log_end))], "ON CONFLICT DO NOTHING")


def _note_plain_documents(connection: Connection) -> None:
    if sql.scalar(connection, "SELECT 1 FROM document LIMIT 1"):
        sql.insert(connection, tables.store, [(PLAIN_DOCUMENTS_AFTER, "")], "ON CONFLICT DO NOTHING")


def _drop_head_parents(connection: Connection) -> None:
    if "parent" in {column["name"] for column in inspect(connection).get_columns("head")}:
        sql.run(connection, "DROP INDEX head_members")  # SQLite drops no column that an index has
        sql.run(connection, "ALTER TABLE head DROP COLUMN parent")
        for index in tables.head.indexes:
            index.create(connection, checkfirst=True)


def _note_schemas_without_ids(connection: Connection) -> None:
    if sql.scalar(connection, "SELECT 1 FROM log LIMIT 1"):
        sql.insert(connection, tables.store, [(SCHEMAS_WITHOUT_IDS, "")], "ON CONFLICT DO NOTHING")


def _shrink_documents_and_heads(connection: Connection) -> None:
    _note_plain_documents(connection)
    _drop_head_parents(connection)


#: The steps in their order; each one's schema is the one that the next one begins with.
STEPS: Final = (
    UpgradeStep("3", "salts that hide callers in the chain hash", _add_salts),
    UpgradeStep("4", "compressed states of events", _note_plain_states),
    UpgradeStep("5", "compressed documents, heads without their owners", _shrink_documents_and_heads),
    # The table is new, and `Store.create` has created it. Older programs would take a state that is in the archive for
    # a damaged one.
    UpgradeStep("6", "an archive for old parts of the log", lambda connection: None),
    UpgradeStep("7", "ids of schemas for Confluent's clients", _note_schemas_without_ids),
    UpgradeStep("8", "the authenticator and the API key of each interaction", _add_credentials),
)
#: The first schema from which steps lead on, and the first whose tables can be read before a step.
_FIRST_SCHEMA: Final = 2
_FIRST_READABLE: Final = 3


def upgrade(connection: Connection, begin_step: BeginStep = ignore_step) -> Sequence[UpgradeStep]:
    """Takes the steps that a store lacks; returns them. Raises: UnusableSchema when no steps lead to this program's."""
    schema = _stored_schema(connection, _FIRST_SCHEMA)
    steps = [step for step in STEPS if int(step.schema) > schema]
    for step in steps:
        begin_step(step)
        step.run(connection)
        sql.run(connection, _SET_SCHEMA, (step.schema,))
    return steps


def require_readable(connection: Connection) -> None:
    """Raises: UnusableSchema unless this program can read the log of the store without an upgrade."""
    _stored_schema(connection, _FIRST_READABLE)


def require_current(connection: Connection) -> None:
    """Raises: UnusableSchema unless the store has all tables of this program."""
    _stored_schema(connection, int(tables.SCHEMA))


def require_no_newer(schema: str) -> None:
    """Raises: StoreUpgraded for the schema of a newer program, for processes that have opened the store.

    An older one is no error: some verbs work on the store of an older program without an upgrade.
    """
    if int(schema) > int(tables.SCHEMA):
        raise StoreUpgraded(
            f"another release of the program has upgraded the store from schema {tables.SCHEMA} to {schema};"
            " stop this process, and start it with that release"
        )


def _stored_schema(connection: Connection, lowest: int) -> int:
    schema = str(sql.scalar(connection, SELECT_SCHEMA))
    number = int(schema) if schema.isdecimal() else 0
    if number > int(tables.SCHEMA):
        raise UnusableSchema(
            f"a newer program wrote the store, with schema {schema}; this one knows schemas up to {tables.SCHEMA}:"
            " use the newer program, or restore a backup from before its first start"
        )
    if number < _FIRST_SCHEMA:
        raise UnusableSchema(
            f"the store has schema {schema}, and no steps lead from it to schema {tables.SCHEMA}: export the registry"
            " with the program that wrote it, and import it into a new store"
        )
    if number < lowest:
        raise UnusableSchema(f"the store has schema {schema}; upgrade it to {tables.SCHEMA} with `annals upgrade`")
    return number
