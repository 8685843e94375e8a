"""The worker of each kind of link: by dialect, the API it speaks, and by mode, which side begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from domain.replication.link import EVENTS, KAFKA, LOG, MESSAGECATALOG, PULL, PUSH, SCHEMAREGISTRY, XREGISTRY, Link
from projections.replication.compat.notified_pull import NotifiedLegacyPull
from projections.replication.compat.pull import LegacyPull
from projections.replication.compat.push import LegacyPush
from projections.replication.link_worker import LinkWorker, LinkWorkerContext
from projections.replication.log.log_pull import LogPull
from projections.replication.log.log_push import LogPush
from projections.replication.log.notified_log_pull import NotifiedLogPull
from projections.replication.standard.pull import StandardPull
from projections.replication.standard.push import StandardPush


def _kafka_pull(link: Link, context: LinkWorkerContext) -> LinkWorker:
    # Imported here, so that only links that need Kafka load its client.
    from projections.replication.log.kafka_pull import KafkaPull

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
