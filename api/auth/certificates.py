"""Callers by the certificates of their connections (`ANNALS_TLS_CLIENTS`), whose authority TLS has checked.

Rules ACC-91, ACC-92. Spec: RFC 5280, "Subject Alternative Name"; RFC 4514 for subjects as text; RFC 9440 for
certificates that a proxy names.
"""

from __future__ import annotations

import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
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
            raise InvalidCredential("no entry has the subject or an alternative name of the certificate", "unknown")
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
    return subject.rfc4514_string()


def _parse_key(key: str) -> str:
    from cryptography import x509

    for prefix in _PREFIXES:
        if key.lower().startswith(prefix):
            value = key[len(prefix) :].strip()
            if not value:
                raise ValueError(f'"{key}" has no name after {prefix}')
            return _alternative_name(prefix, value)
    try:
        return subject_text(x509.Name.from_rfc4514_string(key))
    except ValueError:
        raise ValueError(
            f'"{key}" is neither a subject such as CN=ci,O=Example nor a name with dns:, uri: or email:'
        ) from None


def _parse_entry(key: str, entry: Any) -> Identity:
    members = check_members(entry, f'the entry "{key}"', "name", _MEMBERS)
    caller, origin = parse_caller(members["name"], members), "ANNALS_TLS_CLIENTS"
    return Identity(caller, CertificateVerifier.name, origin=origin, reference=key, entry=key)


def _alternative_name(prefix: str, value: str) -> str:
    return prefix + (value.lower() if prefix == "dns:" else value)


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
