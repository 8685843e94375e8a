"""Callers by the certificates of their connections (`ANNALS_TLS_CLIENTS`), whose authority TLS has checked.

Rules ACC-91, ACC-92. Spec: RFC 5280, "Subject Alternative Name"; RFC 4514 for subjects as text; RFC 9440 for
certificates that a proxy names.
"""

from __future__ import annotations

import json
import re
import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from annals.api.auth import json_settings
from annals.api.auth.caller_entries import check_members, parse_caller, parse_object
from annals.api.auth.credentials import EXPIRED, InvalidCredential, RequestCredential, Scheme
from annals.api.auth.identity import Identity

if TYPE_CHECKING:
    from cryptography import x509

#: What an entry that names an alternative name of the subject begins with.
_PREFIXES: Final = ("dns:", "uri:", "email:")
_MEMBERS: Final = frozenset(("name", "role", "groups"))
#: Names of a refused certificate in a message, and characters of each.
_MAX_SHOWN: Final = 5
_MAX_SHOWN_LENGTH: Final = 150
#: The names of attributes in RFC 4514, section 3; the library knows them.
_SHORT_NAMES: Final = frozenset(("CN", "L", "ST", "O", "OU", "C", "STREET", "DC", "UID"))
#: An escaped character, or what precedes the value of an attribute, with the spaces that OpenSSL prints.
_ATTRIBUTE: Final = re.compile(r"(\\.)|(\A|\s*[,+])\s*([A-Za-z][A-Za-z0-9-]*|[0-9][0-9.]*)\s*=\s*", re.DOTALL)
#: The scheme, the name of the user and the host of a URI.
_URI_START: Final = re.compile(r"([^:/?#]+:)(?:(//)([^/?#]*@)?([^/?#]*))?")

#: Callers by a subject in the form of `subject_text`, or by an alternative name with its prefix.
ClientEntries = Mapping[str, Identity]


class CertificateNames(NamedTuple):
    """What a certificate says. names: its subject, then its alternative names. begins, ends: seconds since 1970."""

    names: tuple[str, ...]
    begins: float
    ends: float


class CertificateVerifier:
    """The callers of a file. entries: returns its current content."""

    name: Final = "certificate"
    schemes = frozenset((Scheme.CERTIFICATE,))

    def __init__(self, entries: Callable[[], ClientEntries]) -> None:
        self._entries = entries

    async def identify(self, credential: RequestCredential) -> Identity | None:
        """See `CredentialVerifier`. A connection can outlive its certificate, whose times are checked again."""
        if credential.scheme is not Scheme.CERTIFICATE:
            return None
        certificate = read_certificate(credential.secret)
        if not certificate.begins <= time.time() < certificate.ends:
            raise InvalidCredential("the certificate has expired, or is not valid yet", EXPIRED)
        entries = self._entries()
        found = next((entries[name] for name in certificate.names if name in entries), None)
        if found is None:
            shown_names = _shown_names(certificate.names)
            raise InvalidCredential(
                f"no entry has the subject or an alternative name of the certificate: {shown_names}", "unknown"
            )
        return replace(found, expires=certificate.ends)

    def listed(self) -> list[Identity]:
        """See `CredentialVerifier`."""
        return list(self._entries().values())


@lru_cache(maxsize=1024)
def read_certificate(text: str) -> CertificateNames:
    """What a certificate says. text: base64 of its DER. Raises: InvalidCredential."""
    from cryptography import x509  # late, because most servers know no certificates of clients

    try:
        certificate = x509.load_der_x509_certificate(b64decode(text, validate=True))
        names = (subject_text(certificate.subject), *_alternative_names(certificate))
        ends, begins = certificate.not_valid_after_utc.timestamp(), certificate.not_valid_before_utc.timestamp()
    except Exception as error:  # the library has many errors for bytes that are no certificate
        raise InvalidCredential(f"the certificate cannot be read: {type(error).__name__}", "malformed") from None
    return CertificateNames(names, begins, ends)


