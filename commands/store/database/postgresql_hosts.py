"""URLs of PostgreSQL databases, as SQLAlchemy and the driver itself read them, also if they name several hosts."""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple
from urllib.parse import unquote

from sqlalchemy import URL, make_url

#: A list of hosts before the path, which SQLAlchemy does not parse. Its passwords may have any character but `@`.
_HOSTS_BEFORE_PATH: Final = re.compile(
    r"(?P<start>postgresql(?:\+\w+)?://(?:[^:/]*(?::[^@]*)?@)?+)(?P<hosts>[^/?@]*,[^/?@]*)(?P<rest>.*)", re.DOTALL
)
_IN_BRACKETS: Final = re.compile(r"\[(?P<host>[^\]]*)\](?::(?P<port>.*))?")
#: Not an IPv6 address, which has more colons, nor the path of a socket.
_WITH_PORT: Final = re.compile(r"(?P<host>[^:/]*):(?P<port>[^:]*)")
_FORM: Final = "write the hosts as postgresql://user:password@/name?host=first,second&port=5432,5433"
_DEFAULT_PORT: Final = "5432"


class _Host(NamedTuple):
    name: str
    port: str | None = None


def with_host_list(url: str) -> str:
    """The URL with its hosts in the form `host=a,b&port=1,2`, which SQLAlchemy and the driver take for the same hosts.

    The other forms are `//a:1,b:2/name` of libpq and `host=a:1&host=b:2` of SQLAlchemy. Each host gets a port, because
    the two would not agree on it. A URL of one host, or of another database, stays as it is.
    Raises: ValueError for hosts and ports that do not fit together.
    """
    found = _HOSTS_BEFORE_PATH.fullmatch(url)
    if found and found["rest"].startswith("@"):
        raise ValueError(f"an @ in a password has to be %40; for several hosts, {_FORM}")
    try:
        parsed = make_url(found["start"] + found["rest"] if found else url)
    except ValueError as error:
        raise ValueError(f"the port is not a number; for several hosts, {_FORM}") from error
    if parsed.get_backend_name() != "postgresql":
        return url
    names = ",".join(parsed.normalized_query.get("host", ())).split(",")
    if found and names == [""]:
        names = [*map(unquote, found["hosts"].split(","))]
    hosts = [*map(_host, names)]
    if len(hosts) == 1 and hosts[0].port is None:
        return url
    options = {"host": ",".join(host.name for host in hosts), "port": ",".join(_ports(parsed, hosts))}
    without_host = URL.create(parsed.drivername, parsed.username, parsed.password, None, None, parsed.database)
    return rendered(without_host.set(query={**parsed.query, **options}))


def names_several_hosts(url: URL) -> bool:
    """Whether the driver may choose between hosts."""
    return any("," in ",".join(url.normalized_query.get(name, ())) for name in ("host", "hostaddr"))


def rendered(url: URL) -> str:
    """The text of a URL with its password, which SQLAlchemy and libpq read in the same way.

    To libpq, a plus is no space, and a space is an error.
    """
    start, mark, query = url.render_as_string(hide_password=False).partition("?")
    return start.replace(" ", "%20") + mark + query.replace("+", "%20")


def _host(text: str) -> _Host:
    found = _IN_BRACKETS.fullmatch(text) or _WITH_PORT.fullmatch(text)
    return _Host(found["host"], found["port"] or None) if found else _Host(text)


def _ports(url: URL, hosts: list[_Host]) -> list[str]:
    """A port for each host. Raises: ValueError."""
    given = ",".join(url.normalized_query.get("port", ()))
    if given and any(host.port is not None for host in hosts):
        raise ValueError(f"ports are given with the hosts and in the parameter port; {_FORM}")
    default = str(url.port or os.environ.get("PGPORT") or _DEFAULT_PORT)
    ports = [port or default for port in given.split(",")] if given else [host.port or default for host in hosts]
    ports = ports * len(hosts) if len(ports) == 1 else ports
    if len(ports) != len(hosts):
        raise ValueError(f"there are {len(hosts)} hosts and {len(ports)} ports; {_FORM}")
    if not all(port.isdecimal() for port in ports):
        raise ValueError(f"a port is not a number; {_FORM}")
    return ports
