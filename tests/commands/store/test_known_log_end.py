"""The connections of a process end, and the log may have lost its end meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Final

import psycopg
import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import OperationalError

from annals.commands.command_bus import CommandBus
from annals.commands.store.database.known_log_end import LogEndLost
from annals.commands.store.database.outages import describe_outage
from annals.commands.store.log import Store
from annals.projections.database.connections import connect
from annals.projections.database.state_database import StateDatabase
from annals.projections.subscriptions.workers.threads import ReaderThread
from tests.support.polling import until
from tests.support.small_decider import decide, write

#: What is wrong with the log if its end is lost. Names of entities that another server then writes.
CASES: Final[dict[str, tuple[str | None, tuple[str, ...]]]] = {
    "only the connections end": (None, ()),
    "another server has written more": (None, ("/dirs/c", "/dirs/d")),
    "the end is lost": ("it ends at position 1 instead of 2", ()),
    "other events have its positions": ("position 2 is another", ("/dirs/c",)),
    "a longer log has taken its place": ("position 2 is another", ("/dirs/c", "/dirs/d")),
}
#: The server that a message names.
SERVER: Final = re.compile(r" \(\S+:\d+\)")


def append(store: Store, *names: str) -> None:
    with closing(CommandBus(store, [], decide)) as command_bus:
        for name in names:
            command_bus.submit(write(name)).result()


@contextmanager
def other_server(store_url: str) -> Iterator[Store]:
    """A store on the same database, whose connections do not end with the others. It stands for another process."""
    url = make_url(store_url)
    name = {"timeout": "60"} if url.get_backend_name() == "sqlite" else {"application_name": "other"}
    with closing(Store(url.update_query_dict(name).render_as_string(hide_password=False))) as store:
        yield store


def lose_end(store: Store) -> None:
    with store.engine.begin() as connection:
        connection.execute(text("DELETE FROM interaction WHERE last = (SELECT max(position) FROM log)"))
        connection.execute(text("DELETE FROM log WHERE position > (SELECT max(last) FROM interaction)"))


def end_connections(url: str, name: str) -> None:
    """Ends the connections with a name, as a restore or a failover does."""
    others = "FROM pg_stat_activity WHERE application_name = %s"
    with psycopg.connect(url, autocommit=True) as administrator:
        administrator.execute(f"SELECT pg_terminate_backend(pid) {others}".encode(), (name,))
        until(lambda: administrator.execute(f"SELECT count(*) {others}".encode(), (name,)).fetchone() == (0,))


def touch_deliveries(url: str) -> None:
    with closing(StateDatabase(url)) as deliveries, deliveries.writing():
        pass


def outcome(action: Callable[[], object]) -> str | None:
    """The cause of an outage that an action reports, without the server; None if it succeeds."""
    try:
        action()
    except (LogEndLost, OperationalError) as error:
        return SERVER.sub("", describe_outage(error) or "")
    return None


def lost_log(cause: str | None) -> str | None:
    """What a process says that has read another log. cause: None if it has not."""
    if cause is None:
        return None
    return (
        f"the log of the database has lost events that this server has read: {cause};"
        " if this is the right database, restart the server"
    )


@pytest.mark.parametrize("case", CASES)
def test_a_process_goes_on_only_with_the_log_that_it_has_read(case: str, store_url: str) -> None:
    cause, later_names = CASES[case]
    with closing(Store(store_url)) as store, other_server(store_url) as other:
        store.create()
        append(store, "/dirs/a", "/dirs/b")
        if cause:
            lose_end(other)
        append(other, *later_names)
        for _ in range(2):
            assert outcome(store.log_end) == lost_log(cause)


@pytest.mark.parametrize("case", CASES)
def test_a_write_continues_only_the_log_that_its_process_has_read(case: str, store_url: str) -> None:
    """An older file or dump may take the place of the data without ending a connection."""
    cause, later_names = CASES[case]
    with closing(Store(store_url)) as store, other_server(store_url) as other:
        store.create()
        append(store, "/dirs/a", "/dirs/b")
        if cause:
            lose_end(other)
        append(other, *later_names)
        before = other.log_end()
        for _ in range(2):
            assert outcome(lambda: append(store, "/dirs/e")) == lost_log(cause)
        assert (other.log_end() == before) == (cause is not None)


@pytest.mark.parametrize("case", CASES)
def test_each_new_connection_to_a_server_is_checked(
    case: str, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    cause, later_names = CASES[case]
    url = f"{postgres_url}&application_name=ended{postgres_url[-32:]}"
    with closing(Store(url)) as store, closing(ReaderThread("test", url)) as reader:
        store.create()
        append(store, "/dirs/a")
        with other_server(postgres_url) as other:
            append(other, "/dirs/b")
        assert reader.log_end() == 2  # the followers of a process know what it has not written itself
        with other_server(postgres_url) as other:
            if cause:
                lose_end(other)
            append(other, *later_names)
        end_connections(postgres_url, f"ended{postgres_url[-32:]}")
        for action in (
            lambda: append(store, "/dirs/e"),
            store.log_end,
            lambda: connect(url).close(),
            lambda: touch_deliveries(url),
        ):
            assert outcome(action) == lost_log(cause)
    reports = [SERVER.sub("", message) for message in caplog.messages if message.startswith("the store cannot be used")]
    assert reports == ([f"the store cannot be used: {lost_log(cause)}"] if cause else [])
