"""Checks that topics agree with the log: they hold records of this log, and all that were published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from annals.projections.kafka.topic_position import NO_OFFSET, TopicPosition, TopicPositions
from annals.projections.kafka.windows import WindowReader

_REMEDY = "publish under another prefix, or delete the topics, so that they are created again"


class TopicsDiverged(Exception):
    """Topics and log have different histories; the message says where, and what to do."""


def starting_positions(
    reader: WindowReader, prefix: str, stored: TopicPositions, end_offsets: Mapping[str, Sequence[int]]
) -> dict[str, TopicPosition]:
    """The positions to continue from: the stored ones, or the beginning of the log for topics without records.

    stored: the positions that the topics' last transaction left. end_offsets: of the partitions of each topic.
    Raises: TopicsDiverged when a topic holds records that are not of this log, or lacks published ones.
    """
    positions = {}
    for topic in reader.topics:
        name, position, ends = f"{prefix}.{topic.name}", stored.get(topic.name), end_offsets[topic.name]
        if not any(ends):
            positions[topic.name] = TopicPosition(0, 0, "", (NO_OFFSET,) * len(ends), topic.key_format)
            continue
        if position is None:
            raise TopicsDiverged(
                f"the topic {name} has records, but {prefix}.positions does not say how far it is published; {_REMEDY}."
            )
        _check_same_interaction(reader, name, position)
        _check_nothing_lost(name, position, ends)
        if position.key_format != topic.key_format:
            raise TopicsDiverged(
                f"the keys of the topic {name} are: {position.key_format}. With {topic.key_format}, later records of an"
                " entity would be in another partition; use --schemas or --no-schemas as before, or another prefix."
            )
        positions[topic.name] = position
    return positions


def _check_same_interaction(reader: WindowReader, name: str, position: TopicPosition) -> None:
    """Raises: TopicsDiverged unless the log has the interaction with which the topic ends, at the same position."""
    if not position.position:
        return
    if position.position > (head := reader.log_end()):
        raise TopicsDiverged(
            f"the topic {name} is at position {position.position}, further than the log, which ends at {head}: the"
            f" database was replaced or restored; {_REMEDY}."
        )
    log_interaction = reader.interaction(position.position)
    if log_interaction is None or log_interaction.xregcorrelationid != position.xregcorrelationid:
        raise TopicsDiverged(
            f"at position {position.position} the topic {name} holds another interaction than the log; {_REMEDY}."
        )


def _check_nothing_lost(name: str, position: TopicPosition, end_offsets: Sequence[int]) -> None:
    """Raises: TopicsDiverged if a partition ends before its last published record."""
    for partition, last_offset in enumerate(position.last_offsets):
        end_offset = end_offsets[partition] if partition < len(end_offsets) else 0
        if last_offset >= end_offset:
            raise TopicsDiverged(
                f"partition {partition} of the topic {name} ends at offset {end_offset}, but its last published record"
                f" has offset {last_offset}: records are lost; {_REMEDY}."
            )
