"""A registry served in process: no sockets, a clock and ids that the caller sets, paths and headers sent unchanged.

Request n of a test case happens n seconds after midnight and has the correlation id `c<n>`. The preparation (creating
the registry, its model) happens at midnight.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from sqlalchemy import Engine, MetaData, Table, create_engine

from annals.api.app import create_app
from annals.api.settings.settings import Settings

BASE: Final = "http://registry"
REGISTRYID: Final = "reg"
MIDNIGHT: Final = datetime(2026, 1, 1, tzinfo=UTC)

#: The rows that a refused request must not change: the log, the tables that refer to it, and the read model.
_STATE_QUERIES: Final = (
    "SELECT max(position) FROM log",
    "SELECT max(last), count(*) FROM interaction",
    "SELECT count(*) FROM document",
    "SELECT tree_key, position, revision, live FROM head ORDER BY tree_key",
    "SELECT tree_key, epoch, compressed_attributes FROM entity ORDER BY tree_key",
)


class Request(NamedTuple):
    """One request of a test case. body: None for none, bytes unchanged, text as UTF-8, anything else as JSON."""

    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. headers: names in lower case, repeated headers joined by a comma and a space."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class RequestClock:
    """The time and the id of the current request; they stay the same until the next one."""

    def __init__(self) -> None:
        self.number = 0
        self._early = 0

    def clock(self) -> datetime:
        return MIDNIGHT + timedelta(seconds=self.number)

    def new_id(self) -> str:
        if self.number:
            return f"c{self.number}"
        self._early += 1  # there are several interactions before request 1, with different ids
        return f"before{self._early}"


class OpenRegistry:
    """An open registry that answers requests. moment: advances with each request."""

    def __init__(self, app: Any, moment: RequestClock) -> None:
        self._app = app
        self.moment = moment

    async def ask(self, request: Request) -> Answer:
        """The response to the next request."""
        self.moment.number += 1
        return await self.send(request)

    async def send(self, request: Request) -> Answer:
        """The response to a request, without advancing the clock."""
        sent, bodies = _scope(request), [_bytes(request.body)]
        messages: list[Any] = []

        async def receive() -> dict[str, Any]:
            if not bodies:  # the client stays connected; feeds check this
                await asyncio.Event().wait()
            return {"type": "http.request", "body": bodies.pop(), "more_body": False}

        async def send(message: Any) -> None:
            messages.append(message)

        await self._app(sent, receive, send)
        content = b"".join(message.get("body", b"") for message in messages[1:])
        return Answer(messages[0]["status"], _joined(messages[0]["headers"]), content)


class Registry(OpenRegistry):
    """An open registry and its database."""

    def __init__(self, app: Any, engine: Engine, moment: RequestClock) -> None:
        super().__init__(app, moment)
        self._engine = engine

    def stored_state(self) -> list[Any]:
        """All rows that a refused request must not change."""
        with self._engine.connect() as connection:
            return [[tuple(row) for row in connection.exec_driver_sql(query)] for query in _STATE_QUERIES]


@asynccontextmanager
async def serving(database: str, model: Mapping[str, Any] | None = None) -> AsyncIterator[Registry]:
    """The registry of a database at midnight. model: replaces the default model, in a second epoch."""
    moment, engine = RequestClock(), _engine(database)
    settings = Settings(database=database, public_url=BASE, registryid=REGISTRYID, hosts="elsewhere.example")
    app = create_app(settings, clock=moment.clock, new_id=moment.new_id, new_salt=lambda: "salt")
    try:
        async with app.router.lifespan_context(app):
            registry = Registry(app, engine, moment)
            if model is not None:
                answer = await registry.send(Request("PUT", "/modelsource", model))
                assert answer.status == 200, answer
            yield registry
    finally:
        engine.dispose()


class ReusableRegistry:
    """One database for many test cases, one after the other, each with one of several models.

    The state at midnight is created once for each model, and restored for later cases. To create it would take most of
    the time of a short case.
    """

    def __init__(self, database: str, models: Mapping[str, Mapping[str, Any]]) -> None:
        self.database = database
        self._engine = _engine(database)
        self._models = models
        self._tables = MetaData()
        self._midnights: dict[str, dict[Table, list[Any]]] = {}

    async def reset(self, model: str) -> None:
        """Restores the state at midnight, with a model."""
        if model in self._midnights:
            self._restore(self._midnights[model])
            return
        self._restore({})
        async with serving(self.database, self._models[model]):
            pass
        self._tables.reflect(self._engine)
        with self._engine.connect() as connection:
            tables = self._tables.sorted_tables
            self._midnights[model] = {table: [*connection.execute(table.select())] for table in tables}

    def close(self) -> None:
        self._engine.dispose()

    def _restore(self, midnight: Mapping[Table, list[Any]]) -> None:
        with self._engine.begin() as connection:
            for table in self._tables.sorted_tables:
                connection.execute(table.delete())
            for table, rows in midnight.items():
                if rows:
                    connection.execute(table.insert(), [dict(row._mapping) for row in rows])


def delete_all_rows(database: str) -> None:
    """Deletes all rows of a store's tables, so that many test cases can use one schema."""
    engine, tables = _engine(database), MetaData()
    tables.reflect(engine)
    with engine.begin() as connection:
        for table in tables.sorted_tables:
            connection.execute(table.delete())
    engine.dispose()


def _engine(database: str) -> Engine:
    return create_engine(database.replace("postgresql:", "postgresql+psycopg:", 1))


def _scope(request: Request) -> dict[str, Any]:
    raw, _, query = request.path.partition("?")
    headers = {"host": BASE.removeprefix("http://"), **_content_type(request), **request.headers}
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "server": ("registry", 80),
        "client": ("test", 1),
        "root_path": "",
        "path": unquote(raw),
        "raw_path": raw.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
    }


def _content_type(request: Request) -> dict[str, str]:
    sent_as_json = request.body is not None and not isinstance(request.body, str | bytes)
    return {"content-type": "application/json"} if sent_as_json else {}


def _bytes(body: Any) -> bytes:
    if body is None or isinstance(body, bytes):
        return body or b""
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def _joined(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        joined[key] = f"{joined[key]}, {text}" if key in joined else text
    return joined
