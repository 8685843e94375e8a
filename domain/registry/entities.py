"""The entities of the registry as values: an Entity is a registry, model, group, resource or version at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from annals.domain.values import xid as xids

#: The attributes of an entity as the API shows them, without those that a request adds: absolute URLs, `self`, `xid`.
Attributes = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entity:
    """One live entity: the after-image of its last event.

    attributes: in serialization order. A Group's contain the counts of its collections (`filescount`), the registry's
        those of its Groups; a Resource's contain its default Version's attributes, then `meta` and `versionscount`; the
        model's are `modelsource` and `model`; the capabilities' are the capabilities.
    private: values that only decisions need and no response shows, for instance `document` (SHA-256 of a Version's
        document, and of the default Version's on its Resource), `counter` (a Resource's last generated version id).
    epoch: a Resource's is that of its meta.
    revision: number of its last event in its stream; position: the same in the whole log.
    born: position of the event that created it; None if the log does not record it.
    """

    xid: str
    type: str
    epoch: int
    attributes: Attributes
    private: dict[str, Any] = field(default_factory=dict)
    revision: int = 0
    position: int = 0
    born: int | None = None

    @property
    def id(self) -> str:
        """The last segment of the xid."""
        return xids.entity_id(self.xid)

    @property
    def document(self) -> str | None:
        """SHA-256 of the document, in hex; None if the document is empty or external."""
        return self.private.get("document")


class _TypedAttributes(Protocol):
    """An entity, or an event with its image."""

    @property
    def type(self) -> str: ...

    @property
    def attributes(self) -> Attributes: ...


def xref_target(of: _TypedAttributes) -> str | None:
    """The Resource that an xref refers to, if the entity is a Resource that has one."""
    meta = of.attributes.get("meta") if of.type.count(".") == 1 else None
    target: str | None = meta.get("xref") if meta else None
    return target
