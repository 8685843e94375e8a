"""Checks the host name of requests: a foreign page can point any other name at this server (DNS rebinding).

Rule ACC-87. RFC 9110, "421 Misdirected Request"; RFC 9112, "Request Target".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address
from typing import Final

from starlette.types import Scope

from annals.domain.errors.http_errors import MisdirectedRequest
from annals.domain.errors.problems import BadRequest

ANY_HOST: Final = "*"
_LOOPBACK: Final = frozenset(("localhost", "*.localhost"))
_NAME: Final = re.compile(r"(?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?\Z|\*\Z|\[[0-9A-Fa-f:.]+\]\Z")


class AllowedHosts:
    """The host names of one server. names: exact ones, `*.example.com`, or `*`; None to accept every name.

    Loopback names and IP addresses are always accepted, because no foreign page can point them at another server.
    """

    def __init__(self, names: Iterable[str] | None) -> None:
        allowed_names = None if names is None else {*_LOOPBACK, *(_normalize(name) for name in names)}
        self._allowed_names = allowed_names if allowed_names is None or ANY_HOST not in allowed_names else None
        self._is_allowed = lru_cache(maxsize=1024)(self._is_name_allowed)

    def check(self, host: str, scope: Scope) -> None:
        """Checks the host of a request.

        Raises: MisdirectedRequest; BadRequest if a request has no Host header or several. host: of the request.
        """
        if sum(name == b"host" for name, _ in scope["headers"]) != 1:
            raise BadRequest(error_detail='a request needs the header "Host" exactly once')
        if not self._is_allowed(host):
            raise MisdirectedRequest(host=host)

    def _is_name_allowed(self, host: str) -> bool:
        if self._allowed_names is None:
            return True
        name = _normalize(host_name(host))
        return (
            name in self._allowed_names
            or _is_address(name)
            or any(f"*.{suffix}" in self._allowed_names for suffix in _suffixes(name))
        )


def parse_hosts(text: str) -> tuple[str, ...]:
    """The host names in a comma-separated list. Raises: ValueError for an invalid name."""
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in names:
        if not _NAME.match(name):
            raise ValueError(f"{name} is not a host name such as registry.example.com, *.example.com or *")
    return names


def _normalize(name: str) -> str:
    return name.lower().removesuffix(".")


def _suffixes(name: str) -> Iterable[str]:
    """The suffixes of a name after each dot."""
    labels = name.split(".")
    return (".".join(labels[number:]) for number in range(1, len(labels)))


def _is_address(name: str) -> bool:
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def host_name(host: str) -> str:
    """The name in a Host header, in lower case and without its port."""
    name, _, port = host.rpartition(":")
    return (name if name and port.isdecimal() else host).lower()
