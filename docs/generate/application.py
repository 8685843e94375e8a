"""A new registry in this process, in a temporary store, for what only a running registry can say about itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx
from sqlalchemy import Inspector, create_engine, inspect
from starlette.applications import Starlette

from annals.api.app import create_app
from annals.api.settings.settings import Settings
from annals.projections.database.state_database import create_tables
from annals.projections.subscriptions.state import tables

#: The URL of the registry in the pages.
BASE_URL: Final = "http://127.0.0.1:8080"
#: The time of everything that the registry records.
NOW: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)


class RunningRegistry:
    """A registry without a socket. app: its application. database: the URL of its store."""

    def __init__(self, app: Starlette, database: str, runner: asyncio.Runner) -> None:
        self.app = app
        self.database = database
        self._runner = runner
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE_URL)

    def get(self, path: str) -> Any:
        """The JSON at a path."""
        return self._runner.run(self._client.get(path)).raise_for_status().json()

    def write(self, method: str, path: str, body: Any = None) -> None:
        """A request that changes something."""
        self._runner.run(self._client.request(method, path, json=body)).raise_for_status()

    def tables(self) -> Inspector:
        """The tables of its store, with those that the first subscription needs."""
        create_tables(self.database, tables.METADATA)
        return inspect(create_engine(self.database))


@contextmanager
def running_registry(delivers: bool = False) -> Iterator[RunningRegistry]:
    """A registry with the settings' defaults, for as long as the block lasts.

    delivers: whether it runs the workers of subscriptions and links.
    """
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        database = f"sqlite:///{Path(folder, 'annals.db')}"
        settings = Settings(database=database, public_url=BASE_URL, _env_file=None)
        ids = (f"request-{number}" for number in count(1))
        app = create_app(settings, clock=lambda: NOW, new_id=lambda: next(ids), delivers=delivers)
        lifespan = app.router.lifespan_context(app)
        runner.run(lifespan.__aenter__())
        try:
            yield RunningRegistry(app, database, runner)
        finally:
            runner.run(lifespan.__aexit__(None, None, None))
