"""The response to a request that a stopping server no longer waits for."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.support.registries.in_process import Api


def test_requests_during_shutdown_get_503(api: Api) -> None:
    # ERR-8: a problem in the usual form, which says that the server is stopping
    sent: list[dict[str, Any]] = []
    receiving = asyncio.Event()

    async def receive() -> dict[str, Any]:
        receiving.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    async def send(message: Any) -> None:
        sent.append(dict(message))

    async def stopped() -> None:
        scope = {"type": "http", "method": "PUT", "path": "/dirs/d", "raw_path": b"/dirs/d", "query_string": b""}
        scope |= {"headers": [(b"host", b"h"), (b"content-length", b"2")], "scheme": "http", "client": ("h", 1)}
        request = asyncio.create_task(api.app({**scope, "server": ("h", 80), "root_path": ""}, receive, send))
        await receiving.wait()
        request.cancel()
        await request

    api.runner.run(stopped())
    assert sent[0]["status"] == 503
    assert (b"retry-after", b"1") in sent[0]["headers"]
    problem = json.loads(sent[1]["body"])
    assert problem["type"].endswith("#server_busy")
    assert "is stopping" in problem["detail"]
