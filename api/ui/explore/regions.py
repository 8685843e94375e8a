"""The regions of an entity's page, in their order. A new one is a row here, a function that reads it, a template."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from annals.api.ui.explore.attribute_rows import attribute_rows, rows_region
from annals.api.ui.explore.deprecation import deprecation_rows, is_deprecated
from annals.api.ui.explore.document_region import read_document
from annals.api.ui.explore.entity_view import EntityView
from annals.api.ui.explore.message_regions import read_endpoint_messages, read_resolved_message
from annals.api.ui.explore.references_region import read_references
from annals.api.ui.explore.versions_region import read_versions
from annals.api.ui.page_context import PageContext

_MESSAGES: Final = "messages"
_ENDPOINTS: Final = "endpoints"


class Region(NamedTuple):
    """applies: whether an entity has it. read: the values that the template shows as `region`; None to leave it out."""

    name: str
    template: str
    applies: Callable[[EntityView], bool]
    read: Callable[[PageContext, EntityView], Awaitable[Mapping[str, Any] | None]]


async def _attributes(page: PageContext, entity: EntityView) -> Mapping[str, Any]:
    """The attributes, without what other regions show."""
    place = entity.place
    hidden = {
        *(f"{name}{suffix}" for name in place.nested_names for suffix in ("", "url", "count")),
        *place.document_names[:1],
        *place.document_names[2:],
        "deprecated",
    }
    return rows_region(attribute_rows(entity.attributes, place.attributes, hidden))


async def _meta(page: PageContext, entity: EntityView) -> Mapping[str, Any]:
    """What belongs to the Resource and not to its default Version."""
    hidden = {f"{entity.place.singular}id", "self", "xid", "shortself", "deprecated"}
    return rows_region(attribute_rows(entity.meta, entity.place.meta_attributes, hidden))


async def _deprecation(page: PageContext, entity: EntityView) -> Mapping[str, Any]:
    return {"rows": deprecation_rows(_deprecated(entity))}


async def _collections(page: PageContext, entity: EntityView) -> Mapping[str, Any]:
    """The collections of a Group, each with the number of its members."""
    xid = entity.place.xid
    return {
        "links": [
            (name, page.link(f"explore{xid}/{name}"), entity.attributes.get(f"{name}count", 0))
            for name in entity.place.collections
        ]
    }


def _deprecated(entity: EntityView) -> Mapping[str, Any]:
    return entity.meta if entity.place.is_resource else entity.attributes


REGIONS: Final = (
    Region("Deprecation", "explore/deprecation.html", lambda entity: is_deprecated(_deprecated(entity)), _deprecation),
    Region("Collections", "explore/collections.html", lambda entity: bool(entity.place.collections), _collections),
    Region("Document", "explore/document.html", lambda entity: entity.place.has_document, read_document),
    Region("Versions", "explore/versions.html", lambda entity: entity.place.is_resource, read_versions),
    Region(
        "Resolved message",
        "explore/resolved_message.html",
        lambda entity: entity.place.is_resource and entity.place.segments[2] == _MESSAGES,
        read_resolved_message,
    ),
    Region(
        "Messages",
        "explore/endpoint_messages.html",
        lambda entity: entity.place.is_group and entity.place.plural == _ENDPOINTS,
        read_endpoint_messages,
    ),
    Region("References", "explore/references.html", lambda entity: True, read_references),
    Region("Attributes", "explore/attributes.html", lambda entity: True, _attributes),
    Region("Meta", "explore/attributes.html", lambda entity: entity.place.is_resource, _meta),
)
