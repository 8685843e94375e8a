"""The HTTP server that `annals serve` runs."""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Final

import uvicorn
from starlette.applications import Starlette

from annals.api.app import create_app
from annals.api.auth.files.watched_files import WatchedFiles
from annals.api.cli.link_requests import ensure_configured_links
from annals.api.cli.open_registry import open_local_registry
from annals.api.cli.outcome import StoreError, UsageError
from annals.api.cli.setup.notices import print_notice
from annals.api.cli.worker_processes import WorkerProcesses
from annals.api.compat.confluent.own_port import ConfluentPort
from annals.api.http.connections.protocol import BoundedConfig, BoundedProtocol
from annals.api.http.connections.tls import follow_tls, load_tls
from annals.api.ops.version import SERVER_HEADER
from annals.api.settings.exposure import exposure_warnings
from annals.api.settings.settings import Settings, server_url
from annals.api.settings.shown_settings import mask_password
from annals.commands.store.database.write_turns import WriteTurns

#: Seconds that a stopping server waits for requests, and for document checks that requests wait for.
GRACE_SECONDS: Final = 10
CHECK_GRACE_SECONDS: Final = 2
#: Seconds that stopping workers have in all, with their deliveries and links.
_WORKER_GRACE_SECONDS: Final = 60
#: Server ticks (a tenth of a second each) between two checks of slow clients.
_TICKS_OF_CHECK: Final = 5
#: New objects between two runs of the cyclic garbage collector: more than a request or a transaction leaves at its end.
#: Most objects are freed without the collector, which would visit the objects of all requests in progress instead.
_GC_THRESHOLD: Final = 50_000
#: Number of open files besides connections: of the store, of workers, of deliveries.
_SPARE_FILES: Final = 512
#: Number of connections that may wait to be accepted.
BACKLOG: Final = 2048
#: Warning if the server's address differs from the URL in its events.
URL_DIFFERS: Final = (
    "events and stored URLs still name {named}, which this store has recorded, while the server listens at {here};"
    " set ANNALS_PUBLIC_URL to the URL that clients use"
)


#: Why a server does not start that all machines could write to, and the ways out.
NO_AUTHENTICATOR: Final = (
    "--host {host} lets other machines connect, and without an authenticator anybody may write. Set ANNALS_API_KEYS, "
    "ANNALS_TOKENS, ANNALS_JWT_KEYS, ANNALS_BASIC_FILE, ANNALS_TLS_CLIENTS or ANNALS_OIDC_ISSUER, or use "
    "--host 127.0.0.1; --open (ANNALS_OPEN=true) serves all the same."
)


def serve_registry(settings: Settings) -> None:
    """Runs the server of the registry until Ctrl-C or SIGTERM, and creates the store if it does not exist."""
    check_exposure(settings)
    check_tls(settings)
    check_provider(settings)
    listening_socket = bind_socket(settings)
    confluent_socket = bind_socket(settings, settings.confluent_port) if settings.confluent_port is not None else None
    sockets = [listening_socket, *([confluent_socket] if confluent_socket else [])]
    address = server_url(settings, listening_socket.getsockname()[1])
    with open_local_registry(settings, address) as registry:
        _ = (
            registry.definitions
        )  # a damaged store fails here with one line; inside the server it would give a traceback
        stored_url = registry.store.public_url
    ensure_configured_links(settings)
    with _explain_bind_error(settings):
        for each in sockets:
            each.listen(BACKLOG)
    root = settings.public_url or _url_of(listening_socket, settings)
    print_notice(f"Annals serves {root} from {mask_password(settings.database)}", logging.INFO, prefix="")
    if confluent_socket:
        confluent_url = _url_of(confluent_socket, settings)
        print_notice(f"Annals serves Confluent's API at {confluent_url}", logging.INFO, prefix="")
    if stored_url not in (settings.public_url, address):
        print_notice(URL_DIFFERS.format(named=stored_url, here=address))
    if settings.workers == 1:
        run_server(settings, sockets, address)
    else:
        turns = WriteTurns() if settings.database.startswith("sqlite") else None  # PostgreSQL has a queue itself
        serve = partial(run_server, settings, sockets, address, turns)
        WorkerProcesses(settings.workers, serve, _WORKER_GRACE_SECONDS, sockets).run()


def check_exposure(settings: Settings) -> None:
    """Refuses to serve other machines without an authenticator, unless the settings say so (ACC-122).

    Raises: UsageError.
    """
    if not (settings.is_local or settings.auth.has_authenticator or settings.open):
        raise UsageError(NO_AUTHENTICATOR.format(host=settings.host))
    for warning in exposure_warnings(settings):
        print_notice(warning)


def check_tls(settings: Settings) -> None:
    """Checks the files of TLS, and that the settings about them fit together. Raises: UsageError."""
    if settings.tls is None:
        for name in ("tls_key", "tls_client_ca"):
            if getattr(settings, name):
                raise UsageError(f"ANNALS_{name.upper()} needs ANNALS_TLS_CERT.")
    else:
        try:
            load_tls(settings.tls)
        except ValueError as error:
            raise UsageError(f"{error}; see ANNALS_TLS_CERT, ANNALS_TLS_KEY and ANNALS_TLS_CLIENT_CA.") from None
    if settings.tls_clients and not (settings.tls_client_ca or settings.trusted_proxies):
        raise UsageError(
            "ANNALS_TLS_CLIENTS needs ANNALS_TLS_CLIENT_CA, or a proxy in ANNALS_TRUSTED_PROXIES that checks "
            "certificates."
        )


