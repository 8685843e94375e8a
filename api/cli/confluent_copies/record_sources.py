"""Sources of copies that are records: a `_schemas` topic, and a dump of one."""

from __future__ import annotations

from pathlib import Path

from annals.api.cli.confluent_copies.import_copy import NamedSource, OpenSource
from annals.api.cli.outcome import InvalidInput, StoreError, UsageError
from annals.projections.confluent_copy.topic_records import InvalidRecord, TopicSource, dump_records, parse_record


def dump_source(path: Path) -> OpenSource:
    """The records in a file; each reading raises InvalidInput for what is no record."""

    def read() -> NamedSource:
        try:
            with path.open(encoding="utf-8") as lines:
                return NamedSource(f"dump {path.resolve()}", TopicSource(dump_records(lines)))
        except (InvalidRecord, UnicodeDecodeError) as error:
            raise InvalidInput(f"{path}: {error}.") from None

    return read


def topic_source(topic: str, brokers: str) -> OpenSource:
    """The records of a topic; each reading raises InvalidInput, StoreError or UsageError.

    The name has the id of the cluster, because the topic has the same name in nearly all of them.
    """
    from kafka import errors  # late, because other sources do not need it

    from annals.api.cli.kafka_settings import kafka_cluster

    cluster = kafka_cluster(brokers)

    def read() -> NamedSource:
        try:
            records = (parse_record(key, value) for key, value in cluster.key_values(topic))
            return NamedSource(f"topic {topic} of {cluster.id() or brokers}", TopicSource(records))
        except InvalidRecord as error:
            raise InvalidInput(f"the topic {topic}: {error}.") from None
        except ValueError as error:
            raise UsageError(f"--from-schemas-topic: {error}.") from None
        except errors.KafkaError as error:
            raise StoreError(f"Kafka: {error}. Check the brokers and --kafka.") from None

    return read
