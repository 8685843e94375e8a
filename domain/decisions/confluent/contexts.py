"""Groups of contexts: they come with their first schema or setting (CSR-306, CSR-307)."""

from __future__ import annotations

from annals.domain.confluent.facts import with_facts
from annals.domain.confluent.subjects import Subject
from annals.domain.decisions.changes.change_set import ChangeSet


def record_context(changes: ChangeSet, xid: str, subject: Subject, context: str) -> None:
    """Creates the Group of a context if it is missing; records the context where the id of the Group is another one."""
    is_new = changes.find(xid) is None
    group = changes.group(xid)
    if is_new and context != subject.context:
        group.confluent = with_facts(group.confluent, context=subject.context[1:])
