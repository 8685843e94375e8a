"""The threads of links: each link runs in one process at a time, however long its thread takes to end (SUB-805)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, replace
from threading import Event, Lock, Thread
from typing import Any

import pytest

from annals.commands.store.log import Store
from annals.commands.store.write_transaction import Recorded
from annals.domain.access.roles import Caller
from annals.domain.decisions.commands import SubmittedCommand
from annals.domain.errors.http_errors import NotReceiving
from annals.domain.errors.problems import NotFound
from annals.domain.replication.link import PUSH, XREGISTRY, Link
from annals.domain.replication.scope import LinkScope
from annals.projections.database.state_database import StateDatabase
from annals.projections.entities.view_pool import ViewPool
from annals.projections.outgoing.destination_guard import DestinationGuard
from annals.projections.replication.link_state import LinkProgress, LinkStates
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.link_workers import LINK_WORKERS
from annals.projections.replication.service import LEASE_SECONDS, ReplicationService
from annals.projections.subscriptions.state.leases import HeldLeases, Leases
from tests.support.polling import until

SERVICE = "annals.projections.replication.service"


def link(id: str) -> Link:
    """A link that pushes."""
    scope = LinkScope.from_members({})
    url = "http://127.0.0.1:1"
    return Link(id, 1, 1, url, XREGISTRY, PUSH, scope, {}, 3600, "rename", True, id, False, {"scope": {}})


class TextlessError(Exception):
    def __str__(self) -> str:
        raise TypeError("no text")


@dataclass
class SlowWorkers:
    """The workers of all links. After a worker was stopped, it works on until it may end.

    quick_ids: links whose workers end at once. failures: raised by the first workers, one by each. running: the
    services that run each link. begun: how many workers of each link have begun. stopped_ids: links that were stopped.
    overlaps: links that began to run while they still ran.
    """

    may_end: Event = field(default_factory=Event)
    quick_ids: set[str] = field(default_factory=set)
    failures: list[BaseException] = field(default_factory=list)
    running: dict[str, list[str]] = field(default_factory=dict)
    begun: Counter[str] = field(default_factory=Counter)
    stopped_ids: set[str] = field(default_factory=set)
    overlaps: list[str] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def __call__(self, link: Link, context: LinkWorkerContext) -> SlowWorker:
        return SlowWorker(self, link, context)


@dataclass
class SlowWorker:
    """One of them. Its context has the name of its service as `root`."""

    workers: SlowWorkers
    link: Link
    context: LinkWorkerContext

    def run(self) -> None:
        workers, id, service = self.workers, self.link.id, self.context.root
        with workers.lock:
            workers.begun[id] += 1
            if workers.failures:
                raise workers.failures.pop()
            if workers.running.get(id):
                workers.overlaps.append(id)
            workers.running.setdefault(id, []).append(service)
        self.context.stopping.wait()
        workers.stopped_ids.add(id)
        if id not in workers.quick_ids:
            workers.may_end.wait(60)
        self.context.states.update(id, late=True)
        with workers.lock:
            workers.running[id].remove(service)


class LinkRig:
    """Services of several processes on one database. links: those that exist. checks: how often each read them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.links: Sequence[Link] = ()
        self.checks: Counter[str] = Counter()
        self.workers = SlowWorkers()
        self.states = LinkStates(url)
        self._readers = ViewPool(url)
        self._services: list[ReplicationService] = []

    def start(self, name: str, lease_seconds: float = LEASE_SECONDS) -> ReplicationService:
        """Starts a service."""

        def read_links() -> Sequence[Link]:
            self.checks[name] += 1
            return self.links

        def submit(command: SubmittedCommand, caller: Caller) -> Future[Recorded]:
            raise AssertionError("the workers of these tests record nothing")

        guard, states = DestinationGuard(), LinkStates(self.url)
        context = LinkWorkerContext(submit, self._readers, states, lambda link: {}, guard, root=name)
        service = ReplicationService(self.url, context, read_links, lease_seconds)
        self._services.append(service)
        service.start()
        return service

    def start_with(self, name: str, *ids: str, lease_seconds: float = LEASE_SECONDS) -> ReplicationService:
        """Starts the first service, with some links. Returns when it runs them."""
        self.links = [link(id) for id in ids]
        service = self.start(name, lease_seconds)
        until(lambda: self.workers.running == {id: [name] for id in ids})
        return service

    def wait_for_checks(self, *names: str) -> None:
        """Waits until services have checked twice, from beginning to end, what they have to run."""
        seen = self.checks.copy()
        until(lambda: all(self.checks[name] >= seen[name] + 3 for name in names))

    def query(self, sql: str) -> list[Any]:
        """The first values of the rows."""
        with closing(StateDatabase(self.url)) as store, store.reading() as db:
            return sorted(row[0] for row in db.all(sql))

    def close(self) -> None:
        self.workers.may_end.set()
        for service in self._services:
            service.stop()
        self.states.close()
        self._readers.close()


