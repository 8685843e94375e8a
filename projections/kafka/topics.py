"""The topics that a registry can publish, by the part of their names after the prefix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from annals.projections.events.event_families import EventFamily
from annals.projections.kafka.entity_topic import ENTITIES, EntityTopic
from annals.projections.kafka.event_topic import EVENT_TOPICS, EVENTS, EventTopic
from annals.projections.kafka.log_topic import LOG, LogTopic
from annals.projections.kafka.records import TopicContent

TOPICS: Final = (LOG, *EVENT_TOPICS.values(), ENTITIES)
DEFAULT_TOPICS: Final = (LOG, EVENTS)


def topic_contents(
    names: Sequence[str],
    prefix: str,
    families: Sequence[EventFamily],
    *,
    contentmode: str = "structured",
    documents: bool = False,
    schemas: bool = True,
) -> list[TopicContent]:
    """The contents of some of TOPICS, in that order.

    families: all event families. contentmode: of events. documents: whether the log contains documents. schemas:
    whether changes of entities contain schemas.
    """
    every_topic: tuple[TopicContent, ...] = (
        LogTopic(documents=documents),
        *(EventTopic(family, contentmode) for family in families),
        EntityTopic(prefix, schemas=schemas),
    )
    return [topic for topic in every_topic if topic.name in names]
