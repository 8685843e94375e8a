"""Deliverers on a store, with sinks in the same process, a log that tests write, and a clock that tests move."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from cloudevents.core.v1.event import CloudEvent

from annals.commands.store.log import Store
from annals.domain.access.roles import can_read_everything
from annals.domain.decisions.commands import DeleteEntities
from annals.domain.decisions.world import Decision
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityEvent, EntityUpdated
from annals.domain.subscriptions.subscription import Subscription
from annals.domain.values import xid as xids
from annals.projections.events.event_families import XRegistryFamily
from annals.projections.events.xregistry_events import XRegistryEvents
from annals.projections.outgoing.resolver import Resolver
from annals.projections.subscriptions.contract import DELIVERED, Outcome, Sink, SinkTarget
from annals.projections.subscriptions.delivery_status import StoredDeliveries
from annals.projections.subscriptions.ports import DeliveryClock, DeliveryPorts
from annals.projections.subscriptions.service import DeliveryService
from annals.projections.subscriptions.workers.deliverer import Deliverer

COMMAND = DeleteEntities("/dirs")
FAMILIES = (XRegistryFamily(XRegistryEvents()),)
SETTINGS = (
    *("retry", "ordering", "deadletter", "contentmode", "maxbatchsize", "maxbatchwait", "requestrate"),
    *("subject", "timeout"),
)
#: The longest time in seconds that tests wait for something that should happen immediately.
SOON = 60.0


class UncheckedResolver:
    """Resolves names with the system's resolver and refuses no address: for trusted sinks."""

    async def resolve(self, host: str, port: int) -> str:
        """See Resolver."""
        return str((await asyncio.get_running_loop().getaddrinfo(host, port))[0][4][0])


class Clock:
    """A clock that a test moves."""

    def __init__(self, now: float = 1_800_000_000.0, chance: float = 1.0) -> None:
        self.now = now
        self.chance = chance
        self._asleep: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = itertools.count()

    @property
    def time(self) -> DeliveryClock:
        return DeliveryClock(lambda: self.now, self.sleep, lambda: self.chance)

    async def sleep(self, seconds: float) -> None:
        waiter = asyncio.get_running_loop().create_future()
        heapq.heappush(self._asleep, (self.now + seconds, next(self._count), waiter))
        await waiter

    @property
    def next(self) -> float | None:
        """The time at which the next sleeper wakes up."""
        while self._asleep and self._asleep[0][2].done():
            heapq.heappop(self._asleep)
        return self._asleep[0][0] if self._asleep else None

    def move(self, seconds: float) -> None:
        """Moves the clock forward."""
        self.now += seconds
        while (until := self.next) is not None and until <= self.now:
            heapq.heappop(self._asleep)[2].set_result(None)


@dataclass
class Receiver:
    """Sinks that record the events they get. answer: returns the outcome of a request; by default all are delivered."""

    answer: Callable[[str, Sequence[CloudEvent]], Outcome | Awaitable[Outcome]] = lambda id, events: DELIVERED
    concurrency: int = 4
    attempts: dict[str, list[list[CloudEvent]]] = field(default_factory=lambda: defaultdict(list))
    arrived: dict[str, list[CloudEvent]] = field(default_factory=lambda: defaultdict(list))
    targets: list[SinkTarget] = field(default_factory=list)
    closed: int = 0

    def open(self, target: SinkTarget, resolver: Resolver) -> Sink:
        self.targets.append(target)
        return _Sink(self, target)

    def subjects(self, id: str = "s") -> list[str]:
        """The subjects of the events that have arrived, in order."""
        return [str(event.get_subject()) for event in self.arrived[id]]

    def sequences(self, id: str = "s") -> list[str]:
        return [str(event.get_extension("sequence")) for event in self.arrived[id]]


