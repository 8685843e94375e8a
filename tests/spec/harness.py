"""A registry served in process: no sockets, a clock and ids that the caller sets, paths and headers as they are sent.

Request n of a story happens n seconds after midnight and has the correlation id `c<n>`; what comes before the story
(the registry, its model) happens at midnight.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from sqlalchemy import Engine, create_engine, inspect

from api.app import create_app
from api.settings import Settings

BASE: Final = "http://registry"
REGISTRYID: Final = "reg"
MIDNIGHT: Final = datetime(2026, 1, 1, tzinfo=UTC)

#: What a refused request leaves as it was: the log, what points into it, and every row of the read model.
_KEPT: Final = (
    "SELECT max(position) FROM log",
    "SELECT max(last), count(*) FROM interaction",
    "SELECT count(*) FROM document",
    "SELECT tree_key, position, revision, live FROM head ORDER BY tree_key",
    "SELECT tree_key, epoch, attributes FROM entity ORDER BY tree_key",
)


class Request(NamedTuple):
    """One row of a story. body: None for none, bytes as they are, text as UTF-8, anything else as JSON."""

    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. headers: names in lower case, several of a name joined by a comma and a space."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Moment:
    """The time and the id of the request at hand; they stand still until the next one."""

    def __init__(self) -> None:
        self.number = 0
        self._early = 0

    def clock(self) -> datetime:
        return MIDNIGHT + timedelta(seconds=self.number)

    def new_id(self) -> str:
        if self.number:
            return f"c{self.number}"
        self._early += 1  # there are several before request 1, and no two may share an id
        return f"before{self._early}"


class Registry:
    """An open registry and a look into its database."""

    def __init__(self, app: Any, engine: Engine, moment: Moment) -> None:
        self._app = app
        self._engine = engine
        self.moment = moment

    async def ask(self, request: Request) -> Answer:
        """The answer to the next request of the story."""
        self.moment.number += 1
        return await self.send(request)

    async def send(self, request: Request) -> Answer:
        """The answer to a request at the present moment."""
        sent, body = _scope(request), _bytes(request.body)
        messages: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            messages.append(message)

        await self._app(sent, receive, send)
        content = b"".join(message.get("body", b"") for message in messages[1:])
        return Answer(messages[0]["status"], _joined(messages[0]["headers"]), content)

    def kept(self) -> list[Any]:
        """What no refused request may change, as one value."""
        with self._engine.connect() as connection:
            return [[tuple(row) for row in connection.exec_driver_sql(query)] for query in _KEPT]


@asynccontextmanager
async def serving(database: str, model: Mapping[str, Any] | None = None) -> AsyncIterator[Registry]:
    """The registry of a database at midnight, with a model of its own if one is given (that is a second epoch)."""
    moment, engine = Moment(), create_engine(database.replace("postgresql:", "postgresql+psycopg:", 1))
    settings = Settings(database=database, public_url=BASE, registryid=REGISTRYID)
    app = create_app(settings, clock=moment.clock, new_id=moment.new_id)
    try:
        async with app.router.lifespan_context(app):
            registry = Registry(app, engine, moment)
            if model is not None:
                answer = await registry.send(Request("PUT", "/modelsource", model))
                assert answer.status == 200, answer
            yield registry
    finally:
        engine.dispose()


def emptied(database: str) -> None:
    """Takes all rows out of a store's tables, so that one schema serves many stories."""
    engine = create_engine(database.replace("postgresql:", "postgresql+psycopg:", 1))
    with engine.begin() as connection:
        for table in inspect(connection).get_table_names():
            connection.exec_driver_sql(f'DELETE FROM "{table}"')
    engine.dispose()


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
