"""The format of a Group and of a definition of the legacy APIs, and what must agree with it.

Rules LEG-303, LEG-304, LEG-701 to 703, LEG-804, LEG-805; the table of § 12 for Groups of the registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from domain.compat import formats
from domain.compat.catalog import groups
from domain.compat.errors import Conflict, InvalidDefinition
from domain.compat.legacy_apis import FACADE, SCHEMAREGISTRY, LegacyApi
from domain.compat.request_extras import LegacyWrite
from domain.compat.uris import is_absolute
from domain.decisions.changes.drafts import ResourceDraft
from domain.registry.entities import Entity
from domain.values.json_text import Json

_CLOUDEVENTS: Final = "CloudEvents"


def optional_registry_format(format: str | None) -> str | None:
    """The registry's name of a schema format."""
    return None if format is None else formats.registry_format(format)


def is_same_group_format(family: LegacyApi, one: str | None, other: str | None) -> bool:
    """Whether two spellings name one format; formats of message definitions are case-sensitive names (LEG-304)."""
    if one is None or other is None or family != SCHEMAREGISTRY:
        return one == other
    return formats.is_same_format(one, other)


def displayed_group_format(family: LegacyApi, attributes: Mapping[str, Any], facade: Mapping[str, Any]) -> str | None:
    """The format of a Group, as the legacy API spells it; None for a schema group without one.

    facade: values that only the legacy APIs know of the Group.
    """
    own: str | None = facade.get("format")
    if family != SCHEMAREGISTRY:
        return groups.messagegroup_format(attributes, own)
    name = attributes.get("format")
    return formats.displayed_format(name, own) if name else None


def stored_group_format(family: LegacyApi, group: Entity) -> str | None:
    """The same for a stored Group."""
    return displayed_group_format(family, group.attributes, group.private.get(FACADE, {}))


def definition_format(group: Entity, resource: ResourceDraft, facade: LegacyWrite) -> str | None:
    """The format of a new Version, as a client spelled it; None for message definitions, whose Group has the format.

    Raises: InvalidDefinition if there is none, or if it differs from that of the Group; Conflict if it differs from
    that of earlier Versions (LEG-702).
    """
    stated, of = facade.format, stored_group_format(facade.family, group)
    if of is not None and stated is not None and not is_same_group_format(facade.family, of, stated):
        raise InvalidDefinition(name="format", error_detail=f'the format of the group is "{of}" (LEG-702)')
    if facade.family != SCHEMAREGISTRY:
        return None
    before = _before(resource)
    if before is not None and not formats.is_same_format(before, stated or of or before):
        raise Conflict(error_detail=f'the format is "{before}", and all versions have the same (LEG-702)')
    format = before or of or stated
    if format is None:
        raise InvalidDefinition(name="format", error_detail="it is required, because the group has none (LEG-702)")
    return format


def check_event_type(
    group: Entity, resource: ResourceDraft, facade: LegacyWrite, tree: Mapping[str, Json], authority: str | None
) -> None:
    """Checks the type of a CloudEvents message definition. Raises: InvalidDefinition (LEG-804), Conflict (LEG-805)."""
    if facade.family == SCHEMAREGISTRY or stored_group_format(facade.family, group) != _CLOUDEVENTS:
        return
    type = _type_of(tree)
    imported = authority is not None and facade.id is not None and is_absolute(facade.id)
    if facade.id is not None and facade.id != type and not imported:
        raise InvalidDefinition(name="id", error_detail=f'it has to be the type of the event, "{type}" (LEG-804)')
    before = _type_of(resource.entity.attributes) if resource.entity is not None else None
    if before is not None and before != type:
        raise Conflict(error_detail=f'the type of the event is "{before}" and cannot change (LEG-805)')


def _before(resource: ResourceDraft) -> str | None:
    """The current format of a schema.

    That of its Versions is decisive, because the registry's own API may have changed it.
    """
    name = resource.entity.attributes.get("format") if resource.entity is not None else None
    return formats.displayed_format(name, resource.facade.get("format")) if name else None


def _type_of(attributes: Mapping[str, Any]) -> str | None:
    """The CloudEvents type of the events that a message definition describes."""
    metadata = attributes.get("envelopemetadata")
    type = metadata.get("type") if isinstance(metadata, Mapping) else None
    found = type.get("value") if isinstance(type, Mapping) else None
    return str(found) if found is not None else None
