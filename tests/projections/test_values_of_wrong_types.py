"""A value of a wrong type in any column is found or reported, and no process hangs.

SQLite stores values of any type in any column, so a damaged page or another tool can leave such rows.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice, product
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Table

from annals.api.cli.error_lines import exit_outcome
from annals.commands.store.database import tables as written
from annals.commands.store.log import Store
from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from annals.projections.database.state_database import StateDatabase, create_tables
from annals.projections.entities.tables import tables
from annals.projections.entities.verify.verify_history import verify_history
from annals.projections.entities.verify.verify_index import verify_index
from annals.projections.entities.view_pool import ViewPool
from annals.projections.log.positions import POSITIONS
from annals.projections.replication import tables as replication
from annals.projections.replication.compat.sent_objects import SentObjects
from annals.projections.replication.link_state import LinkStates
from annals.projections.subscriptions.delivery_status import StoredDeliveries
from annals.projections.subscriptions.ports import DeliveryPorts
from annals.projections.subscriptions.state import delivery_queries
from annals.projections.subscriptions.state import tables as deliveries
from annals.projections.subscriptions.state.leases import Leases
from annals.projections.subscriptions.state.subscription_changes import read_changes, read_living
from annals.projections.subscriptions.workers.consent_checker import hash_secret
from tests.support.archives import archive_until, open_store
from tests.support.delivery_rig import UncheckedResolver
from tests.support.registries.in_process import create as new
from tests.support.registries.in_process import serving
from tests.support.subscribing import TOKENS

MODEL: Final[dict[str, Any]] = {
    "groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}},
}
ROOT: Final = {"authorization": "Bearer root"}
SETTINGS: Final[dict[str, Any]] = {"tokens": TOKENS, "sinks_plaintext": True, "sinks_allow": "127.0.0.1:9"}
SUBSCRIPTION: Final = {"sink": "http://127.0.0.1:9/in", "protocol": "HTTP"}
LINK: Final = {"url": "http://127.0.0.1:9/", "enabled": False}
LOG: Final = tuple(written.METADATA.sorted_tables)
MODELS: Final = (*tables(), POSITIONS)
STATES: Final = (*deliveries.METADATA.sorted_tables, *replication.METADATA.sorted_tables)
#: The values that replace the value of a column.
OTHERS: Final = (None, b"\xff\x00", "text \u00e9", 2**63 - 1, 0.5)
#: Stands for the id that the server gives to the subscription.
SUB: Final = "ID"
PATHS: Final = (
    *("/export", "/dirs/d/files?inline=versions", "/dirs/d/files/f", "/dirs/d/files/f$details"),
    *("/dirs/d/files?filter=name=n", "/dirs/d/files?sort=name", "/dirs/d/files/f$details?asof=6", "/-/readyz"),
    *("/-/log", "/-/log/head", "/-/events", "/-/history/dirs/d", "/-/interactions", "/-/hash", "/subscriptions"),
    *(
        f"/subscriptions/{SUB}/status",
        f"/subscriptions/{SUB}/deadletters",
        f"/subscriptions/{SUB}/attempts",
        "/-/references/dirs/d/files/f",
        "/-/links",
        "/-/metrics",
    ),
)
#: Names of the problems that damage may result in.
_DAMAGE_PROBLEMS: Final = ("data_retrieval_error", "store_unavailable", "archive_unavailable")
ROWS: Final[dict[Table, dict[str, Any]]] = {
    deliveries.state: {"subscription": SUB, "revision": 1, "position": 1, "cursor": 1, "facts": "{}"},
    deliveries.pending: {
        **{"subscription": SUB, "queue": 0, "sequence": 5, "key": "/dirs/d"},
        **{"attempts": 1, "first": 1.0, "next": 2.0},
    },
    deliveries.deadletter: {
        **{"subscription": SUB, "sequence": 5, "reason": "status", "code": "500", "message": "m"},
        **{"attempts": 1, "first": 1.0, "last": 9e9},
    },
    deliveries.attempt: {
        **{"subscription": SUB, "slot": 1, "number": 1, "time": 9e9, "sequence": 5, "outcome": "retry"},
        **{"code": "500", "duration": 0.5, "next": 9e9},
    },
    deliveries.hour: {"subscription": SUB, "hour": 2_500_000, **dict.fromkeys(deliveries.OUTCOMES, 1)},
    deliveries.request: {"subscription": SUB, "name": "consent", "value": "10"},
    deliveries.callback: {"digest": "d", "subscription": SUB, "until": 1.0},
    deliveries.LEASES.process: {"process": "p", "until": 1.0},
    deliveries.LEASES.lease: {"subscription": SUB, "process": "p"},
    replication.state: {"link": "l", "cursor": 1, "facts": "{}"},
    replication.sent: {"link": "l", "key": "!dirs!d", "digest": "x", "own": 1, "place": "/p"},
    replication.subject: {"link": "l", "subject": "/dirs/d"},
    replication.LEASES.process: {"process": "p", "until": 1.0},
    replication.LEASES.lease: {"link": "l", "process": "p"},
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with rows in all tables. Its name is the id of its subscription."""
    file = tmp_path_factory.mktemp("sound") / "annals.db"
    url = f"sqlite:///{file}"
    new(url, MODEL)
    with serving(url, **SETTINGS) as api:
        api.done("PUT", "/dirs/d/files/f", b"document", **ROOT)
        api.done("PATCH", "/dirs/d/files/f$details", {"name": "n"}, **ROOT)
        api.done("PUT", "/dirs/d/files/gone", b"other", **ROOT)
        api.done("DELETE", "/dirs/d/files/gone", **ROOT)
        subscription = api.done("POST", "/subscriptions", SUBSCRIPTION, **ROOT).json()["id"]
        api.done("PUT", "/-/links/l", LINK, **ROOT)
    with open_store(url) as store:
        archive_until(store, url, str(file.with_name("archive")), 20)
    create_tables(url, deliveries.METADATA)
    create_tables(url, replication.METADATA)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("INSERT INTO secret VALUES ('r', '/subscriptions/sub', 'n', x'00', x'00')")
        connection.execute("INSERT INTO published VALUES ('!dirs!d!files!f!versions!1', 1, '/x', 1, 'i', 'u', 1, 2, 3)")
        connection.execute(
            "INSERT INTO schema_version VALUES ('!x!versions!1', 1, '/x/versions/1', 's', 7, 1, 1, 'aGFzaA==', 'u',"
            " 'AVRO', x'0d', '{}', NULL, NULL, NULL)"
        )
        connection.execute("INSERT INTO schema_reference VALUES (7, 1, '!x!versions!1', 1)")
        connection.execute("INSERT INTO reference VALUES ('/dirs/d/files/f', '!dirs!d!files!f', 5, NULL)")
        for table, row in ROWS.items():
            names = ", ".join(row)
            marks = ", ".join("?" for _ in row)
            connection.execute(
                f"INSERT OR REPLACE INTO {table.name} ({names}) VALUES ({marks})",
                [subscription if value == SUB else value for value in row.values()],
            )
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file.rename(file.with_name(subscription))


