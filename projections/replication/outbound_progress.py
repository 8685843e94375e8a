"""How far a link that writes to another registry is, measured against this registry's own log."""

from __future__ import annotations

from dataclasses import replace

from projections.log.reader import Log
from projections.replication.link_state import LinkProgress


def outbound_progress(progress: LinkProgress, log: Log) -> LinkProgress:
    """The progress of a push with the end of the own log as its `head`, read now.

    The link's thread cannot keep the head up to date: it waits while the other registry does not answer, and the log
    goes on meanwhile. `taken` is the time of the last interaction that the other registry has confirmed.
    """
    head = log.head()
    facts = {**progress.facts, "head": {"position": head.last, "time": head.time}}
    if progress.cursor:
        facts["taken"] = log.ended(progress.cursor).time
    return replace(progress, facts=facts)
