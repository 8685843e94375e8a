"""A PostgreSQL URL may name several hosts in the forms of libpq and of SQLAlchemy; both libraries get one of them."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict
from pydantic import ValidationError
from sqlalchemy import make_url

from annals.api.settings.settings import Settings
from annals.commands.store.database.engine import driver_uri
from tests.support.registries.in_process import create, serving

FORM = "write the hosts as postgresql://user:password@/name?host=first,second&port=5432,5433"


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("//u@a:1,b:2/db", "//u@/db?host=a%2Cb&port=1%2C2"),
        ("//u:p,q@a,b:2/db?connect_timeout=5", "//u:p%2Cq@/db?connect_timeout=5&host=a%2Cb&port=5432%2C2"),
        ("//a,b/db", "///db?host=a%2Cb&port=5432%2C5432"),
        ("//[::1]:1,[::2]/db", "///db?host=%3A%3A1%2C%3A%3A2&port=1%2C5432"),
        ("//%2Ftmp%2Fa,b/db", "///db?host=%2Ftmp%2Fa%2Cb&port=5432%2C5432"),
        ("//u@h:7/db?host=a,b", "//u@/db?host=a%2Cb&port=7%2C7"),
        ("//u@/db?host=/tmp/a,/tmp/a&port=7", "//u@/db?host=%2Ftmp%2Fa%2C%2Ftmp%2Fa&port=7%2C7"),
        ("//u:p%20w%40@a,b/n%20x?options=-c%20y", "//u:p%20w%40@/n%20x?host=a%2Cb&options=-c%20y&port=5432%2C5432"),
        ("//u@/db?host=a:1&host=b:2", "//u@/db?host=a%2Cb&port=1%2C2"),
        ("//u@/db?host=a&host=b", "//u@/db?host=a%2Cb&port=5432%2C5432"),
        ("//u@/db?host=a:1", "//u@/db?host=a&port=1"),
        ("//u@/db?host=a,b&port=1,2", "//u@/db?host=a%2Cb&port=1%2C2"),
        ("//u:p,q/r@a:1/db", "//u:p,q/r@a:1/db"),
        ("///db?host=/tmp/a:1", "///db?host=/tmp/a:1"),
        ("///db?host=::1", "///db?host=::1"),
    ],
)
def test_hosts_are_in_one_list(monkeypatch: pytest.MonkeyPatch, given: str, used: str) -> None:
    monkeypatch.delenv("PGPORT", raising=False)
    assert Settings(database=f"postgresql:{given}").database == f"postgresql:{used}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("//u@a:x/db", f"the port is not a number; for several hosts, {FORM}"),
        ("//u@a:1,b:2/db?port=3", f"ports are given with the hosts and in the parameter port; {FORM}"),
        ("//u@/db?host=a,b&port=1,2,3", f"there are 2 hosts and 3 ports; {FORM}"),
        ("//u@/db?host=a,b&port=1,x", f"a port is not a number; {FORM}"),
        ("//a,b:x/db", f"a port is not a number; {FORM}"),
        ("//u:p@w,x@h/db", f"an @ in a password has to be %40; for several hosts, {FORM}"),
    ],
)
def test_hosts_that_cannot_be_used(given: str, message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Settings(database=f"postgresql:{given}")
    assert [error["msg"] for error in raised.value.errors()] == [f"Value error, {message}"]


@pytest.mark.parametrize("form", ["//{user}@{host},{host}/{name}", "//{user}@/{name}?host={host}&host={host}"])
def test_a_server_takes_each_form(postgres_url: str, form: str) -> None:
    parsed = make_url(postgres_url)
    names = {"user": parsed.username, "host": f"{parsed.host}:{parsed.port}", "name": parsed.database}
    _, _, options = postgres_url.partition("?")
    create(postgres_url)
    start = f"postgresql:{form.format(**names)}"
    with serving(f"{start}{'&' if '?' in start else '?'}{options}") as api:
        assert api.send("PUT", "/dirs/a", {}).status_code == 201
        assert api.send("GET", "/-/readyz").status_code == 200


def test_hosts_without_ports_have_the_port_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "7")
    assert Settings(database="postgresql://a,b/db").database == "postgresql:///db?host=a%2Cb&port=7%2C7"


@pytest.mark.parametrize("given", ["//u:p%20w@/n%20x?host=a,b&port=1,2", "//u%2B:p+w@h/100%25"])
def test_the_driver_reads_what_sqlalchemy_reads(given: str) -> None:
    url = make_url(Settings(database=f"postgresql:{given}").database)
    read = conninfo_to_dict(driver_uri(url))
    assert (read["user"], read["password"], read["dbname"]) == (url.username, url.password, url.database)