def check_provider(settings: Settings) -> None:
    """Checks that the settings about sign-in at a provider fit together (ACC-50). Raises: UsageError."""
    if settings.oidc_issuer:
        for name, setting in (("OIDC_CLIENT_ID", settings.oidc_client_id), ("PUBLIC_URL", settings.public_url)):
            if not setting:
                raise UsageError(f"ANNALS_OIDC_ISSUER needs ANNALS_{name}.")
        if settings.oidc_cli_client_id == settings.oidc_client_id:
            raise UsageError("ANNALS_OIDC_CLI_CLIENT_ID names another client than ANNALS_OIDC_CLIENT_ID.")
        return
    for name, setting in (
        ("CLIENT_ID", settings.oidc_client_id),
        ("CLIENT_SECRET_FILE", settings.oidc_client_secret_file),
        ("CLI_CLIENT_ID", settings.oidc_cli_client_id),
    ):
        if setting:
            raise UsageError(f"ANNALS_OIDC_{name} needs ANNALS_OIDC_ISSUER.")


def bind_socket(settings: Settings, port: int | None = None) -> socket.socket:
    """A socket that is bound to the address but does not listen yet. port: another one than that of the registry.

    Raises: UsageError if binding fails.
    """
    ipv6 = ":" in settings.host
    bound_socket = socket.socket(socket.AF_INET6 if ipv6 else socket.AF_INET)
    bound_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if ipv6:
        bound_socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    own_port = settings.port if port is None else port
    with _explain_bind_error(settings, own_port, "ANNALS_CONFLUENT_PORT" if port is not None else "--port"):
        bound_socket.bind((settings.host, own_port))
    return bound_socket


@contextmanager
def _explain_bind_error(settings: Settings, port: int | None = None, setting: str = "--port") -> Iterator[None]:
    """Explains why the socket cannot have the address, and what to do. Raises: UsageError."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        shown_port = settings.port if port is None else port
        raise UsageError(f"cannot listen on {settings.host}:{shown_port}: {reason}. Try {setting}.") from None


def _url_of(bound_socket: socket.socket, settings: Settings) -> str:
    host, port, *_ = bound_socket.getsockname()
    return url_of_socket(host, port, "https" if settings.tls else "http")


def url_of_socket(host: str, port: int, scheme: str = "http") -> str:
    """The URL of a server whose socket is bound to an address."""
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def run_server(
    settings: Settings,
    sockets: Sequence[socket.socket],
    address: str,
    write_turns: WriteTurns | None = None,
    lifeline: int | None = None,
) -> None:
    """Runs the server until it stops. Raises: StoreError if it could not start.

    sockets: of the registry, and of Confluent's API if that has a port of its own. write_turns: those of several
    workers. lifeline: a file descriptor; the server also stops when it is at its end.
    """
    app = create_app(settings, delivers=True, address=address, write_turns=write_turns)
    _raise_file_limit(settings.max_connections)
    _, *confluent_sockets = sockets
    ports = [each.getsockname()[1] for each in confluent_sockets]
    tls = settings.tls
    tls_contexts = app.state.periodic_tasks.watch(WatchedFiles(tls.paths, partial(load_tls, tls))) if tls else None
    config = BoundedConfig(
        ConfluentPort(app, ports[0]) if ports else app,
        settings.connection_limits,
        lambda problem, scope: app.state.refuse(problem, scope),
        follow_tls(tls_contexts.current, settings.max_connections) if tls_contexts else None,
        ws="none",
        log_config=None,  # `configure_logs` has done it
        access_log=False,
        headers=[SERVER_HEADER],
        # The settings decide which proxies are trusted; uvicorn must not trust any.
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=settings.keepalive_seconds,
    )
    server = _Server(config, app, lifeline)
    # Objects that exist now live as long as the process, so the cyclic garbage collector need not visit them again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)
    try:
        server.run(sockets=list(sockets))
    except KeyboardInterrupt:  # before the server handles signals, or after
        return
    if not server.started:
        raise StoreError("the registry did not start; the lines above say why.")


def _raise_file_limit(connections: int) -> None:
    """Raises the soft limit of open files, if it is too low for one file per connection."""
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed_files = connections + _SPARE_FILES
    if soft_limit < needed_files and soft_limit != resource.RLIM_INFINITY:
        new_limit = needed_files if hard_limit == resource.RLIM_INFINITY else min(needed_files, hard_limit)
        resource.setrlimit(resource.RLIMIT_NOFILE, (new_limit, hard_limit))


class _Server(uvicorn.Server):
    """A server that, before it waits for open requests, tells the application to end streams and long checks."""

    def __init__(self, config: BoundedConfig, app: Starlette, lifeline: int | None = None) -> None:
        super().__init__(config)
        self._app = app
        self._lifeline = lifeline
        self._last_check = time.monotonic()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stops the server. Otherwise uvicorn would raise the signal again, and the process would end by it."""
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._lifeline is not None:
            asyncio.get_running_loop().add_reader(self._lifeline, self._stop)
        await super().startup(sockets)

    def _stop(self) -> None:
        asyncio.get_running_loop().remove_reader(self._lifeline or 0)
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_OF_CHECK == 0:
            self._check_times()
        return await super().on_tick(counter)

    def _check_times(self) -> None:
        """Closes connections of clients that are too slow. Cost: O(connections)."""
        now = asyncio.get_running_loop().time()
        for connection in list(self.server_state.connections):
            if isinstance(connection, BoundedProtocol):
                connection.check_time(now, self._last_check)
        self._last_check = now

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.stop_following()
        asyncio.get_running_loop().call_later(CHECK_GRACE_SECONDS, self._app.state.stop_checking)
        await super().shutdown(sockets)
        # After a second Ctrl-C, uvicorn leaves out the end of the application, which closes the store.
        if self.force_exit and not self.lifespan.shutdown_event.is_set():
            await self.lifespan.shutdown()