def damaged(file: Path, table: Table, sound: Path | None = None) -> Iterator[tuple[str, Any]]:
    """Puts other values into each column of a row of a table, one at a time, and yields after each.

    sound: if given, the file becomes a copy of it again before each change; otherwise the old value is put back.
    """
    key = next(iter(table.primary_key)).name
    half = f"(SELECT count(*) / 2 FROM {table.name})"
    row = f"{key} = (SELECT {key} FROM {table.name} ORDER BY {key} LIMIT 1 OFFSET {half})"
    for column, other in product((column.name for column in table.columns), OTHERS):
        if sound is not None:
            for left in file.parent.glob(f"{file.name}-*"):
                left.unlink()
            shutil.copy(sound, file)
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            [(value,)] = connection.execute(f"SELECT {column} FROM {table.name} WHERE {row} LIMIT 1")
            change = f"UPDATE {table.name} SET {column} = ? WHERE {column} IS ?"
            try:
                connection.execute(f"{change} AND {row}", (other, value))
            except sqlite3.IntegrityError:
                continue  # the column takes no NULL, is the rowid, or another row has the value
        yield column, other
        if sound is None:
            with closing(sqlite3.connect(file, isolation_level=None)) as connection:
                connection.execute(change, (value, other))


@pytest.fixture
def file(sound: Path, tmp_path: Path) -> Path:
    """A copy of the file."""
    return Path(shutil.copy(sound, tmp_path / sound.name))


@pytest.mark.parametrize("table", [*LOG, *MODELS], ids=str)
def test_a_proof_of_the_log_ends(sound: Path, file: Path, table: Table) -> None:
    # verification finds values of another type in the tables that it covers, and no value keeps it from ending
    for place, other in damaged(file, table, sound):
        store = Store(f"sqlite:///{file}")
        try:
            found = [*verify_log(store), *verify_row_hashes(store), *verify_history(store), *verify_index(store)]
        finally:
            store.close()
        unproved = table in (written.secret, written.store, POSITIONS) or (table is tables().published)
        assert found or unproved or other is None, (place, other)


@pytest.mark.parametrize("table", [*LOG, *MODELS, *STATES], ids=str)
def test_reads_are_answered(file: Path, table: Table) -> None:
    # ERR-1: a read returns data or an error, and the server answers the next request
    with serving(f"sqlite:///{file}", **SETTINGS) as api:
        # Only some values for each column: the test of the verification has all of them.
        for place, other in islice(damaged(file, table), 0, None, len(OTHERS) - 1):
            paths = [path.replace(SUB, file.name) for path in PATHS]
            statuses = {path: api.send("GET", path, **ROOT).status_code for path in paths}
            assert set(statuses.values()) <= {200, 400, 404, 500, 503}, (place, other, statuses)
            assert api.get("/-/livez") == {"status": "ok"}


