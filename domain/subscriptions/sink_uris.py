"""The URIs of sinks, by protocol (SUB-204, SUB-902, SUB-905).

Host names are not resolved here; this file uses only the text of a URI.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any, Final
from urllib.parse import quote

from annals.domain.subscriptions.error_places import ErrorPlace
from annals.domain.subscriptions.member_types import parse_line

HTTP: Final = "HTTP"
MQTT3: Final = "MQTT3"
MQTT5: Final = "MQTT5"
AMQP: Final = "AMQP"
KAFKA: Final = "KAFKA"
NATS: Final = "NATS"
#: In the order in which they are offered.
PROTOCOLS: Final = (HTTP, MQTT3, MQTT5, AMQP, KAFKA, NATS)


@dataclass(frozen=True, slots=True)
class SinkScheme:
    """tls: whether the channel is encrypted and the server authenticated. port: the default port."""

    tls: bool
    port: int


_WEB_SCHEMES: Final = {"https": SinkScheme(True, 443), "http": SinkScheme(False, 80)}
_SOCKET_SCHEMES: Final = {"wss": SinkScheme(True, 443), "ws": SinkScheme(False, 80)}
_MQTT_SCHEMES: Final = {
    **{"mqtts": SinkScheme(True, 8883), "mqtt": SinkScheme(False, 1883)},
    **{"ssl": SinkScheme(True, 8883), "tcp": SinkScheme(False, 1883)},
    **_SOCKET_SCHEMES,
}
SCHEMES: Final[Mapping[str, Mapping[str, SinkScheme]]] = {
    HTTP: _WEB_SCHEMES,
    MQTT3: _MQTT_SCHEMES,
    MQTT5: _MQTT_SCHEMES,
    AMQP: {"amqps": SinkScheme(True, 5671), "amqp": SinkScheme(False, 5672), **_SOCKET_SCHEMES},
    KAFKA: {
        "ssl": SinkScheme(True, 9092),
        "sasl_ssl": SinkScheme(True, 9092),
        "plaintext": SinkScheme(False, 9092),
        "kafka": SinkScheme(False, 9092),
    },
    NATS: {"tls": SinkScheme(True, 4222), "nats": SinkScheme(False, 4222), "ws": SinkScheme(False, 80)},
}

_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-_]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(#.*)?\Z")
_ILLEGAL_CHARACTER: Final = re.compile(r"[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]|%(?![0-9A-Fa-f]{2})")
_SERVER: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.\-_]+)(?::([0-9]{1,5}))?\Z")
_NUMERIC_LABEL: Final = re.compile(r"(?:[0-9]+|0[xX][0-9A-Fa-f]*)\Z")
_LOOPBACK_HOST: Final = re.compile(r"(?:localhost|.+\.localhost|127\.[0-9.]+|::1)\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SinkAddress:
    """The parts of a URI. servers: hosts with their ports, IPv6 hosts without brackets.

    base: the URI without its query.
    """

    scheme: str
    servers: tuple[tuple[str, int], ...]
    path: str
    query: str | None
    base: str
    tls: bool

    @property
    def is_loopback(self) -> bool:
        """Whether the URI itself shows that its hosts are on the local machine."""
        return all(is_loopback_host(host) for host, _ in self.servers)

    @property
    def secret_binding(self) -> tuple[object, ...]:
        """The destination: a stored secret may only be sent to an equal one (SUB-304)."""
        return self.scheme, tuple((host.lower(), port) for host, port in self.servers)


def is_loopback_host(host: str) -> bool:
    """Whether a host name itself shows that it is the local machine."""
    return _LOOPBACK_HOST.match(host) is not None


def parse_sink(value: Any, protocol: str, place: ErrorPlace) -> SinkAddress:
    """The address of a sink. Raises: InvalidSubscription."""
    text = parse_line(value, place)
    match = _URI.match(text)
    if match is None:
        raise place.error("value", "an absolute URI is needed, such as https://example.com/events")
    if illegal := _ILLEGAL_CHARACTER.search(text):
        raise place.error("value", _illegal_reason(illegal[0], in_host=illegal.end() <= match.end(2)))
    scheme, authority, path, query, fragment = match.groups()
    schemes = SCHEMES[protocol]
    if scheme.lower() not in schemes:
        raise place.error("scheme", f"{protocol} takes URIs with {', '.join(schemes)}, not with {scheme}")
    if "@" in authority:
        raise place.error("userinfo", "put names and passwords into sinkcredential, not into the URI")
    if fragment is not None:
        raise place.error("value", "a sink cannot have a fragment")
    default = schemes[scheme.lower()]
    server_texts = authority.split(",") if protocol == KAFKA else [authority]
    servers = tuple(_parse_server(server_text, default.port, protocol == NATS, place) for server_text in server_texts)
    return SinkAddress(scheme.lower(), servers, path, query, text.partition("?")[0], default.tls)


def _illegal_reason(character: str, *, in_host: bool) -> str:
    if in_host:
        return (
            f'a host cannot have the character "{character}"; names have an ASCII form, such as xn--bcher-kva.example'
        )
    return f'the character "{character}" has to be percent-encoded, as {quote(character, errors="surrogatepass")}'


def _parse_server(text: str, default: int, port_required: bool, place: ErrorPlace) -> tuple[str, int]:
    """A host and its port."""
    match = _SERVER.match(text)
    if match is None:
        raise place.error("host", "a host is needed, with or without a port")
    host, port = match.groups()
    if port_required and port is None:
        raise place.error("host", "a port is needed")
    if port is not None and not 0 < int(port) < 1 << 16:
        raise place.error("host", "the port is not from 1 to 65535")
    return _parse_host(host, place), int(port) if port is not None else default


def _parse_host(text: str, place: ErrorPlace) -> str:
    try:
        if text.startswith("["):
            return str(IPv6Address(text[1:-1]))
        if _NUMERIC_LABEL.match(text.rstrip(".").rpartition(".")[2]):
            return str(IPv4Address(text))
    except AddressValueError:
        # A network client would read 2130706433 or 0x7f.1 as an address (SUB-902).
        raise place.error("host", "a numeric address has to be IPv6 or have four decimal parts") from None
    return text
