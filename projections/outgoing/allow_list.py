"""The addresses that events may be sent to: those of the public internet, and those that the operator permits.

Rules SUB-901 to 903.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network

#: Lower ports belong to other services, except for the web's.
FIRST_UNPRIVILEGED_PORT: Final = 1024
WEB_PORTS: Final = frozenset((80, 443))

#: An IPv4 address as resolvers accept it: one to four numbers, decimal, octal or hexadecimal.
_NUMBER: Final = r"(?:0[xX][0-9A-Fa-f]*|[0-9]+)"
_NUMERIC_HOST: Final = re.compile(rf"{_NUMBER}(?:\.{_NUMBER}){{0,3}}\Z")
_NAME: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.\-]*[A-Za-z0-9_])?\Z")
_ENTRY: Final = re.compile(r"(?:\[(?P<inside>[^\]]+)\]|(?P<bare>[^:\[\]]+))(?::(?P<port>[0-9]{1,5}))?\Z")

#: The range of assigned IPv6 addresses; `is_global` excludes the special ones in it.
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
#: Networks whose addresses end in an IPv4 address that they lead to.
_IPV4_SUFFIX_NETWORKS: Final = tuple(map(IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")))


def normalize_host(host: str) -> str:
    """A host in the form for comparisons and lookups: without brackets, in lower case, without a trailing dot."""
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    return bare.lower().removesuffix(".")


def parse_ip_literal(host: str) -> IpAddress | None:
    """The address that a host literally is, in every form that resolvers accept; None for a name.

    host: as returned by `normalize_host`. Raises: ValueError if it is neither.
    """
    if ":" in host:
        return ip_address(host)
    if _NUMERIC_HOST.match(host):
        try:
            return IPv4Address(socket.inet_aton(host))
        except OSError:
            raise ValueError("these numbers are not an address") from None
    if not _NAME.match(host):
        raise ValueError("this is not the name of a host")
    return None


def is_public(address: IpAddress) -> bool:
    """Whether an address, and any address embedded in it, is public: it leads to the same machine from everywhere."""
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast
    embedded_addresses = list(_embedded_ipv4(address))
    if embedded_addresses:
        return all(map(is_public, embedded_addresses))
    return address in _GLOBAL_UNICAST and address.is_global


def _embedded_ipv4(address: IPv6Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses that packets to an IPv6 address end up at."""
    if any(address in network for network in _IPV4_SUFFIX_NETWORKS):
        yield IPv4Address(int(address) & 0xFFFFFFFF)
    if address.sixtofour is not None:
        yield address.sixtofour
    yield from address.teredo or ()


@dataclass(frozen=True, slots=True)
class AllowListEntry:
    """What the operator permits: a host name or a network, on one port or on all."""

    host: str | None
    network: IpNetwork | None
    port: int | None

    def permits(self, host: str, address: IpAddress, port: int) -> bool:
        """Whether an address of a host may be connected to at a port."""
        if self.port not in (None, port):
            return False
        if self.network is None:
            return self.host == host
        embedded_addresses = _embedded_ipv4(address) if isinstance(address, IPv6Address) else ()
        return any(candidate in self.network for candidate in (address, *embedded_addresses))


def parse_allow_list(text: str) -> tuple[AllowListEntry, ...]:
    """An allow-list: `host|CIDR[:port]` with commas, IPv6 in brackets before a port. Raises: ValueError."""
    return tuple(_parse_entry(part.strip()) for part in text.split(",") if part.strip())


def _parse_entry(text: str) -> AllowListEntry:
    if text.count(":") > 1 and not text.startswith("["):
        return AllowListEntry(None, ip_network(text), None)
    match = _ENTRY.match(text)
    if match is None:
        raise ValueError(f"{text} is not a host, network or address, with or without :port")
    port = int(match["port"]) if match["port"] else None
    if port is not None and not 0 < port < 1 << 16:
        raise ValueError(f"{text}: a port is from 1 to 65535")
    host = normalize_host(match["inside"] or match["bare"])
    if "/" in host:
        return AllowListEntry(None, ip_network(host), port)
    address = parse_ip_literal(host)
    return AllowListEntry(host, None, port) if address is None else AllowListEntry(None, ip_network(address), port)


def is_port_allowed_by_default(port: int) -> bool:
    """Whether a port may be used without being permitted (SUB-903)."""
    return port in WEB_PORTS or FIRST_UNPRIVILEGED_PORT <= port < 1 << 16
