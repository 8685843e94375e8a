"""The progress of a push link, measured against this registry's own log."""

from __future__ import annotations

from dataclasses import replace

from annals.projections.log.reader import Log
from annals.projections.replication.link_state import LinkProgress


def outbound_progress(progress: LinkProgress, log: Log) -> LinkProgress:
    """The progress of a push link, with the current end of this registry's log as its `head`.

    The link's thread cannot keep the head current: it waits while the other registry does not answer, and the log grows
    meanwhile. `taken` is the time of the last interaction that the other registry has confirmed.
    """
    head = log.head()
    facts = {**progress.status, "head": {"position": head.last, "time": head.time}}
    if progress.cursor:
        facts["taken"] = log.interaction_at(progress.cursor).time
    return replace(progress, status=facts)
