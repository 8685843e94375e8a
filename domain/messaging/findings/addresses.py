"""Addresses of endpoints: the member that contains them, and the form that each protocol requires.

Spec: endpoint 1.0-rc4, "protocoloptions.endpoints". Rules EP-23 to 25, EP-38.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from annals.domain.messaging.findings import names
from annals.domain.messaging.findings.finding import Finding, ValidatedEntity
from annals.domain.messaging.findings.placeholders import blank_placeholders, is_placeholder
from annals.domain.messaging.findings.unchecked_values import as_sequence, as_text, as_texts

_SERVERS_OPTION: Final = "bootstrap.servers"
_SCHEMES: Final[dict[str, tuple[str, ...]]] = {
    names.HTTP: ("http", "https"),
    names.AMQP: ("amqp", "amqps"),
    names.MQTT3: ("mqtt", "mqtts", "tcp", "ssl", "wss"),
    names.MQTT5: ("mqtt", "mqtts", "tcp", "ssl", "wss"),
    names.NATS: ("nats", "tls", "ws"),
}
#: MQTT schemes that only define how to connect.
_PATHLESS_SCHEMES: Final = ("tcp", "ssl", "wss")
_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*|\{\w+\}):(?://([^/?#]*))?([^?#]*)")
_PORT: Final = re.compile(r".*:(?:[0-9]{1,5}|\{\w+\})\Z", re.DOTALL)
# Kafka's own names of listeners; the brackets are those of IPv6 addresses.
_SERVER: Final = re.compile(
    r"(?:(?:PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL)://)?(?:\[[0-9A-Fa-f:.]+\]|[^\s:/,\[\]@]+):(?:[0-9]{1,5}|\{\w+\})\Z",
    re.IGNORECASE,
)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


class _Address(NamedTuple):
    """The parts of a URI. scheme: lower case, empty if it is a placeholder."""

    scheme: str
    authority: str
    path: str


def addresses_fit(subject: ValidatedEntity) -> Iterator[Finding]:
    """EP-23 to EP-25 for each entry; protocols without rules of their own accept any address."""
    protocol = subject.protocol
    if protocol is None:
        return
    options = subject.options
    for index, entry in enumerate(as_sequence(options.get("endpoints"))):
        if isinstance(entry, dict):
            path = ("protocoloptions", "endpoints", index)
            is_deployed = options.get("deployed") is not False
            check_entry = _check_kafka_entry if protocol == names.KAFKA else _check_entry
            yield from check_entry(subject, protocol, entry, is_deployed, path)


def _check_entry(
    subject: ValidatedEntity, protocol: str, entry: Mapping[str, Any], is_deployed: bool, path: tuple[str | int, ...]
) -> Iterator[Finding]:
    uri = as_text(entry.get("uri"))
    if not uri:
        if "url" in entry:
            yield subject.must("EP-23", 'use "uri" for an address', *path, "url")
        elif is_deployed or uri == "":
            yield subject.must("EP-23", "an address of this protocol needs a uri", *path, "uri")
        return
    address = _parse_address(uri)
    if address is None:
        if not uri.startswith("{"):
            yield subject.must("EP-23", "the uri is not absolute", *path, "uri")
        return
    for rule, reason in _address_errors(protocol, address):
        yield subject.must(rule, reason, *path, "uri")


def _address_errors(protocol: str, address: _Address) -> Iterator[tuple[str, str]]:
    if address.scheme and address.scheme not in _SCHEMES[protocol]:
        yield "EP-24", f"the scheme is not one of {', '.join(_SCHEMES[protocol])}"
    if protocol == names.NATS and not _PORT.match(address.authority):
        yield "EP-24", "an address of NATS needs a port"
    path = unquote(blank_placeholders(address.path)).removeprefix("/")
    if protocol in names.MQTT and path:
        if address.scheme in _PATHLESS_SCHEMES:
            yield "EP-24", f"an address with {address.scheme} has no path"
        elif any(character in path for character in "+#\0"):
            yield "EP-25", "the path is not the name of an MQTT topic"
    if protocol == names.AMQP and (_CONTROL.search(path) or path.startswith("/")):
        yield "EP-25", "the path is not the name of an AMQP node"


def _check_kafka_entry(
    subject: ValidatedEntity, protocol: str, entry: Mapping[str, Any], is_deployed: bool, path: tuple[str | int, ...]
) -> Iterator[Finding]:
    for name in ("uri", "url"):
        if name in entry:
            yield subject.must("EP-23", f"an address of {protocol} has {_SERVERS_OPTION} instead", *path, name)
    if (
        not as_sequence(entry.get(_SERVERS_OPTION))
        and (is_deployed or _SERVERS_OPTION in entry)
        and not {"uri", "url"} & entry.keys()
    ):
        yield subject.must(
            "EP-23",
            f"an address of {protocol} needs {_SERVERS_OPTION} with at least one server",
            *path,
            _SERVERS_OPTION,
        )
    for number, server in enumerate(as_texts(entry.get(_SERVERS_OPTION))):
        if not _SERVER.match(server) and not is_placeholder(server):
            yield subject.must(
                "EP-24",
                "it is not <host>:<port>, nor that after PLAINTEXT://, SSL:// or SASL_SSL://",
                *path,
                _SERVERS_OPTION,
                number,
            )


def _parse_address(uri: str) -> _Address | None:
    match = _URI.match(uri)
    if match is None:
        return None
    scheme, authority, path = match.groups()
    return _Address("" if scheme.startswith("{") else scheme.lower(), authority or "", path)
