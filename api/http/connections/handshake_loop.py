"""The event loop of the HTTP server, with a limit on the time of a TLS handshake."""

from __future__ import annotations

from typing import Any

import uvloop


class HandshakeLoop(uvloop.Loop):
    """Its servers close connections whose TLS handshake takes too long. handshake_seconds: the limit."""

    handshake_seconds: float

    async def create_server(self, *arguments: Any, **options: Any) -> Any:
        """See `asyncio.loop.create_server`. uvicorn passes no limit, and that of the loop is a minute."""
        if options.get("ssl") is not None:
            options["ssl_handshake_timeout"] = self.handshake_seconds
        return await super().create_server(*arguments, **options)
