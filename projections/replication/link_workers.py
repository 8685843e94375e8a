"""The worker of each kind of link: by dialect, the API it speaks, and by mode, which side begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from annals.domain.replication.link import (
    EVENTS,
    KAFKA,
    LOG,
    MESSAGECATALOG,
    PULL,
    PUSH,
    SCHEMAREGISTRY,
    XREGISTRY,
    Link,
)
from annals.projections.replication.compat.notified_pull import NotifiedLegacyPull
from annals.projections.replication.compat.pull import LegacyPull
from annals.projections.replication.compat.push import LegacyPush
from annals.projections.replication.link_worker import LinkWorker, LinkWorkerContext
from annals.projections.replication.log.log_pull import LogPull
from annals.projections.replication.log.log_push import LogPush
from annals.projections.replication.log.notified_log_pull import NotifiedLogPull
from annals.projections.replication.standard.pull import StandardPull
from annals.projections.replication.standard.push import StandardPush


def _kafka_pull(link: Link, context: LinkWorkerContext) -> LinkWorker:
    # Imported here, so that only links that need Kafka load its client.
    from annals.projections.replication.log.kafka_pull import KafkaPull

    return KafkaPull(link, context)


#: Workers by dialect and mode. A link in the mode `receive` needs no worker.
LINK_WORKERS: Final[Mapping[tuple[str, str], Callable[[Link, LinkWorkerContext], LinkWorker]]] = {
    (LOG, PULL): LogPull,
    (LOG, EVENTS): NotifiedLogPull,
    (LOG, PUSH): LogPush,
    (KAFKA, PULL): _kafka_pull,
    (XREGISTRY, PULL): StandardPull,
    (XREGISTRY, PUSH): StandardPush,
    (SCHEMAREGISTRY, PULL): LegacyPull,
    (SCHEMAREGISTRY, EVENTS): NotifiedLegacyPull,
    (SCHEMAREGISTRY, PUSH): LegacyPush,
    (MESSAGECATALOG, PULL): LegacyPull,
    (MESSAGECATALOG, EVENTS): NotifiedLegacyPull,
    (MESSAGECATALOG, PUSH): LegacyPush,
}
