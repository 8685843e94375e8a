"""The end of the log, and what else a write transaction reads at its start, in one query."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from annals.commands.store import hashes
from annals.commands.store.clock import parse_time
from annals.commands.store.database import sql
from annals.commands.store.database.migrations import SELECT_SCHEMA, require_no_newer
from annals.commands.store.mapper import UnreadableEvent, require_bytes
from annals.domain.replication import link as links
from annals.domain.values import xid as xids

_SELECT_LOG_END: Final = (
    "SELECT last, time, chain, state, xregcorrelationid FROM interaction ORDER BY last DESC LIMIT 1"
)
#: Whether any Resource has an xref. Without statistics, PostgreSQL takes any row for one with an xref, so it would scan
#: the table for the first one. The maximum comes from the index.
HAS_POINTERS: Final = "SELECT max(xref) IS NOT NULL FROM head WHERE xref IS NOT NULL"
_POSITION: Final = "SELECT position FROM head WHERE tree_key = '{}'"
_LAST_LINK_POSITION: Final = "SELECT max(position) FROM head WHERE tree_key >= '{}' AND tree_key < '{}'"
#: Query columns with the values of `StartState`.
START_COLUMNS: Final = (
    f"(SELECT hash FROM head WHERE tree_key = '{xids.tree_key(xids.MODEL)}'),"
    f" ({_POSITION.format(xids.tree_key(xids.MODEL))}),"
    f" ({_POSITION.format(xids.tree_key(xids.CAPABILITIES))}),"
    f" ({_LAST_LINK_POSITION.format(*xids.subtree(links.COLLECTION))}),"
    f" ({HAS_POINTERS})"
)
_SELECT_START: Final = _SELECT_LOG_END.replace(" FROM", f", {START_COLUMNS}, ({SELECT_SCHEMA}) FROM", 1)


class LogEnd(NamedTuple):
    """The end of the log; time is None when it is empty. id: correlation id of its last interaction."""

    position: int = 0
    time: datetime | None = None
    chain: bytes = hashes.EMPTY_HASH
    state: bytes = hashes.EMPTY_HASH
    id: str = ""


class StartState(NamedTuple):
    """What nearly every command needs of the registry at the end of the log.

    model_hash: of the model's entity. The positions are those of the last events of the model, of the capabilities and
    of any link, None if there never was one. has_pointers: whether any Resource has an xref.
    """

    model_hash: Any
    model_position: int | None
    capabilities_position: int | None
    links_position: int | None
    has_pointers: Any


def read_log_end(connection: Connection) -> LogEnd:
    """The end of the log, as the connection sees it. Raises: UnreadableEvent when it is damaged."""
    row = sql.run(connection, _SELECT_LOG_END).fetchone()
    return LogEnd() if row is None else _log_end_of(*row)


def read_start(connection: Connection) -> tuple[LogEnd, StartState | None]:
    """The end of the log with the state there, which an empty log does not have.

    Raises: as `read_log_end`; StoreUpgraded.
    """
    row = sql.run(connection, _SELECT_START).fetchone()
    if row is None:
        return LogEnd(), None
    *values, schema = row
    require_no_newer(schema)
    width = len(LogEnd._fields)
    return _log_end_of(*values[:width]), StartState(*values[width:])


def _log_end_of(position: Any, time: Any, chain: Any, state: Any, id: Any) -> LogEnd:
    try:
        return LogEnd(position, parse_time(time), require_bytes(chain), require_bytes(state), str(id))
    except (TypeError, ValueError) as error:
        raise UnreadableEvent(f"the interaction that ends at position {position} cannot be read: {error}") from error
