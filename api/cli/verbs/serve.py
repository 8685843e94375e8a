"""`annals serve`: runs the HTTP server of the registry."""

from __future__ import annotations

from typing import Annotated

import typer

from annals.api.cli.options import Database, PublicUrl, load_settings

Host = Annotated[str | None, typer.Option("--host", help="Address to listen on; 0.0.0.0 for all.")]
Port = Annotated[int | None, typer.Option("--port", help="Port to listen on; 0 selects a free one.")]
Open = Annotated[
    bool | None, typer.Option("--open", help="Serve beyond this machine without any authenticator: anybody may write.")
]
ReadOnlyAnonymous = Annotated[
    bool | None, typer.Option("--read-only-anonymous", help="Callers without a credential may read, and only read.")
]
Workers = Annotated[int | None, typer.Option("--workers", help="Number of processes that serve, all on one port.")]


def serve(
    host: Host = None,
    port: Port = None,
    database: Database = None,
    public_url: PublicUrl = None,
    workers: Workers = None,
    open: Open = None,
    read_only_anonymous: ReadOnlyAnonymous = None,
) -> None:
    """Serve the registry over HTTP until Ctrl-C or SIGTERM.

    If the store does not exist, the server creates it, with the models of endpoints, messages and schemas.
    """
    from annals.api.cli.server import serve_registry  # late, because help and wrong usage do not need a server

    flags = {"host": host, "port": port, "database": database, "public_url": public_url, "workers": workers}
    serve_registry(load_settings(**flags, open=open, read_only_anonymous=read_only_anonymous))
