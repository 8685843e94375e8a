"""A served registry without a socket: the real application over a real store, with a clock and ids that tests know."""

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
    """One registry and its client. ids: correlation ids to come. now: the time of the server's clock."""

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
        """The answer to a request; a body that is no bytes goes as JSON. Headers: `_` stands for `-`."""
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.runner.run(self.client.request(method, path, content=content, headers=named))

    def get(self, path: str) -> Any:
        """The JSON of a GET that succeeds."""
        answer = self.send("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def done(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """The answer to a request that succeeds."""
        answer = self.send(method, path, body, **headers)
        assert answer.status_code in (200, 201, 204), answer.text
        return answer


def create(database: str, model: dict[str, Any] = MODEL, id: str | None = None) -> None:
    """Makes a store whose registry has a model of ours from its first interaction on. id: of this interaction.

    With an id, all such stores are equal, also in what is random otherwise.
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
    """The registry of a database, for as long as the block lasts.

    ids: what its correlation ids begin with. ports: what the application is given besides. options: further settings.
    """
    api = Api(database, public_url, ids, ports, **options)
    with api.runner:
        lifespan = api.app.router.lifespan_context(api.app)
        api.runner.run(lifespan.__aenter__())
        try:
            yield api
        finally:
            api.runner.run(lifespan.__aexit__(None, None, None))
