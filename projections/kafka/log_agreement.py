"""Checks that topics agree with the log: they hold records of this log, and all that were acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from annals.projections.kafka.cluster import TopicContents
from annals.projections.kafka.progress import PublishingProgress
from annals.projections.kafka.records import EVENTS, LOG, PublishedCounts, RecordPosition

_REMEDY = "publish under another prefix, or delete the topics, so that they are created again"


class TopicsDiverged(Exception):
    """Topics and log have different histories; the message says where, and what to do."""


def find_start(progress: PublishingProgress, read_topics: Callable[[], Mapping[str, TopicContents]]) -> PublishedCounts:
    """The counts to continue from: the stored ones, or zero if the topics were created again.

    read_topics: returns the contents of the topics. Raises: TopicsDiverged when a topic holds records that are not of
    this log, or lacks acknowledged ones.
    """
    # In this order: another publisher may continue meanwhile, so that topics hold more than the stored counts.
    stored_counts = progress.published_counts()
    topics = read_topics()
    counts = {LOG: stored_counts.log, EVENTS: stored_counts.events}
    for topic, contents in topics.items():
        if contents.last is not None:
            _check_same_interaction(progress, topic, contents.last)
    if any(counts[topic] and not contents.records for topic, contents in topics.items()):
        # Stored at once: a half-filled topic would look like one that has lost records.
        progress.save(PublishedCounts())
        return PublishedCounts()
    for topic, contents in topics.items():
        if contents.last is not None and contents.last.number < counts[topic]:
            raise TopicsDiverged(
                f"the topic {progress.prefix}.{topic} ends at number {contents.last.number}, but {counts[topic]} were"
                f" acknowledged: records are lost; {_REMEDY}."
            )
    return stored_counts


def _check_same_interaction(progress: PublishingProgress, topic: str, last_record: RecordPosition) -> None:
    """Raises: TopicsDiverged unless the last record is of an interaction that the log has at that position."""
    name = f"{progress.prefix}.{topic}"
    if last_record.position > (head := progress.log_end()):
        raise TopicsDiverged(
            f"the topic {name} is at position {last_record.position}, further than the log, which ends at {head}: the"
            f" database was replaced or restored; {_REMEDY}."
        )
    log_interaction = progress.interaction(last_record.position)
    if log_interaction is None or log_interaction.xregcorrelationid != last_record.interaction:
        raise TopicsDiverged(
            f"at position {last_record.position} the topic {name} holds another interaction than the log; {_REMEDY}."
        )
