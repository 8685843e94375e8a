"""A registry served without a socket: the real application on a real store, with a fixed clock and known ids."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from typing import Any

import httpx

from annals.api.app import create_app
from annals.api.settings.settings import Settings
from annals.commands.command_bus import CommandBus
from annals.commands.store.log import Store
from annals.domain.decisions.commands import CreateRegistry
from annals.projections.entities.apply import EntityProjection

BASE = "http://h/r"
NOW = "2026-01-02T03:04:05Z"
NEW_YEAR = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MODEL: dict[str, Any] = {
    "groups": {
        "dirs": {
            "singular": "dir",
            "resources": {
                "files": {
                    "singular": "file",
                    "attributes": {
                        "*": {"type": "any"},
                        "size": {"type": "integer"},
                        "tags": {"type": "array", "item": {"type": "string"}},
                    },
                },
                "notes": {"singular": "note", "hasdocument": False},
            },
        }
    }
}


class Api:
    """One registry and its client. ids: the next correlation ids. now: the time of the server's clock."""

    def __init__(
        self,
        database: str,
        public_url: str | None = BASE,
        ids: str = "id",
        ports: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.ids: Iterator[str] = (f"{ids}{number}" for number in count(1))
        self.now = NEW_YEAR
        settings = Settings(database=database, public_url=public_url, registryid="reg", **{"hosts": "h", **options})
        self.app = create_app(
            settings,
            clock=lambda: self.now,
            new_id=lambda: next(self.ids),
            **(ports or {}),
        )
        self.runner = asyncio.Runner()
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://h")

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """The response to a request. body: bytes, or a value that is sent as JSON. Headers: `_` stands for `-`."""
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.runner.run(self.client.request(method, path, content=content, headers=named))

    def get(self, path: str) -> Any:
        """The JSON of the response to a GET, which must succeed."""
        answer = self.send("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def done(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """The response to a request, which must succeed."""
        answer = self.send(method, path, body, **headers)
        assert answer.status_code in (200, 201, 204), answer.text
        return answer


def create(database: str, model: dict[str, Any] = MODEL, id: str | None = None) -> None:
    """Creates a store whose registry has a given model from its first interaction on. id: of this interaction.

    With an id, all such stores are equal, including otherwise random values.
    """
    fixed: dict[str, Any] = {} if id is None else {"new_id": lambda: id, "new_salt": lambda: "salt"}
    store = Store(database, clock=lambda: NEW_YEAR, **fixed)
    entities = EntityProjection()
    store.create()
    with store.writing() as transaction:
        entities.create(transaction.connection)
    command_bus = CommandBus(store, [entities])
    command_bus.submit(CreateRegistry("reg", model)).result()
    command_bus.close()
    store.close()


@contextmanager
def serving(
    database: str,
    public_url: str | None = BASE,
    ids: str = "id",
    ports: dict[str, Any] | None = None,
    **options: Any,
) -> Iterator[Api]:
    """Serves the registry of a database during the block.

    ids: the prefix of its correlation ids. ports: further arguments of `create_app`. options: further settings.
    """
    api = Api(database, public_url, ids, ports, **options)
    with api.runner:
        lifespan = api.app.router.lifespan_context(api.app)
        api.runner.run(lifespan.__aenter__())
        try:
            yield api
        finally:
            api.runner.run(lifespan.__aexit__(None, None, None))
