"""Replication as a server runs it: its tools filled with what the registry and its settings have."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from typing import Any

from api.settings import Settings
from api.subscriptions.wiring import guard_of
from api.wiring import Registry
from commands.address import UNCONFIGURED
from commands.log import Recorded
from domain.commands import Command
from domain.links.link import Link
from domain.roles import Caller
from projections.replication.outbound import outbound_progress
from projections.replication.receive import receive
from projections.replication.repair import repair
from projections.replication.rings import check_ring_at_once, upstream
from projections.replication.runner import Tools
from projections.replication.service import Service
from projections.replication.states import TOLD, Progress, States
from projections.replication.watching import judge


class Idle:
    """What a process knows of links that runs none itself."""

    def __init__(self, states: States, tools: Tools) -> None:
        self._states = states
        self._tools = tools

    def progress(self, link: Link) -> Progress:
        """See `parts.Replication`."""
        found = self._states.read(link.id)
        return found if link.inbound else outbound_progress(found, self._tools.readers.quick().log)

    def wake(self, link: str, subjects: Sequence[str] = ()) -> None:
        """See `parts.Replication`. Another process runs it, which looks for this now and then."""
        self._states.hear(link, subjects)
        self._states.note(link, None, **{TOLD: time.time()})

    def receive(self, link: Link, after: int, lines: Iterable[bytes]) -> int:
        """See `parts.Replication`."""
        return receive(link, self._tools, after, lines)

    def upstream(self) -> Mapping[str, Any]:
        """See `parts.Replication`."""
        return upstream(self._tools.readers.quick(), self._states)

    def check_ring(self, link: Link, secrets: Mapping[str, str]) -> None:
        """See `parts.Replication`."""
        tools = replace(self._tools, reveal=lambda link: secrets)
        with closing(tools.remote(link)) as remote:
            check_ring_at_once(link, tools, remote)

    def forget(self, link: str) -> None:
        """See `parts.Replication`."""
        self._states.forget(link)

    def check(self, link: Link) -> None:
        """See `parts.Replication`."""
        judge(link, self._tools)

    def repair(self, link: Link) -> int:
        """See `parts.Replication`."""
        return repair(link, self._tools)


class Running(Idle):
    """The same beside a service that runs links."""

    def __init__(self, states: States, tools: Tools, service: Service) -> None:
        super().__init__(states, tools)
        self._service = service

    def wake(self, link: str, subjects: Sequence[str] = ()) -> None:
        """See `parts.Replication`."""
        self._states.hear(link, subjects)
        if not self._service.wake(link):
            super().wake(link)


def tools_of(settings: Settings, registry: Registry, states: States) -> Tools:
    """What runners work with."""

    def submit(command: Command, caller: Caller) -> Future[Recorded]:
        return registry.road.submit(command, caller)

    def reveal(link: Link) -> Mapping[str, str]:
        return registry.readers.quick().links.reveal(registry.store.vault, link)

    root = registry.store.public_url or UNCONFIGURED
    return Tools(
        submit, registry.readers, states, reveal, guard_of(settings), public_url=settings.public_url, root=root
    )


def service_of(settings: Settings, registry: Registry, states: States) -> Service:
    """What runs the links of a registry, not started yet."""

    def links() -> Sequence[Link]:
        return list(registry.readers.quick().links.all())

    return Service(settings.database, tools_of(settings, registry, states), links)