class _Sink:
    def __init__(self, receiver: Receiver, target: SinkTarget) -> None:
        self._receiver = receiver
        self._target = target
        self.concurrency = receiver.concurrency

    async def send(self, events: Sequence[CloudEvent]) -> Outcome:
        id = self._target.subscription
        self._receiver.attempts[id].append(list(events))
        found = self._receiver.answer(id, events)
        outcome = found if isinstance(found, Outcome) else await found
        if outcome is DELIVERED:
            self._receiver.arrived[id] += events
        return outcome

    async def close(self) -> None:
        self._receiver.closed += 1


class Rig:
    """A store, and deliverers that a test can start, stop and crash."""

    def __init__(self, url: str, clock: Clock | None = None, **ports: Any) -> None:
        self.url = url
        self.store = Store(url)
        self.store.create()
        self.clock = clock or Clock()
        self.receiver = Receiver()
        self.ports = DeliveryPorts(
            resolver=ports.pop("resolver", UncheckedResolver()),
            clock=self.clock.time,
            sinks=dict.fromkeys(("HTTP", "KAFKA", "MQTT5", "NATS", "AMQP"), self.receiver.open),
            **{"policy": "off", **ports},
        )
        self.lease = 2.0
        self.write = 0.1
        #: References of the secrets that a subscription is written with.
        self.secrets: dict[str, str] = {}
        self.deliveries = StoredDeliveries(url, self.ports, FAMILIES)
        self._events: dict[str, EntityEvent] = {}
        self._running: list[Deliverer] = []
        #: Services that are notified of commits, as the command bus does.
        self.services: list[DeliveryService] = []
        self.position = 0

    def close(self) -> None:
        self.deliveries.close()
        self.store.close()

    # --- the log -----------------------------------------------------------------------------------------------------

    def record(self, *changes: tuple[str, dict[str, Any] | None]) -> int:
        """Records one interaction: xids with their new attributes, None to delete. Returns its last position."""
        return self._append([self._event(xid, attributes) for xid, attributes in changes])

    def groups(self, *ids: str) -> int:
        """Records one interaction for each Group, which creates or updates it."""
        for id in ids:
            self.record((f"/dirs/{id}", {"n": 1}))
        return self.position

    def record_repeatedly(self, xid: str, times: int) -> int:
        """Records a number of interactions that write one entity, in one transaction."""
        with self.store.writing() as tx:
            for number in range(times):
                context = tx.context()
                shared = {"xregcorrelationid": context.xregcorrelationid, "time": context.now}
                event = self._event(xid, {"n": number}).model_copy(update=shared)
                self.position = tx.append(Decision((event,), {}), context, COMMAND).position
        return self.position

    def subscribe(self, id: str = "s", **members: Any) -> Subscription:
        """Creates or replaces a subscription; see `attributes`."""
        self._append([self._of_subscription(id, attributes(**members), epoch=1)])
        return self.subscription(id)

    def act(self, name: str, id: str = "s", **arguments: Any) -> int:
        """Records an action on a subscription."""
        before = self._events[f"/subscriptions/{id}"]
        private = before.private | {"action": {"name": name, **arguments, "position": self.position + 1}}
        if name in ("pause", "resume"):
            private["paused"] = name == "pause"
        return self._append([self._of_subscription(id, before.attributes, private=private)])

    def unsubscribe(self, id: str = "s") -> int:
        before = self._events[f"/subscriptions/{id}"]
        return self._append([self._made(EntityDeleted, before.xid, {}, before.epoch, {})])

    def subscription(self, id: str = "s") -> Subscription:
        event = self._events[f"/subscriptions/{id}"]
        from annals.domain.registry.evolve import evolve

        entity = evolve(event, self.position)
        assert entity is not None
        return Subscription.from_entity(entity, event.private["position"])

    def _of_subscription(
        self, id: str, shown: dict[str, Any], epoch: int = 0, private: dict[str, Any] | None = None
    ) -> EntityEvent:
        xid, position = f"/subscriptions/{id}", self.position + 1
        before = self._events.get(xid)
        starts = shown["config"]["startposition"]
        begun = {"since": position, "starts": {"latest": position + 1, "earliest": 1}.get(starts, starts)}
        if before is not None and before.attributes["config"] == shown["config"]:
            begun = {name: before.private[name] for name in begun}
        paused = bool(before and before.private.get("paused"))
        own = private or {"owner": "o", **begun, "paused": paused, "secrets": self.secrets}
        kind = EntityUpdated if before else EntityCreated
        return self._made(kind, xid, shown, (before.epoch if before else 0) + epoch, own | {"position": position})

    def _event(self, xid: str, attributes: dict[str, Any] | None) -> EntityEvent:
        before = self._events.get(xid)
        kind = EntityDeleted if attributes is None else EntityUpdated if before else EntityCreated
        return self._made(kind, xid, attributes or {}, (before.epoch if before else 0) + 1, {})

    def _made(
        self, kind: type[EntityEvent], xid: str, shown: dict[str, Any], epoch: int, private: dict[str, Any]
    ) -> EntityEvent:
        before = self._events.get(xid)
        changed = ("n",) if kind is EntityUpdated else ()
        event = kind(
            xid=xid,
            type=xids.type_of(xid),
            revision=(before.revision if before else 0) + 1,
            epoch=epoch,
            attributes=shown,
            private=private,
            changed=changed,
            xregcorrelationid="",
            time=self.store.clock(),
        )
        self._events[xid] = event
        return event

    def _append(self, events: Sequence[EntityEvent]) -> int:
        with self.store.writing() as tx:
            context = tx.context()
            shared = {"xregcorrelationid": context.xregcorrelationid, "time": context.now}
            recorded = tx.append(Decision(tuple(e.model_copy(update=shared) for e in events), {}), context, COMMAND)
        self.position = recorded.position
        for deliverer in self._running:
            deliverer.committed()
        for service in self.services:
            service.committed(1, 0, 0.0)
        return self.position

    # --- deliverers --------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def delivering(self, *, crash: bool = False) -> AsyncIterator[Deliverer]:
        """A running deliverer. crash: it ends without writing its state first."""
        deliverer = Deliverer(self.url, self.ports, FAMILIES, lease_seconds=self.lease, write_delay=self.write)
        task = asyncio.create_task(deliverer.run())
        self._running.append(deliverer)
        try:
            yield deliverer
        finally:
            self._running.remove(deliverer)
            if crash:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                self.forget_processes()
            else:
                deliverer.stop()
                await asyncio.wait_for(task, SOON)

    def forget_processes(self) -> None:
        """Deletes all processes and leases, as if the leases of crashed processes had expired."""
        with self.store.writing() as tx:
            for table in ("delivery_process", "delivery_lease"):
                tx.connection.exec_driver_sql(f"DELETE FROM {table}")

    def status(self, id: str = "s") -> dict[str, Any]:
        return dict(self.deliveries.status(self.subscription(id)))

    def deadletters(self, id: str = "s") -> list[dict[str, Any]]:
        return [dict(letter) for letter in self.deliveries.deadletters(id, "", 1000, can_read_everything)]


def attributes(**members: Any) -> dict[str, Any]:
    """A subscription's public attributes. `retry`, `ordering`, `deadletter` and other SETTINGS can be given by name."""
    settings = {name: members.pop(name) for name in SETTINGS if name in members}
    config: dict[str, Any] = {"families": ["xregistry"], "startposition": members.pop("start", "latest")}
    config |= members.pop("config", {})
    shared: dict[str, Any] = {"sink": "https://sink.example/in", "protocol": "HTTP", "filters": []}
    own: dict[str, Any] = {"protocolsettings": {"method": "POST", **settings}, "config": config}
    return shared | members | own


async def until(holds: Callable[[], Any], seconds: float = SOON) -> Any:
    """Waits until a condition holds, and returns its value."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(0.003)
    return found


async def advance_until(clock: Clock, holds: Callable[[], Any], seconds: float = SOON) -> None:
    """Moves the clock to the times that deliveries wait for, until a condition holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(0.005)
        if not holds() and (due := clock.next) is not None:
            clock.move(max(0.0, due - clock.now))
