"""`annals publish`: publishes the log, its events and the changes of entities on Kafka topics."""

from __future__ import annotations

import re
from contextlib import closing
from threading import Event
from typing import Annotated, Final, Literal

import typer
from kafka import errors

from annals.api.cli.kafka_settings import kafka_cluster
from annals.api.cli.options import MAX_COUNT, Database, load_settings
from annals.api.cli.outcome import InvalidInput, StoreError, UsageError
from annals.api.cli.progress import work_progress
from annals.api.cli.setup.notices import print_notice
from annals.api.cli.stop_signals import stop_event
from annals.api.cli.verbs.log import open_store
from annals.projections.compat.families import all_event_families
from annals.projections.kafka.log_agreement import TopicsDiverged
from annals.projections.kafka.producer import RecordRefused
from annals.projections.kafka.publisher import AnotherPublisher, Publisher
from annals.projections.kafka.topic_position import TopicPositions
from annals.projections.kafka.topics import DEFAULT_TOPICS, TOPICS, topic_contents
from annals.projections.kafka.windows import WindowReader
from annals.projections.subscriptions.contract import DeliveryResult
from annals.projections.subscriptions.sinks.kafka.outcomes import error_outcome

Brokers = Annotated[
    str, typer.Option("--kafka", metavar="HOST:PORT,...", help="Bootstrap servers; prefix them with SSL:// for TLS.")
]
Prefix = Annotated[str, typer.Option("--prefix", help="Prefix of the topic names.")]
Once = Annotated[bool, typer.Option("--once", help="Stop at the end of the log instead of following it.")]
Mode = Annotated[Literal["structured", "binary"], typer.Option("--contentmode", help="How events become records.")]
Partitions = Annotated[
    int | None,
    typer.Option(
        "--partitions", min=1, max=MAX_COUNT, help="Number of partitions of new topics; default: of the brokers."
    ),
]
Topics = Annotated[
    str,
    typer.Option("--topics", metavar="NAME,...", help=f"What to publish: {', '.join(TOPICS)}."),
]
Schemas = Annotated[
    bool, typer.Option("--schemas/--no-schemas", help="Include schemas in the keys and values of entities.")
]
Documents = Annotated[bool, typer.Option("--documents", help="Include documents, in headers of the log's records.")]

_DEFAULT_TOPICS: Final = ",".join(DEFAULT_TOPICS)
_TOPIC_PREFIX: Final = re.compile(r"[A-Za-z0-9._-]{1,200}\Z")


def publish(
    brokers: Brokers,
    prefix: Prefix = "annals",
    topics: Topics = _DEFAULT_TOPICS,
    once: Once = False,
    contentmode: Mode = "structured",
    partitions: Partitions = None,
    documents: Documents = False,
    schemas: Schemas = True,
    database: Database = None,
) -> None:
    """Publish the log to the topic PREFIX.log and its events to PREFIX.events, until Ctrl-C or SIGTERM.

    Other topics are PREFIX.events.schemaregistry and PREFIX.events.messagecatalog with the events of the legacy APIs,
    and PREFIX.entities with changes in the form of Debezium. The command continues where it stopped, and publishes each
    record once, in a transaction. Credentials and certificate authorities are in ANNALS_KAFKA_USERNAME,
    ANNALS_KAFKA_PASSWORD, ANNALS_KAFKA_TOKEN and ANNALS_KAFKA_CA.

    Example: annals publish --kafka 127.0.0.1:9092 --prefix registry --once
    """
    if not _TOPIC_PREFIX.match(prefix):
        raise UsageError("--prefix: letters, digits, dots, dashes and underscores are needed, 200 at most.")
    names = _topic_names(topics)
    cluster, settings = kafka_cluster(brokers), load_settings(database=database)
    contents = topic_contents(
        names,
        prefix,
        all_event_families(settings.event_changes),
        contentmode=contentmode,
        documents=documents,
        schemas=schemas,
    )
    with closing(open_store(database)) as store, work_progress() as work, stop_event() as stop:
        publisher = Publisher(
            WindowReader(store, contents),
            cluster,
            prefix,
            partitions=partitions or -1,
            report_progress=work.step("published", "events"),
            report_line=print_notice,
        )
        positions = _run_publisher(publisher, once, stop)
    typer.echo(_summary_line(positions, prefix))


def _topic_names(topics: str) -> list[str]:
    """The topics that the option names. Raises: UsageError."""
    names = [name.strip() for name in topics.split(",")]
    if unknown := sorted({*names} - {*TOPICS}):
        raise UsageError(f"--topics: {unknown[0]!r} is none of {', '.join(TOPICS)}.")
    return names


def _run_publisher(publisher: Publisher, once: bool, stop: Event) -> TopicPositions:
    try:
        return publisher.publish_once(stop) if once else publisher.run(stop)
    except TopicsDiverged as error:
        raise InvalidInput(str(error)) from None
    except AnotherPublisher as error:
        raise InvalidInput(f"{error}; this one has stopped.") from None
    except RecordRefused as error:
        raise _failure_error(error.error, f"the record of position {error.record.position}: ") from None
    except errors.KafkaError as error:
        raise _failure_error(error) from None


def _failure_error(error: Exception, record_description: str = "") -> Exception:
    """The error with which the verb ends after a failure at a broker."""
    outcome = error_outcome(error)
    description = f"Kafka: {record_description}{outcome.code} {outcome.message}".strip()
    if outcome.result is DeliveryResult.REJECTED:
        return InvalidInput(
            f"{description}. Everything before it is published; max.message.bytes of the topic may be too small."
        )
    if outcome.result is DeliveryResult.UNAUTHORIZED:
        return UsageError(
            f"{description}. Check ANNALS_KAFKA_USERNAME, the other ANNALS_KAFKA_... settings, and the rights of that "
            "user."
        )
    return StoreError(f"{description}. Check the brokers and --kafka.")


def _summary_line(positions: TopicPositions, prefix: str) -> str:
    if not positions:
        return "nothing is published: the brokers were not reached"
    position = min((position.position for position in positions.values()), default=0)
    counts = [f"{position.number} records on {prefix}.{topic}" for topic, position in positions.items()]
    return f"position {position}: {', '.join([*counts[:1], *(count.replace(' records', '') for count in counts[1:])])}"
