"""From documents of message definitions to the registry's attributes of messages, and back.

What attributes cannot hold is left, and kept beside them. A document that is made again from both says the same as the
first one, until a client of the registry changes an attribute: then the attributes are right. Rules LEG-1203, § 12.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from domain.compat.catalog import METASCHEMAS, cloudevents
from domain.compat.catalog.metaschema import Sections
from domain.compat.catalog.value_mapping import add_leftover, as_reference, section_leftovers
from domain.messaging.findings.unchecked_values import as_mapping
from domain.values.json_text import Json


class MappedDefinition(NamedTuple):
    """A document as attributes of a message, and by section and member what they cannot hold."""

    attributes: dict[str, Json]
    left: Sections


class SchemaReference(NamedTuple):
    """A schema of this registry, or a Version of one."""

    xid: str
    format: str


#: The schema of this registry that a URI names, if it has a format; None where it names none.
FindSchema = Callable[[str], SchemaReference | None]

#: What a message of a format without a metaschema is shown by.
_SHOWN: Final = (
    *("basemessageuri", "envelope", "envelopemetadata", "envelopeoptions", "protocol", "protocoloptions"),
    *("dataschemaformat", "dataschema", "dataschemauri", "dataschemaxid", "datacontenttype"),
)


def to_attributes(format: str, document: Sections | None, find: FindSchema = lambda uri: None) -> MappedDefinition:
    """A valid document as attributes, which the message model takes.

    document: as `parse` gives it; of formats without a metaschema there is none, and nothing to map.
    """
    room = METASCHEMAS.get(format)
    if room is None or document is None:
        return MappedDefinition({}, {})
    left: Sections = {}
    attributes = room.to_attributes(document, left)
    section, member = room.DATASCHEMA
    value = as_mapping(document.get(section)).get(member)
    uri = as_reference("dataschemauri", value)
    schema = None if uri is None else find(uri)
    if schema is not None:
        attributes |= {"dataschemaformat": schema.format, "dataschemauri": uri, "dataschemaxid": schema.xid}
    elif value is not None and room is not cloudevents:
        add_leftover(left, section, member, value)
    return MappedDefinition(attributes, left)


def to_document(format: str, attributes: Mapping[str, Json], left: Mapping[str, Json]) -> Sections:
    """The document that a message's attributes and what is left make; for other formats, the attributes as they are."""
    room = METASCHEMAS.get(format)
    if room is None:
        return {name: attributes[name] for name in _SHOWN if name in attributes}
    done = room.to_document(attributes, dict(left))
    section, member = room.DATASCHEMA
    uri = attributes.get("dataschemauri", section_leftovers(left, section).get(member))
    if uri is not None and room is not cloudevents:
        done[section] = {**as_mapping(done.get(section)), member: uri}
    return done
