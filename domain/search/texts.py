"""The texts of an entity that a search reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from annals.domain.formats.fields import SchemaField
from annals.domain.values import xid as xids


class TextPlace(IntEnum):
    """Where a text is. A match at a lower one ranks higher."""

    ID = 0
    NAME = 1
    LABEL = 2
    FIELD = 3
    DESCRIPTION = 4

    @property
    def word(self) -> str:
        """Its name in queries and answers."""
        return self.name.lower()


class Text(NamedTuple):
    """A text. path: of the attribute, with the name of a label behind `labels.`; of the field for those of a schema."""

    place: int
    path: str
    text: str


class SearchedEntity(NamedTuple):
    """An entity as a search sees it. type: see Entity. format: in lower case; empty for none.

    is_version: whether it is a Version besides the default one, which a search finds if it asks for all Versions.
    """

    xid: str
    type: str
    format: str
    texts: tuple[Text, ...]
    is_version: bool = False

    @property
    def name(self) -> str | None:
        """The value of its attribute `name`."""
        return next((text.text for text in self.texts if text.place == TextPlace.NAME), None)


def is_searched(type: str, attributes: Mapping[str, Any]) -> bool:
    """Whether a search can find an entity: a Group, a Resource, or a Version that is not the default one.

    The default Version is found as its Resource, which shows it.
    """
    return not type.startswith("/") and not (is_version(type) and attributes.get("isdefault") is True)


def is_version(type: str) -> bool:
    """Whether a type is that of Versions."""
    return type.count(".") == 2


def searched_entity(
    xid: str, type: str, attributes: Mapping[str, Any], fields: Iterable[SchemaField] = ()
) -> SearchedEntity:
    """The entity with some attributes, for which `is_searched` holds. fields: of its document."""
    format = attributes.get("format")
    return SearchedEntity(
        xid,
        type,
        format.lower() if isinstance(format, str) else "",
        (
            Text(TextPlace.ID, "versionid" if is_version(type) else next(iter(attributes), "id"), xids.entity_id(xid)),
            *_attribute_texts(attributes),
            *_field_texts(fields),
        ),
        is_version(type),
    )


def _attribute_texts(attributes: Mapping[str, Any]) -> Iterator[Text]:
    for place, name in ((TextPlace.NAME, "name"), (TextPlace.DESCRIPTION, "description")):
        if isinstance(value := attributes.get(name), str):
            yield Text(place, name, value)
    labels = attributes.get("labels")
    for name, value in labels.items() if isinstance(labels, dict) else ():
        yield Text(TextPlace.LABEL, f"labels.{name}", name)
        yield Text(TextPlace.LABEL, f"labels.{name}", str(value))


def _field_texts(fields: Iterable[SchemaField]) -> Iterator[Text]:
    for field in fields:
        yield Text(TextPlace.FIELD, field.path, field.path)
        if field.doc:
            yield Text(TextPlace.FIELD, field.path, field.doc)
