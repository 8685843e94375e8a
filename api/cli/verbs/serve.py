"""`annals serve`: the registry over HTTP."""

from __future__ import annotations

import asyncio
import gc
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer
import uvicorn
from starlette.applications import Starlette

from api.app import create_app
from api.cli.link_requests import ensure_configured_links
from api.cli.open_registry import open_local_registry
from api.cli.options import Database, PublicUrl, load_settings
from api.cli.outcome import StoreError, UsageError
from api.http.protocol import BoundedConfig, BoundedProtocol
from api.settings.settings import Settings, mask_password, server_url

Host = Annotated[str | None, typer.Option("--host", help="Address to listen on; 0.0.0.0 for all.")]
Port = Annotated[int | None, typer.Option("--port", help="Port to listen on; 0 takes a free one.")]

#: Seconds that a server which ends still waits for requests, and for checks of the documents that they wait for.
GRACE_SECONDS: Final = 10
CHECK_GRACE_SECONDS: Final = 2
#: Tenths of a second between two looks at how long clients take.
_TICKS_OF_CHECK: Final = 5
#: Files that a process has open besides its connections: of the store, of workers, of deliveries.
_OTHER_FILES: Final = 512
#: Connections that wait to be taken.
BACKLOG: Final = 2048
#: What is said where a registry is served at another address than its events name.
URL_DIFFERS: Final = (
    "events and stored URLs go on naming {named}, which this store has recorded, while the server listens at {here};"
    " set ANNALS_PUBLIC_URL to the URL that clients use"
)


def serve(
    host: Host = None,
    port: Port = None,
    database: Database = None,
    public_url: PublicUrl = None,
) -> None:
    """Serve the registry over HTTP until it is stopped with Ctrl-C or SIGTERM.

    A store that does not exist yet is made, with the models of endpoints, messages and schemas.
    """
    settings = load_settings(host=host, port=port, database=database, public_url=public_url)
    listening = bind_socket(settings)
    here = server_url(settings, listening.getsockname()[1])
    with open_local_registry(settings, here) as registry:
        _ = registry.latest  # a store that cannot be read is one line here; from inside the server it would be a trace
        named = registry.store.public_url
    ensure_configured_links(settings)
    with _explain_bind_error(settings):
        listening.listen(BACKLOG)
    root = settings.public_url or url_of_socket(*listening.getsockname()[:2])
    typer.echo(f"Annals serves {root} from {mask_password(settings.database)}", err=True)
    if named not in (settings.public_url, here):
        typer.echo(f"annals: {URL_DIFFERS.format(named=named, here=here)}", err=True)
    run_server(settings, listening, here)


def bind_socket(settings: Settings) -> socket.socket:
    """A socket that has the address and takes no requests yet. Raises: UsageError when the address cannot be had."""
    ipv6 = ":" in settings.host
    found = socket.socket(socket.AF_INET6 if ipv6 else socket.AF_INET)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if ipv6:
        found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    with _explain_bind_error(settings):
        found.bind((settings.host, settings.port))
    return found


@contextmanager
def _explain_bind_error(settings: Settings) -> Iterator[None]:
    """Says of a socket that cannot have the address what to do. Raises: UsageError."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(f"cannot listen on {settings.host}:{settings.port}: {reason}. Try --port.") from None


def url_of_socket(host: str, port: int) -> str:
    """The URL at which a socket bound to an address takes requests."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run_server(settings: Settings, listening: socket.socket, here: str) -> None:
    """Runs the server to its end. here: its address. Raises: StoreError when it could not start."""
    app = create_app(settings, delivers=True, address=here)
    _allow_files(settings.max_connections)
    config = BoundedConfig(
        app,
        settings.connection_limits,
        lambda problem, scope: app.state.refuse(problem, scope),
        loop="uvloop",
        ws="none",
        log_level=settings.log_level,
        access_log=False,
        server_header=False,
        # Forwarded headers are believed as the settings say, and by nobody else.
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=settings.keepalive_seconds,
    )
    server = _Server(config, app)
    # What is there now stays for ever, so the collector of cycles need not walk through it for each large answer.
    gc.collect()
    gc.freeze()
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        return
    if not server.started:
        raise StoreError("the registry did not start; the lines above say why.")


def _allow_files(connections: int) -> None:
    """Lets the process have a file for each connection, where the system's soft limit is below that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    if soft < wanted and soft != resource.RLIM_INFINITY:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class _Server(uvicorn.Server):
    """A server that tells its application that it ends before it waits for those who would stay for ever, or long."""

    def __init__(self, config: BoundedConfig, app: Starlette) -> None:
        super().__init__(config)
        self._app = app
        self._checked = time.monotonic()

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_OF_CHECK == 0:
            self._check_times()
        return await super().on_tick(counter)

    def _check_times(self) -> None:
        """Ends connections whose clients take too long. Cost: O(connections)."""
        now = asyncio.get_running_loop().time()
        for connection in list(self.server_state.connections):
            if isinstance(connection, BoundedProtocol):
                connection.check_time(now, self._checked)
        self._checked = now

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.stop_following()
        asyncio.get_running_loop().call_later(CHECK_GRACE_SECONDS, self._app.state.stop_checking)
        await super().shutdown(sockets)
