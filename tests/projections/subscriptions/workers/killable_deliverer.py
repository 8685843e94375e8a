"""A process that delivers over HTTP, to be killed.

python -m tests.projections.subscriptions.workers.killable_deliverer URL LEASE
"""

from __future__ import annotations

import sys
import threading

from annals.projections.outgoing.destination_guard import DestinationGuard
from annals.projections.subscriptions.ports import DeliveryPorts
from annals.projections.subscriptions.service import DeliveryService
from annals.projections.subscriptions.sinks.http import sink as _http


def main(url: str, lease: str) -> None:
    assert _http
    service = DeliveryService(
        url,
        DeliveryPorts(resolver=DestinationGuard(allow_list="127.0.0.1", allows_plaintext=True), policy="off"),
        lease_seconds=float(lease),
    )
    service.start()
    print("started", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
