"""A served registry whose log has values that are difficult for sources, and the rows of that log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from pyspark.sql import DataFrame

from annals.projections.database.connections import connect
from annals.projections.events.feed import interactions
from annals.projections.log.reader import Log
from annals.projections.log.table_rows import LogTableRow, table_rows
from tests.data import SCENARIOS, read
from tests.support.serving import serving

#: Characters that end lines elsewhere but not in JSON lines, that JSON and URLs escape, and one beyond 16 bits.
AWKWARD = 'a\u2028b\u0085c\x0bd \\"e\\" /% 🜁'


class ServedLog(NamedTuple):
    """A served registry. database: the URL of its store. token: of an admin; None where anybody may write."""

    url: str
    database: str
    token: str | None = None

    def write(self, method: str, path: str, body: Any = None) -> None:
        """Sends a write, which has to succeed."""
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        answer = httpx.request(method, self.url + path, json=body, headers=headers, timeout=30)
        assert answer.is_success, answer.text

    def rows(self) -> list[LogTableRow]:
        """The whole log."""
        return log_rows(self.database)


@contextmanager
def served_log(database: str, folder: Path, token: str | None = None, **settings: str) -> Iterator[ServedLog]:
    """A registry that has imported each scenario, and then made some changes and deletions."""
    tokens = {"ANNALS_TOKENS": json.dumps({token: {"name": "root", "role": "admin"}})} if token else {}
    with serving(database, folder, **tokens, **settings) as served:
        found = ServedLog(served.url, database, token)
        for path in SCENARIOS.values():
            found.write("POST", "/", {key: value for key, value in read(path).items() if key.endswith("groups")})
        write_changes(found, "one", "two")
        yield found


def write_changes(registry: ServedLog, *names: str) -> None:
    """Four interactions for each name, of one event and of several."""
    for name in names:
        registry.write("PUT", f"/schemagroups/{name}", {"name": f"{name} {AWKWARD}"})
        schema = {"format": "JsonSchema/draft-07", "schema": {"type": "object"}, "name": AWKWARD}
        registry.write("PUT", f"/schemagroups/{name}/schemas/s$details", schema)
        registry.write("PATCH", f"/schemagroups/{name}/schemas/s$details", {"description": "x" * 3000})
        registry.write("DELETE", f"/schemagroups/{name}/schemas/s")


def log_rows(database: str) -> list[LogTableRow]:
    """The whole log of a store."""
    reader = connect(database)
    try:
        log = Log(reader)
        recorded = interactions(lambda: log, 0, log.head().last)
        return [row for interaction, events in recorded for row in table_rows(interaction, events)]
    finally:
        reader.close()


def collect_rows(log: DataFrame) -> list[LogTableRow]:
    """The rows that a source returns, by position; its columns must be those of a row, in their order."""
    return by_position(LogTableRow(*map(_plain, row)) for row in log.collect())


def by_position(found: Iterable[LogTableRow]) -> list[LogTableRow]:
    """Rows in the order of the log."""
    return sorted(found, key=lambda row: row.position)


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value
