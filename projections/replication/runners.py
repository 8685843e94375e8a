"""What runs a link, by the API that it speaks and by who begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from domain.links.link import EVENTS, KAFKA, LOG, MESSAGECATALOG, PULL, PUSH, SCHEMAREGISTRY, XREGISTRY, Link
from projections.replication.hearing import LogEvents
from projections.replication.older.events import OlderEvents
from projections.replication.older.pull import OlderPull
from projections.replication.older.push import OlderPush
from projections.replication.pull import LogPull
from projections.replication.push import LogPush
from projections.replication.runner import Runner, Tools
from projections.replication.standard.pull import StandardPull
from projections.replication.standard.push import StandardPush


def _topic(link: Link, tools: Tools) -> Runner:
    # Kafka's client is loaded by those only who have use for it.
    from projections.replication.topic import TopicPull

    return TopicPull(link, tools)


#: By dialect and mode. A link that is only written to needs nobody who runs it.
RUNNERS: Final[Mapping[tuple[str, str], Callable[[Link, Tools], Runner]]] = {
    (LOG, PULL): LogPull,
    (LOG, EVENTS): LogEvents,
    (LOG, PUSH): LogPush,
    (KAFKA, PULL): _topic,
    (XREGISTRY, PULL): StandardPull,
    (XREGISTRY, PUSH): StandardPush,
    (SCHEMAREGISTRY, PULL): OlderPull,
    (SCHEMAREGISTRY, EVENTS): OlderEvents,
    (SCHEMAREGISTRY, PUSH): OlderPush,
    (MESSAGECATALOG, PULL): OlderPull,
    (MESSAGECATALOG, EVENTS): OlderEvents,
    (MESSAGECATALOG, PUSH): OlderPush,
}
