"""Gives schemas that an older program wrote the ids by which Confluent's clients know them, in one interaction.

Copies wait for the interaction of their source, because both would give different ids; if their link ends before it,
they get theirs here.
"""

from __future__ import annotations

from typing import Final

from annals.commands.command_bus import CommandBus
from annals.commands.store.database import sql
from annals.commands.store.database.migrations import SCHEMAS_WITHOUT_IDS
from annals.commands.store.log import Store
from annals.domain.access.roles import CONSOLE
from annals.domain.confluent.commands import AssignSchemaIds

_SELECT: Final = "SELECT 1 FROM store WHERE key = ?"
_DELETE: Final = "DELETE FROM store WHERE key = ?"


def assign_missing_schema_ids(store: Store, command_bus: CommandBus) -> None:
    """Assigns the ids that are still missing, at the start and when a link has ended.

    Blocks, for as long as the schemas have to be parsed. In a copy of a whole registry there is nothing to assign.
    """
    with store.engine.begin() as connection:
        if not sql.scalar(connection, _SELECT, (SCHEMAS_WITHOUT_IDS,)):
            return
    with store.writing() as transaction:
        copied = [link.scope for link in transaction.world.links if link.follows_log and not link.is_promoted]
    if any(scope.is_whole for scope in copied):
        return
    command_bus.submit(AssignSchemaIds(), CONSOLE).result()
    if not copied:  # when a link ends meanwhile, its own call finds what this one has left
        with store.writing() as transaction:
            sql.run(transaction.connection, _DELETE, (SCHEMAS_WITHOUT_IDS,))
