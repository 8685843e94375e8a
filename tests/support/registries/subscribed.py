"""A client of a served registry that subscribes and writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.registries.client import RegistryClient, xid
from tests.support.serving import Served, serving


class Registry(RegistryClient):
    """A client of a served registry."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self._client = httpx.Client(base_url=served.url, timeout=30.0, trust_env=False)

    def subscribe(self, sink: str, **members: Any) -> str:
        """The id of a new subscription. members: `settings` becomes `protocolsettings`; others are sent unchanged."""
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

    def delete(self, version: str) -> None:
        """Deletes a Version."""
        self.done("DELETE", xid(version))


@contextmanager
def registry(database: str, cwd: Path, **settings: str) -> Iterator[Registry]:
    """Serves a registry that may deliver to this machine; yields a client."""
    shared = {"ANNALS_SINKS_ALLOW": "127.0.0.1,localhost"} | settings
    with serving(database, cwd, **shared) as served:
        client = Registry(served)
        try:
            yield client
        finally:
            client.close()
