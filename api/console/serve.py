"""`annals serve`: the registry over HTTP."""

from __future__ import annotations

import asyncio
import gc
import socket
from typing import Annotated, Final

import typer
import uvicorn
from starlette.applications import Starlette

from api.app import create_app
from api.console.linking import ensure_links
from api.console.opening import opened
from api.console.options import Database, PublicUrl, settings_with
from api.console.outcome import Misused, StoreFault
from api.settings import Settings, hidden

Host = Annotated[str | None, typer.Option("--host", help="Address to listen on; 0.0.0.0 for all.")]
Port = Annotated[int | None, typer.Option("--port", help="Port to listen on; 0 takes a free one.")]

#: Seconds that a server which ends still waits for requests, and for checks of the documents that they wait for.
GRACE: Final = 10
GRACE_OF_CHECKS: Final = 2


def serve(
    host: Host = None,
    port: Port = None,
    database: Database = None,
    public_url: PublicUrl = None,
) -> None:
    """Serve the registry over HTTP until it is stopped with Ctrl-C or SIGTERM.

    A store that does not exist yet is made, with the models of endpoints, messages and schemas.
    """
    settings = settings_with(host=host, port=port, database=database, public_url=public_url)
    with opened(settings):
        pass  # a store that cannot be opened is one line here; from inside the server it would be a trace
    ensure_links(settings)
    listening = listen(settings)
    root = settings.public_url or address(*listening.getsockname()[:2])
    typer.echo(f"Annals serves {root} from {hidden(settings.database)}", err=True)
    run(settings, listening)


def listen(settings: Settings) -> socket.socket:
    """A socket bound to the address. Raises: Misused when the address cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        reason = error.strerror or error
        raise Misused(f"cannot listen on {settings.host}:{settings.port}: {reason}. Try --port.") from None


def address(host: str, port: int) -> str:
    """The URL at which a socket bound to an address takes requests."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(settings: Settings, listening: socket.socket) -> None:
    """Runs the server to its end. Raises: StoreFault when it could not start."""
    app = create_app(settings, delivers=True)
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http="httptools",
        log_level=settings.log_level,
        access_log=False,
        server_header=False,
        # Forwarded headers are believed as the settings say, and by nobody else.
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE,
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
        raise StoreFault("the registry did not start; the lines above say why.")


class _Server(uvicorn.Server):
    """A server that tells its application that it ends before it waits for those who would stay for ever, or long."""

    def __init__(self, config: uvicorn.Config, app: Starlette) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.stop_following()
        asyncio.get_running_loop().call_later(GRACE_OF_CHECKS, self._app.state.stop_checking)
        await super().shutdown(sockets)
