"""Authorization of endpoints: it describes how clients get credentials, and never contains credentials.

Spec: endpoint 1.0-rc4, "protocoloptions.authorization". Rules EP-27, EP-28.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from annals.domain.messaging.findings.finding import Finding, ValidatedEntity
from annals.domain.messaging.findings.placeholders import is_placeholder
from annals.domain.messaging.findings.unchecked_values import AttributePath, as_sequence

_DESCRIPTION_MEMBERS: Final = ("type", "mechanism", "resourceuri", "authorityuri")
#: Names of credentials, in lower case without separators; any prefix up to the last dot is ignored.
_SECRET_NAMES: Final = frozenset(
    (
        *("password", "passwd", "passphrase", "secret", "clientsecret", "secretkey", "sharedsecret"),
        *("token", "accesstoken", "refreshtoken", "bearertoken", "authtoken", "sastoken"),
        *("apikey", "xapikey", "accesskey", "secretaccesskey", "sharedaccesskey", "privatekey", "connectionstring"),
    )
)
#: The names of headers that contain nothing but credentials.
_SECRET_HEADERS: Final = _SECRET_NAMES | {"authorization", "proxyauthorization"}
_SEPARATORS: Final = re.compile(r"[-_\s]")
_END_OF_AUTHORITY: Final = re.compile(r"[/?#\s]")


def authorization_is_described(subject: ValidatedEntity) -> Iterator[Finding]:
    """EP-27: descriptions of an authorization are not empty, and only SASL has mechanisms."""
    for index, entry in enumerate(as_sequence(subject.options.get("authorization"))):
        if not isinstance(entry, dict):
            continue
        path = ("protocoloptions", "authorization", index)
        for name in _DESCRIPTION_MEMBERS:
            if entry.get(name) == "":
                yield subject.must("EP-27", "it is empty", *path, name)
        if "mechanism" in entry and entry.get("type") != "SASL":
            yield subject.must("EP-27", 'only the type "SASL" has a mechanism', *path, "mechanism")


def options_have_no_secrets(subject: ValidatedEntity) -> Iterator[Finding]:
    """EP-28: no credentials anywhere in the options; a placeholder for a client's credential is allowed."""
    for path in _find_secrets(subject.attributes.get("protocoloptions"), ("protocoloptions",)):
        yield subject.must("EP-28", "credentials do not belong in a registry", *path)


def _find_secrets(value: Any, path: AttributePath) -> Iterator[AttributePath]:
    if isinstance(value, dict):
        name = value.get("name")
        for key, item in value.items():
            is_header_row = key == "value" and isinstance(name, str) and _fold_name(name) in _SECRET_HEADERS
            if (
                is_header_row
                or _fold_name(key) in _SECRET_NAMES
                or (path[-1] == "headers" and _fold_name(key) in _SECRET_HEADERS)
            ) and _is_value(item):
                yield (*path, key)
            else:
                yield from _find_secrets(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _find_secrets(item, (*path, index))
    elif isinstance(value, str) and _has_userinfo(value):
        yield path


def _fold_name(name: str) -> str:
    return _SEPARATORS.sub("", name.rpartition(".")[2]).lower()


def _is_value(value: Any) -> bool:
    return isinstance(value, str) and value != "" and not is_placeholder(value)


def _has_userinfo(value: str) -> bool:
    """Whether a URI in a text names a user with a password."""
    for after_scheme in value.split("://")[1:]:
        user, separator, _ = _END_OF_AUTHORITY.split(after_scheme, maxsplit=1)[0].rpartition("@")
        password = user.partition(":")[2]
        if separator and password and not is_placeholder(password):
            return True
    return False
