"""The bytes that a sink may send, which grow with messages and with time."""

from __future__ import annotations

from itertools import count

import pytest

from annals.projections.subscriptions.transport.receive_limit import MAX_BYTES, ReceiveLimit

HEARTBEAT = bytes(64)


def test_heartbeats_do_not_use_it_up() -> None:
    # SUB-823: an idle connection stays open, however long, and the sink may not send more at once than at its start
    limit = ReceiveLimit(count(step=60).__next__)
    for _ in range(10 * MAX_BYTES // len(HEARTBEAT)):
        limit.count(HEARTBEAT)
    limit.count(bytes(MAX_BYTES))
    with pytest.raises(ConnectionError):
        limit.count(bytes(1 << 10))
