"""All connections to PostgreSQL use UTF-8, and notice a server that is gone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import make_url

from annals.commands.store.database.engine import open_engine
from annals.projections.database.connections import connect_server
from annals.projections.database.state_database import StateDatabase

#: By name, what a connection of each kind gives its user.
Use = Callable[[Any], Any]


def _store(url: str, use: Use) -> Any:
    engine = open_engine(url)
    with engine.connect() as connection:
        result = use(connection.connection.driver_connection)
    engine.dispose()
    return result


def _reader(url: str, use: Use) -> Any:
    with connect_server(make_url(url)) as connection:
        return use(connection)


def _deliveries(url: str, use: Use) -> Any:
    with closing(StateDatabase(url)) as store, store.reading() as database:
        driver: Any = database  # its connection has parameters that no query shows
        return use(driver._connection)


@pytest.mark.parametrize("connected", [_store, _reader, _deliveries])
def test_settings_of_sessions(postgres_url: str, connected: Callable[[str, Use], Any]) -> None:
    # The server ends the sessions of a client that is gone, with their locks. The operator's own times stay, but not a
    # setting that changes what texts with backslashes mean.
    url = postgres_url.replace("=-c", "=-cstandard_conforming_strings%3Doff%20-ctcp_keepalives_count%3D7%20-c")
    expected = {
        "standard_conforming_strings": "on",
        "tcp_keepalives_idle": "30",
        "tcp_keepalives_interval": "10",
        "tcp_keepalives_count": "7",
        "tcp_user_timeout": "60000",
    }
    query = "SELECT setting FROM pg_settings WHERE name = %s"
    found = connected(url, lambda driver: {name: driver.execute(query, [name]).fetchone()[0] for name in expected})
    assert found == expected


@pytest.mark.parametrize("connected", [_store, _reader, _deliveries])
def test_parameters_of_connections(
    postgres_url: str, connected: Callable[[str, Use], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    url = f"{postgres_url}&client_encoding=LATIN1&keepalives_idle=7"
    assert connected(url, lambda driver: driver.info.encoding) == "utf-8"
    parameters = connected(url, lambda driver: driver.info.get_parameters())
    assert {name: parameters.get(name) for name in ("connect_timeout", "tcp_user_timeout", "keepalives_idle")} == {
        "connect_timeout": "10",
        "tcp_user_timeout": "60000",
        "keepalives_idle": "7",
    }
