"""Guards outgoing connections: checks every address of a host, and connects only to a checked one.

The author of a subscription chooses where the server connects, from inside its network. A name is therefore looked up
only here, and once for each connection: at the next connection it may belong to someone else.
Rules SUB-901 to 905.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final

from annals.domain.errors.http_errors import InvalidSubscription
from annals.domain.subscriptions.error_places import ErrorPlace
from annals.domain.subscriptions.sink_uris import parse_sink
from annals.projections.outgoing import dns
from annals.projections.outgoing.allow_list import (
    IpAddress,
    is_port_allowed_by_default,
    is_public,
    normalize_host,
    parse_allow_list,
    parse_ip_literal,
)
from annals.projections.outgoing.dns import LookUp
from annals.projections.outgoing.resolver import ForbiddenAddress


class DestinationRefused(ForbiddenAddress):
    """A rule forbids a URI or an address. code: the rule, for programs; the message contains no address."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


_MESSAGES: Final = {
    "plaintext": "this server sends events over TLS only",
    "port": "ports below 1024 other than 80 and 443 are refused, unless ANNALS_SINKS_ALLOW permits them",
    "address": "private, local and reserved addresses are refused, unless ANNALS_SINKS_ALLOW permits them",
}


class DestinationGuard:
    """The resolver of deliveries, see `resolver.Resolver`. It is stateless, and may be used from several loops."""

    def __init__(
        self, allow_list: str = "", allows_plaintext: bool = False, ca_file: str = "", look_up: LookUp | None = None
    ) -> None:
        """allow_list: see `parse_allow_list`. allows_plaintext: whether sinks without TLS are allowed.

        ca_file: the path of a PEM file with further authorities, empty for none. look_up: replaces the system's lookup.
        Raises: ValueError for an invalid allow-list.
        """
        self.allows_plaintext: Final = allows_plaintext
        self.ca: Final = ca_file
        self._allow_list = parse_allow_list(allow_list)
        self._lookup = look_up or dns.look_up

    async def resolve(self, host: str, port: int) -> str:
        """One checked IP address. Raises: ForbiddenAddress; OSError when the name has none."""
        return (await self.addresses(host, port))[0]

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """All addresses of a host, best first, if each of them is allowed. Raises: as `resolve`."""
        name = normalize_host(host)
        try:
            literal_address = parse_ip_literal(name)
        except ValueError as error:
            raise DestinationRefused("value", str(error)) from None
        checked_addresses = [str(literal_address)] if literal_address else await self._lookup(name, port)
        if not checked_addresses:
            raise OSError("the name has no address")
        for address in checked_addresses:
            self._check(name, ip_address(address), port)
        return checked_addresses

    async def check(self, uri: str, protocol: str) -> None:
        """Checks that a URI may be sent to at present; for URIs that a client wants to store.

        protocol: of a subscription; HTTP also for token endpoints and dead letters. A name without an address passes:
        it may get one, and is checked again for each connection.
        Raises: DestinationRefused.
        """
        try:
            sink_address = parse_sink(uri, protocol, ErrorPlace())
        except InvalidSubscription as error:
            raise DestinationRefused(str(error.extensions["code"]), error.arguments["error_detail"]) from None
        if not (sink_address.tls or self.allows_plaintext):
            raise DestinationRefused("plaintext", _MESSAGES["plaintext"])
        for host, port in sink_address.servers:
            try:
                await self.addresses(host, port)
            except OSError:
                continue

    def _check(self, host: str, address: IpAddress, port: int) -> None:
        """Raises: DestinationRefused."""
        has_usual_port = is_port_allowed_by_default(port)
        if has_usual_port and is_public(address):
            return
        if not any(entry.permits(host, address, port) for entry in self._allow_list):
            raise DestinationRefused(code := "address" if has_usual_port else "port", _MESSAGES[code])
