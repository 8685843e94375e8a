"""Converts documents of message definitions to the registry's message attributes, and back.

Values that attributes cannot hold are left over and stored next to them. A document made from both is equivalent to the
original until a client of the registry changes an attribute; from then on the attributes win. Rules LEG-1203, § 12.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from annals.domain.compat.catalog import METASCHEMAS, cloudevents
from annals.domain.compat.catalog.metaschema import Sections
from annals.domain.compat.catalog.value_mapping import add_leftover, as_reference, section_leftovers
from annals.domain.messaging.findings.unchecked_values import as_mapping
from annals.domain.values.json_text import Json


class MappedDefinition(NamedTuple):
    """A document as attributes of a message, and the values that they cannot hold, by section and member."""

    attributes: dict[str, Json]
    leftovers: Sections


class SchemaReference(NamedTuple):
    """A schema of this registry, or one of its Versions."""

    xid: str
    format: str


#: Returns the schema of this registry that a URI names, if that schema has a format; else None.
FindSchema = Callable[[str], SchemaReference | None]

#: The attributes that represent a message whose format has no metaschema.
_MESSAGE_ATTRIBUTES: Final = (
    *("basemessageuri", "envelope", "envelopemetadata", "envelopeoptions", "protocol", "protocoloptions"),
    *("dataschemaformat", "dataschema", "dataschemauri", "dataschemaxid", "datacontenttype"),
)


def to_attributes(
    format: str, document: Sections | None, find_schema: FindSchema = lambda uri: None
) -> MappedDefinition:
    """The message attributes of a valid document; the message model accepts them.

    document: from `parse_definition`; None for formats without a metaschema, where there is nothing to map.
    """
    metaschema = METASCHEMAS.get(format)
    if metaschema is None or document is None:
        return MappedDefinition({}, {})
    leftovers: Sections = {}
    attributes = metaschema.to_attributes(document, leftovers)
    section, member = metaschema.DATASCHEMA
    value = as_mapping(document.get(section)).get(member)
    uri = as_reference("dataschemauri", value)
    schema = None if uri is None else find_schema(uri)
    if schema is not None:
        attributes |= {"dataschemaformat": schema.format, "dataschemauri": uri, "dataschemaxid": schema.xid}
    elif value is not None and metaschema is not cloudevents:
        add_leftover(leftovers, section, member, value)
    return MappedDefinition(attributes, leftovers)


def to_document(format: str, attributes: Mapping[str, Json], leftovers: Mapping[str, Json]) -> Sections:
    """The document made of a message's attributes and leftovers; for formats without a metaschema, the attributes."""
    metaschema = METASCHEMAS.get(format)
    if metaschema is None:
        return {name: attributes[name] for name in _MESSAGE_ATTRIBUTES if name in attributes}
    sections = metaschema.to_document(attributes, dict(leftovers))
    section, member = metaschema.DATASCHEMA
    uri = attributes.get("dataschemauri", section_leftovers(leftovers, section).get(member))
    if uri is not None and metaschema is not cloudevents:
        sections[section] = {**as_mapping(sections.get(section)), member: uri}
    return sections
