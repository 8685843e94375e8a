"""A proxy that closes connections to a registry in the middle of responses."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import SplitResult, urlsplit


@contextmanager
def breaking_proxy(url: str, after: Sequence[int]) -> Iterator[str]:
    """The URL of the registry through a proxy. after: bytes of answers that its connections live for, one by one.

    Those beyond the last live for ever.
    """
    place = urlsplit(url)
    lives = iter(after)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=_through, args=(client, place, next(lives, None)), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)


def _through(client: socket.socket, place: SplitResult, life: int | None) -> None:
    with client, socket.create_connection((place.hostname, place.port)) as server:
        asking = threading.Thread(target=_copy, args=(client, server, None), daemon=True)
        asking.start()
        _copy(server, client, life)
        for end in (client, server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        asking.join()


def _copy(source: socket.socket, target: socket.socket, life: int | None) -> None:
    try:
        while (life is None or life > 0) and (piece := source.recv(4096 if life is None else min(life, 4096))):
            target.sendall(piece)
            life = None if life is None else life - len(piece)
    except OSError:
        return