def parse_clients(path: str) -> dict[str, Identity]:
    """The callers of a file. It has a JSON object: `{SUBJECT: {"name", "role", "groups"}}`. Raises: ValueError.

    A subject is written as in RFC 4514 (`CN=ci,O=Example`); an alternative name as `dns:`, `uri:` or `email:` with it.
    """
    entries = parse_object(json_settings.read_file(path), "subjects")
    parsed = [(_parse_key(key), _parse_entry(key, entry)) for key, entry in entries.items()]
    if len(dict(parsed)) < len(parsed):
        raise ValueError("two entries have the same subject")
    return dict(parsed)


def subject_text(subject: x509.Name) -> str:
    """A subject as text; equal for subjects that differ only in how they are written."""
    # The attributes of one part of a name are a set (RFC 5280, "Issuer"); the parts are a sequence.
    parts = ("+".join(sorted(attribute.rfc4514_string() for attribute in part)) for part in reversed(subject.rdns))
    return ",".join(parts)


def _shown_names(names: Sequence[str]) -> str:
    """Names of a certificate as JSON, as the file of callers would have them, for logs and the console."""
    shown_names = [_shown_name(name) for name in names[:_MAX_SHOWN] if name]
    hidden = len(names) - _MAX_SHOWN
    return ", ".join([*shown_names, f"and {hidden} more"] if hidden > 0 else shown_names) or "it has none"


def _shown_name(name: str) -> str:
    shortened = name if len(name) <= _MAX_SHOWN_LENGTH else f"{name[:_MAX_SHOWN_LENGTH]}..."
    return json.dumps(shortened, ensure_ascii=not shortened.isprintable()).replace("\x7f", "\\u007f")


def _parse_key(key: str) -> str:
    for prefix in _PREFIXES:
        if key.lower().startswith(prefix):
            value = key[len(prefix) :].strip()
            if not value:
                raise ValueError(f'"{key}" has no name after {prefix}')
            return _alternative_name(prefix, value)
    return _parse_subject(key)


def _parse_subject(key: str) -> str:
    from cryptography import x509

    for attribute in _ATTRIBUTE.finditer(key):
        if (name := attribute[3]) and not name[0].isdecimal() and name.upper() not in {*_SHORT_NAMES, *_long_names()}:
            raise ValueError(f'"{key}" has the unknown attribute {name}; write its OID instead, as in 2.5.4.5=1234')
    canonical = _ATTRIBUTE.sub(lambda match: match[1] or f"{match[2].strip()}{match[3].upper()}=", key)
    try:
        return subject_text(x509.Name.from_rfc4514_string(canonical, _long_names()))
    except ValueError:
        raise ValueError(
            f'"{key}" is neither a subject such as CN=ci,O=Example nor a name with dns:, uri: or email:'
        ) from None


@cache
def _long_names() -> dict[str, x509.ObjectIdentifier]:
    """Attributes by their names in X.520 and RFC 2985, in upper case, such as SERIALNUMBER and EMAILADDRESS."""
    from cryptography.x509.oid import NameOID, ObjectIdentifier

    names = vars(NameOID).items()
    return {name.replace("_", ""): oid for name, oid in names if isinstance(oid, ObjectIdentifier)}


def _parse_entry(key: str, entry: Any) -> Identity:
    members = check_members(entry, f'the entry "{key}"', "name", _MEMBERS)
    caller, origin = parse_caller(members["name"], members), "ANNALS_TLS_CLIENTS"
    return Identity(caller, CertificateVerifier.name, origin=origin, reference=key, entry=key)


def _alternative_name(prefix: str, value: str) -> str:
    """A name with its prefix; equal for names that RFC 5280 calls equal ("Internationalized Names")."""
    if prefix == "dns:":
        value = value.lower()
    elif prefix == "email:":
        local_part, at, host = value.rpartition("@")
        value = local_part + at + host.lower()
    elif start := _URI_START.match(value):
        scheme, slashes, user, host = start.groups(default="")
        value = scheme.lower() + slashes + user + host.lower() + value[start.end() :]
    return prefix + value


def _alternative_names(certificate: x509.Certificate) -> Iterator[str]:
    from cryptography import x509

    kinds = dict(zip((x509.DNSName, x509.UniformResourceIdentifier, x509.RFC822Name), _PREFIXES, strict=True))
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return
    for name in names:
        if (prefix := kinds.get(type(name))) is not None:
            yield _alternative_name(prefix, str(name.value))