@pytest.fixture
def rig(store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LinkRig]:
    with closing(Store(store_url)) as store:
        store.create()
    with closing(LinkRig(store_url)) as rig, monkeypatch.context() as patch:
        patch.setitem(LINK_WORKERS, (XREGISTRY, PUSH), rig.workers)
        patch.setattr(f"{SERVICE}.POLL_SECONDS", 0.02)
        yield rig


@pytest.mark.both_databases
def test_a_link_moves_to_another_process_after_its_thread_has_ended(rig: LinkRig) -> None:
    # SUB-805: the first process keeps the leases of surplus links until then
    ids = [f"l{number}" for number in range(16)]
    rig.start_with("one", *ids)
    rig.start("other")
    until(lambda: rig.workers.stopped_ids)
    rig.wait_for_checks("one", "other")
    assert rig.workers.running == {id: ["one"] for id in ids}
    rig.workers.may_end.set()
    until(lambda: all(rig.workers.running[id] == ["other"] for id in rig.workers.stopped_ids))
    assert not rig.workers.overlaps


def test_a_link_that_ends_slowly_delays_no_heartbeat(rig: LinkRig, monkeypatch: pytest.MonkeyPatch) -> None:
    # SUB-805: a changed link starts as soon as its old thread has ended; the state of a deleted one goes only then
    rig.start_with("one", "changed", "deleted")
    rig.states.update("deleted", error="old")
    rig.links = [replace(link("changed"), epoch=2)]
    until(lambda: rig.workers.stopped_ids == {"changed", "deleted"})
    rig.wait_for_checks("one")
    assert rig.workers.begun == {"changed": 1, "deleted": 1}
    assert rig.states.read("deleted").status == {"error": "old"}
    monkeypatch.setattr(f"{SERVICE}.POLL_SECONDS", 3600.0)
    rig.workers.may_end.set()
    until(lambda: rig.workers.running == {"changed": ["one"], "deleted": []})
    until(lambda: rig.states.read("deleted") == LinkProgress())
    assert not rig.workers.overlaps


def test_links_stop_when_their_leases_expire(rig: LinkRig, monkeypatch: pytest.MonkeyPatch) -> None:
    # SUB-805: while the database does not answer, another process may take over
    rig.start_with("one", "l", lease_seconds=2.0)
    answers, renew = Event(), Leases.renew

    def slow_renew(leases: Leases, ids: Collection[str]) -> HeldLeases | None:
        answers.wait(60)
        return renew(leases, ids)

    with monkeypatch.context() as patch:
        patch.setattr(Leases, "renew", slow_renew)
        until(lambda: rig.workers.stopped_ids == {"l"})
        rig.workers.may_end.set()
        answers.set()
        until(lambda: rig.workers.begun["l"] == 2)


@pytest.mark.both_databases
def test_a_stopping_service_keeps_its_leases_while_links_end(rig: LinkRig) -> None:
    # SUB-805
    service = rig.start_with("one", "l", lease_seconds=6.0)
    stopping = Thread(target=service.stop)
    stopping.start()
    until(lambda: rig.workers.stopped_ids)
    (expires,) = rig.query("SELECT until FROM replication_process")
    until(lambda: rig.query("SELECT until FROM replication_process")[0] > expires)
    rig.start("other")
    rig.wait_for_checks("other")
    assert rig.workers.running == {"l": ["one"]}
    rig.workers.may_end.set()
    stopping.join()
    until(lambda: rig.workers.running == {"l": ["other"]})
    assert not rig.workers.overlaps


def test_a_stopped_service_releases_only_what_has_ended(rig: LinkRig, monkeypatch: pytest.MonkeyPatch) -> None:
    # SUB-805: after a limited time, what still runs keeps its lease until it expires
    monkeypatch.setattr(f"{SERVICE}._GRACE_SECONDS", 3.0)
    rig.workers.quick_ids = {"quick"}
    rig.start_with("one", "quick", "slow").stop()
    assert rig.query("SELECT link FROM replication_lease") == ["slow"]
    assert rig.workers.running == {"quick": [], "slow": ["one"]}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("failure", [SystemExit(), TextlessError()], ids=["ended", "not reported"])
def test_a_link_goes_on_after_any_failure(
    rig: LinkRig, failure: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    # LEG-901: also if its thread ends, or if the failure cannot be stored
    rig.workers.failures = [failure]
    with caplog.at_level(logging.ERROR):
        rig.start_with("one", "l")
    assert rig.workers.begun == {"l": 2}
    assert ("the link l fails" in caplog.text) == isinstance(failure, TextlessError)


@pytest.mark.parametrize(
    ("failure", "is_shown"),
    [
        (NotReceiving("/-/links/l"), False),
        (NotFound("/-/links/l"), False),
        (NotFound("/dirs/d"), True),
    ],
)
def test_the_end_of_a_link_is_no_failure(rig: LinkRig, failure: Exception, is_shown: bool) -> None:
    # LEG-901: a command can be refused between the end of a link and the next check of its process
    rig.workers.failures = [failure]
    rig.start_with("one", "l")
    assert ({"error", "failed"} <= rig.states.read("l").status.keys()) == is_shown