@pytest.mark.long
@pytest.mark.parametrize("table", [*LOG, *MODELS], ids=str)
def test_a_damaged_row_is_reported(file: Path, table: Table) -> None:
    # ERR-1: 503 for a damaged store, or the specification's own error for a missing document; an event of an unknown
    # kind counts as one of a newer program
    with serving(f"sqlite:///{file}", **SETTINGS) as api:
        for place, other in damaged(file, table):
            for path in PATHS:
                answer = api.send("GET", path.replace(SUB, file.name), **ROOT)
                if answer.status_code >= 500 and path != "/-/readyz":
                    problem = answer.json()["type"].partition("#")[2]
                    known = place != "topic" or isinstance(other, bytes)
                    assert problem in _DAMAGE_PROBLEMS or not known, (
                        place,
                        other,
                        path,
                    )


def test_a_damaged_link_is_passed_over(file: Path) -> None:
    # LINK: the other links are listed, and link workers still get them
    with serving(f"sqlite:///{file}", ids="more", **SETTINGS) as api:
        api.done("PUT", "/-/links/other", {**LINK, "mode": "push"}, **ROOT)
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            connection.execute("UPDATE log SET state = 7 WHERE stream = '/-/links/l'")
        listed = api.send("GET", "/-/links", **ROOT)
        assert (listed.status_code, "other" in listed.text) == (200, True)
    readers = ViewPool(f"sqlite:///{file}")
    assert [link.id for link in readers.quick_view().links.all()] == ["other"]
    readers.close()


@pytest.mark.parametrize("until", ["text", b"\xff", "9e99"])
def test_a_callback_whose_time_is_damaged_has_expired(file: Path, until: Any) -> None:
    # SUB-714: it gives no consent, and is removed with the expired ones
    url = f"sqlite:///{file}"
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("INSERT INTO delivery_callback VALUES (?, 'sub', ?)", (hash_secret("secret", ""), until))
        connection.execute("INSERT INTO delivery_callback VALUES (?, 'sub', ?)", (hash_secret("sound", ""), 9e9))
    stored = StoredDeliveries(url, DeliveryPorts(UncheckedResolver()), ())
    assert [stored.consent("sub", secret, None) for secret in ("secret", "sound", "sound")] == [False, True, False]
    stored.close()
    state = StateDatabase(url)
    with state.writing() as db:
        delivery_queries.delete_expired(db, 1e9, 1.0)
        assert db.all("SELECT digest FROM delivery_callback WHERE subscription = 'sub'") == []
    state.close()


@pytest.mark.parametrize("table", [*LOG, *MODELS, *STATES], ids=str)
def test_a_failed_start_names_the_damage(sound: Path, file: Path, table: Table) -> None:
    # a server starts, or reports in one line why it does not
    for place, other in islice(damaged(file, table, sound), 0, None, len(OTHERS) + 1):
        try:
            with serving(f"sqlite:///{file}", **SETTINGS) as api:
                api.send("GET", "/", **ROOT)
        except Exception as error:
            assert exit_outcome(error) is not None or isinstance(error, RuntimeError), (place, other, error)


@pytest.mark.parametrize("table", [*STATES, written.log, written.head], ids=str)
def test_what_runs_for_others_goes_on(sound: Path, file: Path, table: Table) -> None:
    # SUB-805: one damaged row stops no thread that works for other subscriptions and links
    url = f"sqlite:///{file}"
    for place, other in islice(damaged(file, table, sound), 0, None, 2):
        _deliver(url, file.name, (place, other))
        _replicate(url)


def _deliver(url: str, damaged: str, place: Any) -> None:
    state, leases = StateDatabase(url), Leases(url, 15.0, deliveries.LEASES)
    with state.writing() as db:
        db.run("INSERT OR REPLACE INTO delivery_state VALUES ('fine', 1, 2, 3, '{}')")
        db.run("INSERT OR REPLACE INTO delivery_request VALUES ('fine', 'consent', '')")
        saved = delivery_queries.load_deliveries(db, [damaged, "fine"])
        assert saved["fine"].cursor == 3, place
        requests = delivery_queries.read_requests(db, [damaged, "fine"])
        assert ("fine", "consent", "") in requests, place
        delivery_queries.delete_requests(db, requests)
        assert not delivery_queries.read_requests(db, [damaged, "fine"]), place
        read_living(db), read_changes(db, 0, 1000)
        delivery_queries.delete_expired(db, 1e10, 1.0)
    held = leases.renew([damaged, "fine"])
    assert held is not None and {damaged, "fine"} <= held.ids, place
    leases.release_all()
    state.close()


def _replicate(url: str) -> None:
    states, leases = LinkStates(url), Leases(url, 15.0, replication.LEASES)
    states.update("fine", 7, error="e")
    assert states.read("fine").cursor == 7
    for link in ("l", "fine"):
        states.read(link)
        states.update(link, head=1)
        states.add_subjects(link, ["/dirs/d"])
        assert "/dirs/d" in states.take_subjects(link)
        SentObjects(link, states).get("/dirs/d")
        SentObjects(link, states).objects_below("/")
    held = leases.renew(["l", "fine"])
    assert held is not None and {"l", "fine"} <= held.ids
    leases.release_all()
    states.close()
