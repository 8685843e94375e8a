"""A PostgreSQL URL may name several hosts in the forms of libpq and of SQLAlchemy; both libraries get one of them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from sqlalchemy import make_url

from annals.api.settings.settings import Settings
from tests.support.registries.in_process import create, serving

FORM = "write the hosts as postgresql://user:password@/name?host=first,second&port=5432,5433"


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("//u@a:1,b:2/db", "//u@/db?host=a%2Cb&port=1%2C2"),
        ("//u:p,q@a,b:2/db?connect_timeout=5", "//u:p%2Cq@/db?connect_timeout=5&host=a%2Cb&port=%2C2"),
        ("//a,b/db", "///db?host=a%2Cb"),
        ("//[::1]:1,[::2]/db", "///db?host=%3A%3A1%2C%3A%3A2&port=1%2C"),
        ("//u@/db?host=a:1&host=b:2", "//u@/db?host=a%2Cb&port=1%2C2"),
        ("//u@/db?host=a&host=b", "//u@/db?host=a%2Cb"),
        ("//u@/db?host=a:1", "//u@/db?host=a&port=1"),
        ("//u@/db?host=a,b&port=1,2", "//u@/db?host=a,b&port=1,2"),
        ("//u:p,q/r@a:1/db", "//u:p,q/r@a:1/db"),
        ("///db?host=/tmp/a:1", "///db?host=/tmp/a:1"),
        ("///db?host=::1", "///db?host=::1"),
    ],
)
def test_hosts_are_in_one_list(given: str, used: str) -> None:
    assert Settings(database=f"postgresql:{given}").database == f"postgresql:{used}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("//u@a:x/db", f"the port is not a number; for several hosts, {FORM}"),
        ("//u@a:1,b:2/db?port=3", f"ports are given with the hosts and in the parameter port; {FORM}"),
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
