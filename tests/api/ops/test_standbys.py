"""A database with a standby: a server writes to the primary, and says that it is not ready while it has only a standby.

Readiness covers writes (`HealthRoutes`): a load balancer must not send requests to a server that can only refuse them.
"""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from annals.api.cli.outcome import ExitCode
from tests.support.polling import until
from tests.support.registries.in_process import Api, create, serving
from tests.support.serving import annals
from tests.support.standbys import primary_and_standby, url_of

#: The server may choose the first host that answers, though it is a standby.
ANY = "&target_session_attrs=any"


READ_ONLY = (
    "annals: the database is read-only, as a standby is. Name the primary in ANNALS_DATABASE or --database, or all"
    " hosts (host=first,second&port=5432,5433). What only reads the log also works on a standby: annals log, annals"
    " segments write, annals lake and annals spark.\n"
)
#: Verbs that only read the log. Those of Spark read the same rows; they are left out because they take long to start.
READERS = (
    "log verify",
    "log tail",
    "log show 1",
    "log history /",
    "log hash",
    "log diff --from 1 --to 1",
    "segments write --folder segments",
)


def put(api: Api, id: str) -> int:
    return api.send("PUT", f"/dirs/{id}", {}).status_code


def is_ready(api: Api) -> bool:
    return api.send("GET", "/-/readyz").status_code == 200


@pytest.mark.uses("PostgreSQL")
def test_a_server_follows_a_failover(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hosts are in any order. After a failover the server writes to the new primary, without a restart."""
    monkeypatch.delenv("PGTARGETSESSIONATTRS", raising=False)
    with primary_and_standby() as (primary, standby):
        standby_first = url_of(standby, primary)
        create(standby_first)
        with serving(standby_first) as chosen, serving(url_of(primary, standby, options=ANY), ids="any") as any_host:
            assert put(chosen, "a") == put(any_host, "b") == 201
            standby.catch_up(primary)
            primary.stop()
            not_ready = any_host.send("GET", "/-/readyz")
            assert (not_ready.status_code, not_ready.json()) == (
                503,
                {"status": "unavailable", "reason": "the store cannot be written to: the database is a standby"},
            )
            standby.promote()
            until(lambda: is_ready(chosen) and put(chosen, "c") in (200, 201))
            until(lambda: is_ready(any_host) and put(any_host, "d") in (200, 201))


@pytest.mark.uses("PostgreSQL")
def test_a_standby_that_is_behind_is_no_lost_log() -> None:
    """What it lacks may still come, so a server says which database it has found, and goes on once it has caught up."""
    with primary_and_standby() as (primary, standby):
        create(primary.url)
        with (
            serving(url_of(primary, standby, options=ANY)) as api,
            psycopg.connect(standby.url, autocommit=True) as administrator,
        ):
            assert put(api, "a") == 201
            standby.catch_up(primary)
            administrator.execute("SELECT pg_wal_replay_pause()")
            assert put(api, "b") == 201
            standby.catch_up(primary, "pg_last_wal_receive_lsn")
            primary.stop()
            refused = api.send("GET", "/dirs/a")
            assert (refused.status_code, refused.json()["args"]["error_detail"]) == (
                503,
                f"the database (127.0.0.1:{standby.port}) is a standby that is behind: its log ends at position 5, and"
                " this server has read 7; connect to the primary",
            )
            administrator.execute("SELECT pg_wal_replay_resume()")
            until(lambda: api.send("GET", "/dirs/b").status_code == 200)


@pytest.mark.uses("PostgreSQL")
def test_verbs_say_that_a_database_is_a_standby(tmp_path: Path) -> None:
    """Messages name the cause and what to do, and those that they name as working work."""
    with primary_and_standby() as (primary, standby):
        create(primary.url)
        standby.catch_up(primary)
        for verb in ("export", "keys list", "serve --port 0"):
            ended = annals(*verb.split(), "--database", standby.url, cwd=tmp_path)
            assert (ended.returncode, ended.stderr) == (ExitCode.STORE, READ_ONLY)
        for verb in READERS:
            assert annals(*verb.split(), "--database", standby.url, cwd=tmp_path).returncode == ExitCode.DONE, verb
