"""The format of a Group and of a definition of the legacy APIs, and what must agree with it.

Rules LEG-303, LEG-304, LEG-701 to 703, LEG-804, LEG-805; the table of § 12 for Groups of the registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from annals.domain.compat import formats
from annals.domain.compat.catalog import groups
from annals.domain.compat.errors import Conflict, InvalidDefinition
from annals.domain.compat.legacy_apis import FACADE, SCHEMAREGISTRY, LegacyApi
from annals.domain.compat.request_extras import LegacyWrite
from annals.domain.compat.uris import is_absolute
from annals.domain.decisions.changes.drafts import ResourceDraft
from annals.domain.registry.entities import Entity
from annals.domain.values.json_text import Json

_CLOUDEVENTS: Final = "CloudEvents"


def optional_registry_format(format: str | None) -> str | None:
    """The registry's name of a schema format."""
    return None if format is None else formats.registry_format(format)


def is_same_group_format(family: LegacyApi, first: str | None, other: str | None) -> bool:
    """Whether two spellings name one format; formats of message definitions are case-sensitive names (LEG-304)."""
    if first is None or other is None or family != SCHEMAREGISTRY:
        return first == other
    return formats.is_same_format(first, other)


def displayed_group_format(family: LegacyApi, attributes: Mapping[str, Any], facade: Mapping[str, Any]) -> str | None:
    """The format of a Group, as the legacy API spells it; None for a schema group without one.

    facade: values that only the legacy APIs know of the Group.
    """
    stored_spelling: str | None = facade.get("format")
    if family != SCHEMAREGISTRY:
        return groups.messagegroup_format(attributes, stored_spelling)
    name = attributes.get("format")
    return formats.displayed_format(name, stored_spelling) if name else None


def stored_group_format(family: LegacyApi, group: Entity) -> str | None:
    """The same for a stored Group."""
    return displayed_group_format(family, group.attributes, group.private.get(FACADE, {}))


def definition_format(group: Entity, resource: ResourceDraft, facade: LegacyWrite) -> str | None:
    """The format of a new Version, as a client spelled it; None for message definitions, whose Group has the format.

    Raises: InvalidDefinition if there is none, or if it differs from that of the Group; Conflict if it differs from
    that of earlier Versions (LEG-702).
    """
    requested, group_format = facade.format, stored_group_format(facade.family, group)
    if (
        group_format is not None
        and requested is not None
        and not is_same_group_format(facade.family, group_format, requested)
    ):
        raise InvalidDefinition(name="format", error_detail=f'the format of the group is "{group_format}" (LEG-702)')
    if facade.family != SCHEMAREGISTRY:
        return None
    current_format = _current_format(resource)
    if current_format is not None and not formats.is_same_format(
        current_format, requested or group_format or current_format
    ):
        raise Conflict(error_detail=f'the format is "{current_format}", and all versions have the same (LEG-702)')
    format = current_format or group_format or requested
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
    is_imported = authority is not None and facade.id is not None and is_absolute(facade.id)
    if facade.id is not None and facade.id != type and not is_imported:
        raise InvalidDefinition(name="id", error_detail=f'it has to be the type of the event, "{type}" (LEG-804)')
    current_type = _type_of(resource.entity.attributes) if resource.entity is not None else None
    if current_type is not None and current_type != type:
        raise Conflict(error_detail=f'the type of the event is "{current_type}" and cannot change (LEG-805)')


def _current_format(resource: ResourceDraft) -> str | None:
    """The current format of a schema.

    That of its Versions is decisive, because the registry's own API may have changed it.
    """
    name = resource.entity.attributes.get("format") if resource.entity is not None else None
    return formats.displayed_format(name, resource.facade.get("format")) if name else None


def _type_of(attributes: Mapping[str, Any]) -> str | None:
    """The CloudEvents type of the events that a message definition describes."""
    metadata = attributes.get("envelopemetadata")
    type = metadata.get("type") if isinstance(metadata, Mapping) else None
    type_value = type.get("value") if isinstance(type, Mapping) else None
    return str(type_value) if type_value is not None else None
