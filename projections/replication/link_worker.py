"""The context and the interface of link workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any, Final, Protocol
from weakref import WeakSet

from annals.commands.store.database.registry_url import UNCONFIGURED_URL
from annals.commands.store.write_transaction import Recorded
from annals.domain.access.roles import Caller, Role
from annals.domain.decisions.commands import SubmittedCommand
from annals.domain.replication.foreign_interaction import MAX_INTERACTION_BYTES
from annals.domain.replication.link import Link
from annals.domain.replication.link_document import CREDENTIAL
from annals.projections.entities.view_pool import ViewPool
from annals.projections.outgoing.resolver import Resolver
from annals.projections.replication.link_state import LinkStates
from annals.projections.replication.remote.remote_client import RemoteClient

#: Submits a command to the registry's CommandBus; the future gives the result.
SubmitCommand = Callable[[SubmittedCommand, Caller], "Future[Recorded]"]
#: Returns the secret values of a link by name. Raises: LookupError if one was destroyed or cannot be opened.
RevealSecrets = Callable[[Link], Mapping[str, str]]
#: Seconds to wait for the result of a command.
COMMAND_SECONDS: Final = 300
#: Seconds from the beginning of a fetch until an event may cause the next one. Any client may send events.
MIN_FETCH_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class LinkWorkerContext:
    """What a link worker works with.

    submit, readers: write and read access to this registry.
    states: the state of links.
    reveal_secrets: reads the secrets of links.
    resolver: decides which addresses links of every dialect may connect to.
    stopping: set when the worker must end.
    woken: set when there may be work: a commit in this registry, or an event for the link.
    event_received: set when an event for the link has arrived.
    public_url: URL of this registry, None if not configured.
    root: prefix of this registry's event sources and URIs.
    max_interaction_bytes: the limit of an interaction of another log, in bytes of its lines.
    remotes: the clients in use, whose requests are aborted to end the worker.
    checked: the xids that the worker has compared with the other registry, for a new attempt after an error.
    """

    submit: SubmitCommand
    readers: ViewPool
    states: LinkStates
    reveal_secrets: RevealSecrets
    resolver: Resolver
    stopping: Event = field(default_factory=Event)
    woken: Event = field(default_factory=Event)
    event_received: Event = field(default_factory=Event)
    public_url: str | None = None
    root: str = UNCONFIGURED_URL
    max_interaction_bytes: int = MAX_INTERACTION_BYTES
    remotes: WeakSet[RemoteClient] = field(default_factory=WeakSet)
    checked: set[str] = field(default_factory=set)

    def for_link(self) -> LinkWorkerContext:
        """The same context for another worker."""
        return replace(self, stopping=Event(), woken=Event(), event_received=Event(), remotes=WeakSet(), checked=set())

    def execute(self, link: Link, command: SubmittedCommand) -> Recorded:
        """The result of a command that the link submits. Raises: Problem, and errors of the store."""
        caller = Caller(f"links/{link.id}", Role.ADMIN, link=link.id)
        return self.submit(command, caller).result(COMMAND_SECONDS)

    def credential(self, link: Link) -> dict[str, Any]:
        """The credential for the other registry with its secret values; empty if there is none. Raises: LookupError."""
        members: dict[str, Any] = dict(link.attributes.get("credential") or {})
        for name, value in self.reveal_secrets(link).items():
            members[name.removeprefix(CREDENTIAL)] = value
        return members

    def connect(self, link: Link, url: str | None = None) -> RemoteClient:
        """A client for the other registry, to be closed. url: instead of the link's. Raises: LookupError."""
        remote = RemoteClient(url or link.url, self.resolver, self.credential(link) or None)
        self.remotes.add(remote)
        return remote

    def wait(self, seconds: float) -> None:
        """Returns after the time, or earlier when there may be work."""
        self.woken.wait(seconds)
        self.woken.clear()

    def wait_for_event(self, seconds: float, fetched_at: float) -> bool:
        """Waits for an event to arrive, and then until the next fetch may begin. False if none arrives in time.

        fetched_at: when the last fetch began, by `time.monotonic`. One fetch serves all events until it begins.
        """
        has_arrived = self.event_received.wait(seconds)
        if has_arrived:
            self.stopping.wait(max(0.0, fetched_at + MIN_FETCH_SECONDS - time.monotonic()))
            self.event_received.clear()  # only here: an event may arrive at the end of the wait
        return has_arrived


class LinkWorker(Protocol):
    """The worker of one link."""

    def run(self) -> None:
        """Replicates until `LinkWorkerContext.stopping` is set.

        Raises: RemoteError, BrokenFeed, Problem and others. The service runs it again after a while.
        """
