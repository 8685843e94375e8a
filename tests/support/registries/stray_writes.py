"""Writes that a replica should never have: made in its store directly, in the name of its link."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from json import loads
from typing import Any

from annals.api.registry.open_registry import open_registry
from annals.api.settings.settings import Settings
from annals.domain.access.roles import Caller, Role
from annals.domain.decisions.commands import Command
from tests.support.registries.restarted import Registry


def write_as_link(registry: Registry, link: str, commands: Iterable[Command]) -> None:
    """Executes commands without the server, as if a link had replicated their changes."""
    settings = Settings(database=registry.database, public_url=registry.url)
    with closing(open_registry(settings)) as opened:
        for command in commands:
            opened.command_bus.submit(command, Caller("stray", Role.ADMIN, link=link)).result()


def request_count(registry: Registry, route: str) -> int:
    """The number of GET requests to a route that a registry has answered."""
    lines = registry.request("GET", "/-/metrics").text.splitlines()
    counts = (line for line in lines if line.startswith(f'annals_http_requests_total{{method="GET",route="{route}"'))
    return sum(int(float(line.rpartition(" ")[2])) for line in counts)


def tree_content(registry: Registry, path: str = "/schemagroups?inline") -> Any:
    """The tree of a registry, with a placeholder instead of its URL."""
    return registry.request("GET", path).text.replace(registry.url, "http://registry")


def interactions(registry: Registry) -> list[dict[str, Any]]:
    """The interactions of the log of a registry, in order."""
    lines = registry.request("GET", "/-/log", headers={"accept": "application/x-ndjson"})
    return [found for found in map(loads, lines.text.splitlines()) if "first" in found]
