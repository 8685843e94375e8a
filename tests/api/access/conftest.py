"""A registry with tokens and API keys, whose clock the tests set."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from annals.api.app import create_app
from annals.api.settings.settings import Settings
from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import create

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TOKENS = {
    "admin": {"name": "ada", "role": "admin"},
    "team": {"name": "tim", "groups": {"/schemagroups/pay-*": "admin", "/schemagroups/other": "writer"}},
    "writer": {"name": "wim", "role": "writer"},
    "nobody": {"name": "nora"},
}


class AccessApi:
    """A registry with tokens and API keys, whose clock the test sets."""

    def __init__(self, url: str, **options: Any) -> None:
        self.now = START
        options = {"tokens": json.dumps(TOKENS), "api_keys": True, **options}
        settings = Settings(database=url, hosts="h", **options)
        self.app = create_app(settings, clock=lambda: self.now)
        self.runner = asyncio.Runner()
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://h")

    def send(self, method: str, path: str, body: Any = None, by: str | None = "admin") -> httpx.Response:
        """Sends a request, and returns the response. by: a bearer token, or None."""
        headers = {"authorization": f"Bearer {by}"} if by is not None else {}
        content = None if body is None else json.dumps(body).encode()
        return self.runner.run(self.client.request(method, path, content=content, headers=headers))

    def create_key(self, **members: Any) -> dict[str, Any]:
        """Creates a key. A member that is None is omitted."""
        body = {"name": "ci", "role": "writer", **members}
        answer = self.send("POST", "/-/keys", {name: value for name, value in body.items() if value is not None})
        assert answer.status_code == 201, answer.text
        created: dict[str, Any] = answer.json()
        return created

    def whoami(self, by: str) -> Any:
        answer = self.send("GET", "/-/whoami", by=by)
        return answer.json() if answer.status_code == 200 else answer.status_code


@contextmanager
def access_api(url: str, **options: Any) -> Iterator[AccessApi]:
    """A new registry. options: further settings."""
    create(url, default_source())
    api = AccessApi(url, **options)
    lifespan = api.app.router.lifespan_context(api.app)
    with api.runner:
        api.runner.run(_entered(lifespan))
        yield api
        api.runner.run(lifespan.__aexit__(None, None, None))


async def _entered(lifespan: Any) -> None:
    await lifespan.__aenter__()


@pytest.fixture
def api(store_url: str) -> Iterator[AccessApi]:
    with access_api(store_url) as api:
        yield api
