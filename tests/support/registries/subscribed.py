"""A registry that is served, as those see it who subscribe to it and write to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx

from tests.support.serving import Served, serving

_JSON: Final = {"content-type": "application/json"}
#: A Version of a schema in a format that nobody checks.
VERSION: Final = {"format": "Text/1"}


class Registry:
    """A client of a served registry. served: where, and its process."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self._client = httpx.Client(base_url=served.url, timeout=30.0, trust_env=False)

    def request(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """What a request with a JSON body, or none, is answered with."""
        content = None if body is None else json.dumps(body)
        return self._client.request(method, path, content=content, headers=_JSON if content else None)

    def done(self, method: str, path: str, body: Any = None) -> Any:
        """What a request that succeeds is answered with, None for no body."""
        answer = self.request(method, path, body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def subscribe(self, sink: str, **members: Any) -> str:
        """The id of a new subscription. members: `settings` are the protocol's; others are as the API has them."""
        settings = members.pop("settings", {})
        body = {"protocol": "HTTP", "sink": sink, "protocolsettings": settings} | members
        return str(self.done("POST", "/subscriptions", body)["id"])

    def status(self, id: str) -> dict[str, Any]:
        """The status of a subscription."""
        found: dict[str, Any] = self.done("GET", f"/subscriptions/{id}")["status"]
        return found

    def act(self, id: str, name: str, **arguments: Any) -> dict[str, Any]:
        """The status of a subscription after an action."""
        found: dict[str, Any] = self.done("POST", f"/subscriptions/{id}/actions/{name}", arguments or None)
        return found

    def write(self, version: str, **attributes: Any) -> str:
        """Makes a Version, and what it is in, by `group/schema/version`, or changes it; the id of the interaction."""
        answer = self.request("PUT", f"{xid(version)}$details", VERSION | attributes)
        assert answer.is_success, answer.text
        return answer.headers["xregistry-xregcorrelationid"]

    def delete(self, version: str) -> None:
        """Deletes a Version."""
        self.done("DELETE", xid(version))

    def close(self) -> None:
        """Gives its connections back."""
        self._client.close()


@contextmanager
def registry(database: str, cwd: Path, **settings: str) -> Iterator[Registry]:
    """A registry, served by a process of its own that may send to this machine."""
    shared = {"ANNALS_SINKS_ALLOW": "127.0.0.1,localhost"} | settings
    with serving(database, cwd, **shared) as served:
        client = Registry(served)
        try:
            yield client
        finally:
            client.close()


def xid(version: str) -> str:
    """The xid of a Version by `group/schema/version`."""
    group, schema, name = version.split("/")
    return f"/schemagroups/{group}/schemas/{schema}/versions/{name}"
