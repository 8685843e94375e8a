"""TLS of the server: its certificate, and the authority of its clients' certificates (ACC-90, ACC-91)."""

from __future__ import annotations

import asyncio
import logging
import ssl
from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from weakref import WeakSet

from annals.api.http.access_log.rate_by_reason import RateByReason

#: The member of the state of a connection that has the certificate of its client, as base64 of its DER.
CLIENT_CERTIFICATE: Final = "client_certificate"
#: Connections beyond the limit that may be in their handshake. After it, those get an answer that says why they end.
_MORE_HANDSHAKES: Final = 128
_TOO_MANY: Final = "too many connections are open or in their handshake, see ANNALS_MAX_CONNECTIONS"
_LOG: Final = logging.getLogger("annals.denials")
_LINES: Final = RateByReason()


class TlsFiles(NamedTuple):
    """Paths of PEM files. key: None if the file of the certificate has it. client_authority: None to ask no client."""

    certificate: str
    key: str | None = None
    client_authority: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(path for path in self if path is not None)


def load_tls(files: TlsFiles) -> ssl.SSLContext:
    """The context of a server with these files. Raises: ValueError, which names the file and what is wrong."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslobject_class = _LoggedConnection
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(files.certificate, files.key, password=_no_password)
    except OSError as error:  # errors of OpenSSL are OSErrors too
        raise ValueError(_certificate_error(files, error)) from None
    if files.client_authority is not None:
        try:
            context.load_verify_locations(files.client_authority)
        except OSError as error:
            reason = error.strerror or error
            raise ValueError(f"{files.client_authority} is not a PEM file with certificates: {reason}") from None
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def follow_tls(current: Callable[[], ssl.SSLContext], max_connections: int) -> ssl.SSLContext:
    """A context whose connections use the current one, as a server keeps its context for good.

    max_connections: of those that have completed their handshake. A few more may be in theirs.
    """
    context = _CurrentContext(ssl.PROTOCOL_TLS_SERVER)
    context.current = current
    context.max_open = max_connections + _MORE_HANDSHAKES
    context.open = WeakSet()
    return context


class _CurrentContext(ssl.SSLContext):
    """What `follow_tls` returns: it limits how many connections are open, and gives each the current context.

    A new context has no sessions of the old one, so a client cannot skip the check by a new authority.
    """

    current: Callable[[], ssl.SSLContext]
    max_open: int
    open: WeakSet[ssl.SSLObject]

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        """The TLS of one connection; event loops call it, and close the connection if it fails.

        Raises: ConnectionAbortedError when too many clients are connected, most of whom have not begun to speak.
        """
        if len(self.open) >= self.max_open:
            _log_failure(_TOO_MANY)
            raise ConnectionAbortedError(_TOO_MANY)
        connection = self.current().wrap_bio(*arguments, **options)
        self.open.add(connection)
        return connection


class _LoggedConnection(ssl.SSLObject):
    """The TLS of one connection, whose failed handshake is logged, because the client gets no reason."""

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            reason = getattr(error, "verify_message", None) or (error.reason or "unknown")
            _log_failure(reason.lower().replace("_", " "))
            raise


def _log_failure(reason: str) -> None:
    """Logs a handshake that fails: the client gets no reason, and the event loop logs nothing."""
    left_out = _LINES.admit(reason)
    if left_out is not None:
        _LOG.warning("a TLS handshake failed: %s", reason, extra={"left_out": left_out} if left_out else {})


def client_certificate(transport: asyncio.BaseTransport) -> str | None:
    """The certificate that the client of a connection has sent, as base64 of its DER; None without one."""
    connection = transport.get_extra_info("ssl_object")
    certificate = connection.getpeercert(binary_form=True) if connection is not None else None
    return b64encode(certificate).decode() if certificate else None


def _certificate_error(files: TlsFiles, error: OSError) -> str:
    key = files.key or files.certificate
    if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
        return f"the key in {key} does not fit the certificate in {files.certificate}"
    if isinstance(error, ssl.SSLError):
        return (
            f"{files.certificate} and {key} are not PEM files with a certificate and its key: {error.reason or error}"
        )
    return f"{files.certificate} or {key} cannot be read: {error.strerror}"


def _no_password() -> str:
    raise ValueError("a key with a password cannot be used; store it without one")
