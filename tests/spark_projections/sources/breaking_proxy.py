"""A proxy that closes connections to a registry in the middle of responses."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import SplitResult, urlsplit


@contextmanager
def breaking_proxy(url: str, after: Sequence[int]) -> Iterator[str]:
    """The URL of the proxy. after: for each connection, the number of response bytes after which it is closed.

    Further connections are not closed.
    """
    address = urlsplit(url)
    limits = iter(after)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=_through, args=(client, address, next(limits, None)), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)


def _through(client: socket.socket, address: SplitResult, limit: int | None) -> None:
    with client, socket.create_connection((address.hostname, address.port)) as server:
        requests = threading.Thread(target=_copy, args=(client, server, None), daemon=True)
        requests.start()
        _copy(server, client, limit)
        for end in (client, server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        requests.join()


def _copy(source: socket.socket, target: socket.socket, limit: int | None) -> None:
    try:
        while (limit is None or limit > 0) and (piece := source.recv(4096 if limit is None else min(limit, 4096))):
            target.sendall(piece)
            limit = None if limit is None else limit - len(piece)
    except OSError:
        return
