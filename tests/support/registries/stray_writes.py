"""Writes that a replica should never have seen: straight into its store, in the name of the link that it follows."""

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


def stray(registry: Registry, link: str, commands: Iterable[Command]) -> None:
    """Has commands carried out beside the server, as if what they write had come over a link."""
    settings = Settings(database=registry.database, public_url=registry.url)
    with closing(open_registry(settings)) as opened:
        for command in commands:
            opened.command_bus.submit(command, Caller("stray", Role.ADMIN, link=link)).result()


def asked(registry: Registry, route: str) -> int:
    """How many requests a registry has answered on a kind of path."""
    lines = registry.request("GET", "/-/metrics").text.splitlines()
    counts = (line for line in lines if line.startswith(f'annals_http_requests_total{{method="GET",route="{route}"'))
    return sum(int(float(line.rpartition(" ")[2])) for line in counts)


def shown(registry: Registry, path: str = "/schemagroups?inline") -> Any:
    """What a registry shows of its tree, below a URL that stands for its own."""
    return registry.request("GET", path).text.replace(registry.url, "http://registry")


def recorded(registry: Registry) -> list[dict[str, Any]]:
    """The interactions of its log, in order."""
    lines = registry.request("GET", "/-/log", headers={"accept": "application/x-ndjson"})
    return [found for found in map(loads, lines.text.splitlines()) if "first" in found]
