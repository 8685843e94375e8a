"""Events: one for each entity that an interaction created, updated, refreshed or deleted.

An event carries the entity's complete after-image. Therefore the last event of a stream is the entity, a read-model row
and a CloudEvent are functions of one event, and a rebuild is "last event per stream".
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Final, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, SkipValidation

from annals.domain.values import xid as xids

#: The private member that makes an event's image impossible to guess: random text, new with each event. Therefore a
#: hash of the image reveals nothing about it once the image itself is destroyed. Decisions never see this member.
SALT: Final = "salt"

#: Why an entity was deleted: directly or with its parent, by `maxversions`, by a legacy API (LEG-707).
DeletionReason = Literal["deleted", "pruned", "forgotten"]


EventT = TypeVar("EventT", bound="EntityEvent")


class EntityEvent(BaseModel):
    """The effect of one interaction on one entity.

    revision: 1, 2, 3 ... in the stream; a deletion does not reset it.
    changed: names of the attributes that differ from the previous state, as xRegistry events list them: sorted, those
        of a Resource's meta as `meta.<name>` after the others (EV-36, EV-42, EV-46). Empty for created and deleted.
    deprecated_changed: members of `deprecated` that differ (EV-56, EV-62); None if it did not change.
    born: position of the event that created an existing entity; None for created and deleted. It is not part of the
        image, so that equal registries have equal hashes, whatever else their logs contain.
    time: UTC, the same for the whole interaction.
    """

    model_config = ConfigDict(frozen=True)

    TOPIC: ClassVar[str] = ""

    xid: str
    type: str
    revision: int
    epoch: int
    # Not validated, because validation copies them: that took a tenth of the memory of an import.
    attributes: SkipValidation[dict[str, Any]]
    private: SkipValidation[dict[str, Any]] = {}
    changed: tuple[str, ...] = ()
    deprecated_changed: tuple[str, ...] | None = None
    born: int | None = None
    xregcorrelationid: str
    time: datetime

    def model_post_init(self, context: Any) -> None:
        _share_field_names(self)

    def with_members(self, **members: Any) -> Self:
        """The event with some members replaced, which are not validated."""
        return _share_field_names(self.model_copy(update=members))

    @property
    def stream(self) -> str:
        """The id of the entity's stream, its lower-cased xid."""
        return xids.stream(self.xid)

    def creation_position(self, position: int) -> int | None:
        """Position of the event that created the entity; None if the log does not record it.

        position: of this event.
        """
        return self.born


def _share_field_names(event: EventT) -> EventT:
    """The same event. Its own set of the names of its fields would take half of its memory."""
    object.__setattr__(event, "__pydantic_fields_set__", _FIELD_NAMES)
    return event


#: What pydantic takes for the fields that were given; nothing here asks for them.
_FIELD_NAMES: Final = {*EntityEvent.model_fields}


class EntityCreated(EntityEvent):
    """The entity is new; after a deletion it can be created again, in the same stream."""

    TOPIC: ClassVar[str] = "EntityCreated:1"

    def creation_position(self, position: int) -> int | None:
        return position or None


class EntityUpdated(EntityEvent):
    """A client wrote the entity, or a change occurred that the specification counts as an update."""

    TOPIC: ClassVar[str] = "EntityUpdated:1"


class EntityRefreshed(EntityEvent):
    """The server changed what the entity shows without an update: same epoch, no CloudEvent (ENT-16)."""

    TOPIC: ClassVar[str] = "EntityRefreshed:1"


class EntityDeleted(EntityEvent):
    """The entity is gone. `attributes` and `private` are empty, `epoch` is the last one.

    reason: `deleted` directly or with its parent, `pruned` by `maxversions`, `forgotten` by a legacy API (LEG-707).
    """

    TOPIC: ClassVar[str] = "EntityDeleted:1"

    reason: DeletionReason = "deleted"


#: The kinds of event by topic.
TOPICS: Final[dict[str, type[EntityEvent]]] = {
    kind.TOPIC: kind for kind in (EntityCreated, EntityUpdated, EntityRefreshed, EntityDeleted)
}
