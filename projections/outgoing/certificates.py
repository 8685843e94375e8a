"""The trusted certificates: those that the machine trusts, and those of the operator's own authority.

Rule SUB-906: verification cannot be switched off.
"""

from __future__ import annotations

import os
import ssl
from functools import lru_cache
from typing import Protocol, runtime_checkable

import certifi


@runtime_checkable
class TrustStore(Protocol):
    """A resolver that also knows which authorities to trust."""

    @property
    def ca(self) -> str:
        """The path of a PEM file with further authorities; empty for none."""


def client_tls_context(resolver: object) -> ssl.SSLContext:
    """The TLS context for connections to a resolver's addresses. Raises: OSError."""
    return tls_context(resolver.ca if isinstance(resolver, TrustStore) else "")


def tls_context(ca_file: str) -> ssl.SSLContext:
    """The TLS context for connections. ca_file: path of a PEM file with further authorities; empty for none.

    Raises: OSError.
    """
    return _create_context(ca_file, os.environ.get("SSL_CERT_FILE", ""))


@lru_cache(maxsize=8)
def _create_context(ca_file: str, system_ca_file: str) -> ssl.SSLContext:
    """A client context.

    system_ca_file: the path of the machine's authorities; OpenSSL reads it itself, so it only keys the cache.
    """
    context = ssl.create_default_context()
    if not context.cert_store_stats()["x509_ca"]:  # a slim machine may have none
        context.load_verify_locations(certifi.where())
    if ca_file:
        context.load_verify_locations(ca_file)
    return context
