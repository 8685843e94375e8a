"""The address that clients used, from the forwarded headers of trusted proxies.

Spec: RFC 7239; the `X-Forwarded-` headers that preceded it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from starlette.types import Scope

from annals.domain.errors.problems import BadRequest

#: Characters allowed in a Host header, which becomes part of URLs in JSON text and in headers.
HOST_PATTERN: Final = re.compile(r"[A-Za-z0-9._~\-:\[\]]+\Z")
_PREFIX: Final = re.compile(r"(?:/[A-Za-z0-9._~\-]+)*/?\Z")

#: The parameters of `Forwarded` that count (RFC 7239, "Parameters"). Proxies pass on others that clients invent.
_FORWARDED_PARAMETERS: Final = frozenset(("for", "proto", "host"))

#: What one proxy reports about a request: any of `for`, `proto`, `host`, and in the older form `port` and `prefix`.
ForwardedHop = dict[str, str]


class TrustedProxies:
    """The proxies whose headers are trusted. trusted_networks: addresses and networks, `10.0.0.0/8, ::1`."""

    def __init__(self, trusted_networks: str | None) -> None:
        self._networks = parse_networks(trusted_networks or "")
        self._is_trusted_cached = lru_cache(maxsize=1024)(self._is_trusted)

    def root_url(self, scope: Scope) -> str | None:
        """The absolute URL of the registry's root that the client used; None if no trusted proxy reports it, or if the
        reports contradict each other."""
        if not self.is_peer_trusted(scope) or self._contradiction(scope) is not None:
            return None
        return self._root_url(scope, _hops(scope["headers"]))

    def _root_url(self, scope: Scope, hops: Sequence[ForwardedHop]) -> str | None:
        hop = self._outermost(hops)
        scheme = (hop.get("proto") or str(scope["scheme"])).lower()
        host, prefix = hop.get("host", ""), hop.get("prefix", "")
        if not host:
            host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
        if not HOST_PATTERN.match(host) or scheme not in ("http", "https") or not _PREFIX.match(prefix):
            return None
        return f"{scheme}://{_with_port(host, scheme, hop.get('port', ''))}{prefix.rstrip('/')}"

    def is_peer_trusted(self, scope: Scope) -> bool:
        """Whether a request comes from a trusted proxy."""
        peer = scope.get("client")
        return bool(self._networks and peer and self._is_trusted_cached(peer[0]))

    def check_agreement(self, scope: Scope) -> None:
        """Checks that both forms of headers name the same client and the same address of the registry, because clients
        can send the one that no proxy sets.

        Raises: BadRequest.
        """
        contradiction = self._contradiction(scope) if self.is_peer_trusted(scope) else None
        if contradiction is not None:
            raise BadRequest(error_detail=contradiction)

    def _contradiction(self, scope: Scope) -> str | None:
        """What the two forms of headers disagree about; None if they agree, or if there is only one."""
        hops = _forwarded_hops(scope["headers"])
        others = _x_forwarded_hops(scope["headers"]) if hops else []
        if not any(others):
            return None
        if self._client(hops) != self._client(others):
            return 'the headers "Forwarded" and "X-Forwarded-For" name different clients'
        if self._root_url(scope, hops) != self._root_url(scope, _without_prefixes(others)):
            return (
                'the headers "Forwarded" and "X-Forwarded-Host" or "-Proto" name different addresses of this registry; '
                "let the proxy set both, or remove one"
            )
        return None

    def client_address(self, scope: Scope) -> str:
        """The address of the client: of the nearest hop that is not a trusted proxy; empty if unknown.

        If the reports of proxies contradict each other, it is the peer's.
        """
        peer = scope.get("client")
        address = str(peer[0]) if peer else ""
        if not self.is_peer_trusted(scope) or self._contradiction(scope) is not None:
            return address
        return self._client(_hops(scope["headers"])) or address

    def _client(self, hops: Sequence[ForwardedHop]) -> str:
        """The address of the nearest hop that is not a trusted proxy; empty if none is named."""
        address = ""
        for hop in reversed(hops):
            address = _node_address(hop.get("for", "")) or address
            if address and not self._is_trusted_cached(address):
                break
        return address

    def _outermost(self, hops: Sequence[ForwardedHop]) -> ForwardedHop:
        """The hop that clients connect to: the last one, or an earlier one if all after it are trusted."""
        merged_hop: ForwardedHop = {}
        for hop in reversed(hops):
            merged_hop = {**merged_hop, **hop}
            if not self._is_trusted_cached(_node_address(hop.get("for", ""))):
                break
        return merged_hop

    def _is_trusted(self, address: str) -> bool:
        try:
            parsed_address = ip_address(address)
        except ValueError:
            return False
        addresses: list[IPv4Address | IPv6Address] = [parsed_address]
        if isinstance(parsed_address, IPv6Address) and parsed_address.ipv4_mapped is not None:
            addresses.append(parsed_address.ipv4_mapped)  # a server that listens on both kinds shows it as IPv6
        return any(address in network for address in addresses for network in self._networks)


def parse_networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """The networks in a comma-separated list. Raises: ValueError."""
    return tuple(ip_network(part.strip(), strict=False) for part in text.split(",") if part.strip())


def _hops(headers: Sequence[tuple[bytes, bytes]]) -> list[ForwardedHop]:
    """One hop for each proxy on the way; the nearest proxy is last. Only `X-Forwarded-Prefix` can name the path."""
    hops, others = _forwarded_hops(headers), _x_forwarded_hops(headers)
    if not hops:
        return others
    prefix = {name: value for name, value in others[-1].items() if name == "prefix"}
    return [{**hop, **prefix} for hop in hops]


def _forwarded_hops(headers: Sequence[tuple[bytes, bytes]]) -> list[ForwardedHop]:
    return [_parse_pairs(element) for element in _header_values(headers, b"forwarded")]


def _without_prefixes(hops: Sequence[ForwardedHop]) -> list[ForwardedHop]:
    """Hops of the older form without the path, which the other form cannot name."""
    return [{name: value for name, value in hop.items() if name != "prefix"} for hop in hops]


def _x_forwarded_hops(headers: Sequence[tuple[bytes, bytes]]) -> list[ForwardedHop]:
    values_by_header = {
        name: _header_values(headers, b"x-forwarded-" + name.encode()) for name in ("for", "proto", "host", "port")
    }
    prefix = _header_values(headers, b"x-forwarded-prefix")
    count = max(map(len, values_by_header.values()))
    hops = [dict(_hop_values(values_by_header, number - count)) for number in range(count)] or [{}]
    return [{**hop, "prefix": prefix[-1]} for hop in hops] if prefix else hops


def _hop_values(values_by_header: dict[str, list[str]], index: int) -> Iterator[tuple[str, str]]:
    """The values of one hop, with a negative index."""
    return ((name, values[index]) for name, values in values_by_header.items() if -index <= len(values))


def _header_values(headers: Sequence[tuple[bytes, bytes]], header_name: bytes) -> list[str]:
    text = ",".join(value.decode("latin-1") for name, value in headers if name == header_name)
    return [part.strip() for part in text.split(",")] if text else []


def _parse_pairs(element: str) -> ForwardedHop:
    """The parameters of one hop that count. Cost: linear, because clients can send it."""
    pairs = [part.partition("=") for part in element.split(";")]
    parameters = {name.strip().lower(): _unquoted(value.strip()) for name, _, value in pairs}
    return {name: value for name, value in parameters.items() if name in _FORWARDED_PARAMETERS}


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value


def _node_address(node: str) -> str:
    """The address in a `for`, without the port: `192.0.2.1:80`, `[::1]:80`."""
    if node.startswith("["):
        return node[1:].partition("]")[0]
    return node.partition(":")[0] if node.count(":") == 1 else node


def _with_port(host: str, scheme: str, port: str) -> str:
    default_port = {"http": "80", "https": "443"}[scheme]
    has_port = re.search(r":\d+\Z", host) is not None
    return host if has_port or not port.isdecimal() or port == default_port else f"{host}:{port}"
