"""Builds replication for a server from the registry and its settings."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from typing import Any

from annals.api.registry.open_registry import Registry
from annals.api.settings.settings import Settings
from annals.api.subscriptions.wiring import build_guard
from annals.commands.store.database.registry_url import UNCONFIGURED_URL
from annals.commands.store.write_transaction import Recorded
from annals.domain.access.roles import Caller
from annals.domain.decisions.commands import SubmittedCommand
from annals.domain.replication.link import Link
from annals.projections.replication.cycles import check_cycle_promptly, upstream_registries
from annals.projections.replication.link_state import NOTIFIED_KEY, LinkProgress, LinkStates
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.log.link_status import compare_registries
from annals.projections.replication.log.receive import receive
from annals.projections.replication.log.repair import repair
from annals.projections.replication.outbound_progress import outbound_progress
from annals.projections.replication.service import ReplicationService


class PassiveReplication:
    """Replication in a process that does not run links: it reads and writes their stored states."""

    def __init__(self, states: LinkStates, context: LinkWorkerContext) -> None:
        self._states = states
        self._context = context

    def progress(self, link: Link) -> LinkProgress:
        """The progress and the state of a link."""
        link_progress = self._states.read(link.id)
        return (
            link_progress
            if link.is_inbound
            else outbound_progress(link_progress, self._context.readers.quick_view().log)
        )

    def wake(self, link: str, subjects: Sequence[str] = ()) -> None:
        """Makes a link read the other registry now. Another process runs the link and polls for this note.

        link: its id. subjects: xids to read, for links that copy single objects.
        """
        self._states.add_subjects(link, subjects)
        self._states.update(link, None, **{NOTIFIED_KEY: time.time()})

    def links_changed(self) -> None:
        """Notes that links have changed. The process that runs them polls for that."""

    def receive(self, link: Link, after: int, state: str, lines: Iterable[bytes]) -> int:
        """Receives a piece of another log; see `annals.projections.replication.log.receive`."""
        return receive(link, self._context, after, state, lines)

    def upstream(self) -> Mapping[str, Any]:
        """The ids of this registry and of those that it follows; see `annals.projections.replication.cycles`."""
        return upstream_registries(self._context.readers.latest_view(), self._states)

    def check_cycle(self, link: Link, secrets: Mapping[str, str]) -> None:
        """Checks whether a link would close a cycle, if the other registry answers. secrets: of the link, by name.

        Raises: InvalidLink.
        """
        check_context = replace(self._context, reveal_secrets=lambda link: secrets)
        with closing(check_context.connect(link)) as remote:
            check_cycle_promptly(link, check_context, remote)

    def forget(self, link: str) -> None:
        """Removes the stored progress of a deleted link. link: its id."""
        self._states.delete(link)

    def check(self, link: Link, *, counts: bool = False) -> None:
        """Compares both registries now and stores the result in the progress. Raises: RemoteError, InvalidLink.

        counts: whether also the number of entities that differ, and the hashes of both.
        """
        compare_registries(link, self._context, counts=counts)

    def repair(self, link: Link) -> int:
        """Makes this registry equal to the other one within the link's scope; returns how many entities differed.

        Raises: RemoteError, BrokenFeed, InvalidLink, Diverged.
        """
        return repair(link, self._context)


class ActiveReplication(PassiveReplication):
    """Replication in a process that also runs the links."""

    def __init__(self, states: LinkStates, context: LinkWorkerContext, service: ReplicationService) -> None:
        super().__init__(states, context)
        self._service = service

    def wake(self, link: str, subjects: Sequence[str] = ()) -> None:
        self._states.add_subjects(link, subjects)
        if not self._service.wake(link):
            super().wake(link)

    def links_changed(self) -> None:
        self._service.links_changed()


def build_link_context(settings: Settings, registry: Registry, states: LinkStates) -> LinkWorkerContext:
    """The dependencies of link workers."""

    def submit(command: SubmittedCommand, caller: Caller) -> Future[Recorded]:
        return registry.command_bus.submit(command, caller)

    def reveal(link: Link) -> Mapping[str, str]:
        return registry.readers.quick_view().links.reveal(registry.store.vault, link)

    root = registry.store.public_url or UNCONFIGURED_URL
    return LinkWorkerContext(
        submit,
        registry.readers,
        states,
        reveal,
        build_guard(settings),
        public_url=settings.public_url,
        root=root,
        max_interaction_bytes=settings.link_max_interaction,
    )


def build_link_service(settings: Settings, registry: Registry, states: LinkStates) -> ReplicationService:
    """The service that runs the links of a registry, not started yet."""

    def links() -> Sequence[Link]:
        return list(registry.readers.quick_view().links.all())

    return ReplicationService(settings.database, build_link_context(settings, registry, states), links)
