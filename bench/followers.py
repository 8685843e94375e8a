"""Readers that follow the log of a registry as replicas do, and keep nothing: `python -m bench.followers URL N AFTER`.

One light process with plain sockets, because replicas on the same processors would be what is measured. A line on
stdout says that all are answered; it ends when it is killed. The token of the caller is in the environment.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
from typing import Final
from urllib.parse import urlsplit

TOKEN: Final = "FOLLOWERS_TOKEN"


def main() -> None:
    url, count, after = sys.argv[1:]
    parts = urlsplit(url)
    request = (
        f"GET /-/log?documents&after={after} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: text/event-stream\r\n"
        f"Authorization: Bearer {os.environ[TOKEN]}\r\n\r\n"
    )
    buffer, waiting = bytearray(1 << 16), int(count)
    with selectors.DefaultSelector() as selector:
        for _ in range(waiting):
            connection = socket.create_connection((parts.hostname or "", parts.port or 80))
            connection.sendall(request.encode())
            if not connection.recv(1 << 16).startswith(b"HTTP/1.1 200"):
                raise RuntimeError("the log is not to be read")
            selector.register(connection, selectors.EVENT_READ)
        print("following", flush=True)
        while True:
            for key, _ in selector.select():
                assert isinstance(key.fileobj, socket.socket)
                if not key.fileobj.recv_into(buffer):
                    raise RuntimeError("the registry closed a connection")


if __name__ == "__main__":
    main()
