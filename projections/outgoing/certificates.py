"""Whose certificates are believed: those that the machine believes, and those of an authority of the operator's own.

Rule SUB-906: there is no way not to verify.
"""

from __future__ import annotations

import os
import ssl
from functools import lru_cache
from typing import Protocol, runtime_checkable

import certifi


@runtime_checkable
class TrustStore(Protocol):
    """A resolver that also knows whom to believe."""

    @property
    def ca(self) -> str:
        """The path of a PEM file with further authorities; empty for none."""


def client_tls_context(resolver: object) -> ssl.SSLContext:
    """What connections to the addresses that a resolver gives are secured with. Raises: OSError."""
    ca = resolver.ca if isinstance(resolver, TrustStore) else ""
    return _context(ca, os.environ.get("SSL_CERT_FILE", ""))


@lru_cache(maxsize=8)
def _context(ca: str, machine: str) -> ssl.SSLContext:
    """For clients. machine: where OpenSSL is told to look for the machine's authorities; it reads that by itself."""
    made = ssl.create_default_context()
    if not made.cert_store_stats()["x509_ca"]:  # a slim machine may have none
        made.load_verify_locations(certifi.where())
    if ca:
        made.load_verify_locations(ca)
    return made
