"""What a link's thread has at hand, and what it is to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any, Final, Protocol
from weakref import WeakSet

from commands.store.log import Recorded
from commands.store.registry_url import UNCONFIGURED_URL
from domain.access.roles import Caller, Role
from domain.decisions.commands import Command
from domain.replication.link import Link
from domain.replication.link_document import CREDENTIAL
from projections.entities.query import ViewPool
from projections.outgoing.resolver import Resolver
from projections.replication.link_state import LinkStates
from projections.replication.remote_client import RemoteClient

#: Has a command carried out; the future gives what it came to. In tests and servers alike, a registry's road.
SubmitCommand = Callable[[Command, Caller], "Future[Recorded]"]
#: Gives the secret values of a link by name. Raises: LookupError where one is destroyed or cannot be opened.
RevealSecrets = Callable[[Link], Mapping[str, str]]
#: Seconds to wait for the outcome of a command.
COMMAND_SECONDS: Final = 300


@dataclass(frozen=True, slots=True)
class LinkWorkerContext:
    """What a runner works with.

    submit, readers: the way into this registry and the view of it. states: what is known of links. reveal: their
    secrets. stopping: set when the runner is to end. woken: set when there may be something to do at once: something
    was committed here, or an event came in over the link's sink. public_url: this registry's, None where none is
    configured. root: what its events and URIs begin with. resolver: says which addresses links of every dialect may
    connect to. remotes: those that were asked for, `cut` when the runner is to end.
    """

    submit: SubmitCommand
    readers: ViewPool
    states: LinkStates
    reveal: RevealSecrets
    resolver: Resolver
    stopping: Event = field(default_factory=Event)
    woken: Event = field(default_factory=Event)
    told: Event = field(default_factory=Event)
    public_url: str | None = None
    root: str = UNCONFIGURED_URL
    remotes: WeakSet[RemoteClient] = field(default_factory=WeakSet)

    def fresh(self) -> LinkWorkerContext:
        """The same for another runner."""
        return replace(self, stopping=Event(), woken=Event(), told=Event(), remotes=WeakSet())

    def do(self, link: Link, command: Command) -> Recorded:
        """What a command comes to that the link asks for. Raises: Problem, and what the store says."""
        caller = Caller(f"links/{link.id}", Role.ADMIN, link=link.id)
        return self.submit(command, caller).result(COMMAND_SECONDS)

    def credential(self, link: Link) -> dict[str, Any]:
        """What a link shows the other side, secret values included; empty for nothing. Raises: LookupError."""
        found: dict[str, Any] = dict(link.attributes.get("credential") or {})
        for name, value in self.reveal(link).items():
            found[name.removeprefix(CREDENTIAL)] = value
        return found

    def remote(self, link: Link, url: str | None = None) -> RemoteClient:
        """The other registry; to be closed. url: where it is not the link's. Raises: LookupError."""
        remote = RemoteClient(url or link.url, self.resolver, self.credential(link) or None)
        self.remotes.add(remote)
        return remote

    def wait(self, seconds: float) -> None:
        """Returns when the time is up, or when there may be something to do."""
        self.woken.wait(seconds)
        self.woken.clear()

    def hear(self, seconds: float) -> bool:
        """Waits for an event to come in; False where the time is up before."""
        heard = self.told.wait(seconds)
        self.told.clear()
        return heard


class LinkWorker(Protocol):
    """One link at work."""

    def run(self) -> None:
        """Replicates until `LinkWorkerContext.stopping` is set.

        Raises: RemoteError, BrokenFeed, Problem and others for what went wrong; it is run again after a while.
        """
