"""URLs of PostgreSQL databases that name several hosts, such as a primary and its standbys."""

from __future__ import annotations

import re
from typing import Final

from sqlalchemy import URL, make_url

#: A list of hosts before the path, which SQLAlchemy does not parse. Its passwords may have any character but `@`.
_HOSTS_BEFORE_PATH: Final = re.compile(
    r"(?P<start>postgresql(?:\+\w+)?://(?:[^:/]*(?::[^@]*)?@)?+)(?P<hosts>[^/?@]*,[^/?@]*)(?P<rest>.*)", re.DOTALL
)
_IN_BRACKETS: Final = re.compile(r"\[(?P<host>[^\]]*)\](?::(?P<port>\d*))?")
#: Not an IPv6 address, which has more colons.
_WITH_PORT: Final = re.compile(r"(?P<host>[^:/]*):(?P<port>\d*)")
_FORM: Final = "write the hosts as postgresql://user:password@/name?host=first,second&port=5432,5433"


def with_host_list(url: str) -> str:
    """The URL with its hosts in the form `host=a,b&port=1,2`, which SQLAlchemy and the driver take for the same hosts.

    The other forms are `//a:1,b:2/name` of libpq and `host=a:1&host=b:2` of SQLAlchemy. A URL of another form, or of
    another database, stays as it is. Raises: ValueError for hosts and ports that do not fit together.
    """
    found = _HOSTS_BEFORE_PATH.fullmatch(url)
    try:
        parsed = make_url(found["start"] + found["rest"] if found else url)
    except ValueError as error:
        raise ValueError(f"the port is not a number; for several hosts, {_FORM}") from error
    if parsed.get_backend_name() != "postgresql":
        return url
    in_query = parsed.normalized_query.get("host", ())
    pairs = [_host_and_port(host) for host in (",".join(in_query) or (found["hosts"] if found else "")).split(",")]
    has_ports = any(port is not None for _, port in pairs)
    if found is None and len(in_query) < 2 and not has_ports:
        return url
    options = {"host": ",".join(host for host, _ in pairs)}
    if has_ports:
        if "port" in parsed.query:
            raise ValueError(f"ports are given with the hosts and in the parameter port; {_FORM}")
        options["port"] = ",".join(port or "" for _, port in pairs)
    return parsed.update_query_dict(options).render_as_string(hide_password=False)


def names_several_hosts(url: URL) -> bool:
    """Whether the driver may choose between hosts."""
    return any("," in ",".join(url.normalized_query.get(name, ())) for name in ("host", "hostaddr"))


def _host_and_port(text: str) -> tuple[str, str | None]:
    """A host and its port; None without one."""
    found = _IN_BRACKETS.fullmatch(text) or _WITH_PORT.fullmatch(text)
    return (found["host"], found["port"] or None) if found else (text, None)
