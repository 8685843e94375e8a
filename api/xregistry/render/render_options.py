"""How one response renders entities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from annals.api.http.asof import with_asof
from annals.api.xregistry.render import splices
from annals.api.xregistry.render.filter_effects import FilterEffects
from annals.api.xregistry.render.splices import Splice, StoredTexts
from annals.domain.model import ResourceType
from annals.domain.values import xid as xids

#: Version attributes that the document view leaves out.
VALIDATION_ATTRIBUTES: Final = (
    "formatvalidated",
    "formatvalidatedreason",
    "compatibilityvalidated",
    "compatibilityvalidatedreason",
)


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """How one response renders entities. base: absolute URL of the registry.

    root: the prefix that pointers in a document view remove from xids; it is the xid of the response, empty for the
    registry. binary: documents are in base64. filter_effects: effects of a filter on collections. has_shortself:
    entities show short URLs. asof_suffix: suffix that keeps URLs in the same past, see `asof_suffix`. stated: entities
    have no xids, because only responses have them.
    """

    base: str
    doc: bool = False
    root: str = ""
    binary: bool = False
    filter_effects: FilterEffects | None = None
    has_shortself: bool = False
    asof_suffix: str = ""
    stated: bool = False

    @property
    def needs_full_render(self) -> bool:
        """Whether Resources need more than their stored text and URLs."""
        return self.doc or self.has_shortself or self.filter_effects is not None

    def resource_splice(self, type: ResourceType) -> Splice:
        """The function that inserts URLs into Resources of a type that are rendered as stored."""
        return splices.resource_splice(self.base, type.singular, self_suffix(type), self.asof_suffix)

    def splice_collection(self, type: ResourceType, xid: str, texts: StoredTexts) -> Iterator[str]:
        """A whole collection of such Resources, of the present. xid: of the collection."""
        return splices.splice_resources(texts, self.base, xid, type.singular, self_suffix(type))

    def version_splice(self, type: ResourceType) -> Splice:
        """The function that inserts URLs into Versions of such Resources."""
        return splices.version_splice(self.base, type.singular, self_suffix(type), self.asof_suffix)

    def url(self, xid: str, suffix: str = "") -> str:
        """The absolute URL of an entity or collection, as JSON text. O(1): ids need no escapes."""
        if self.asof_suffix:
            suffix = with_asof(suffix, self.asof_suffix)
        return f'"{self.base}/{suffix}"' if xid == xids.REGISTRY else f'"{self.base}{xid}{suffix}"'

    def reference(self, xid: str, suffix: str = "", is_included: bool = True) -> str:
        """The absolute URL; in a document view a JSON pointer if the response includes the entity."""
        if not (self.doc and is_included):
            return self.url(xid, suffix)
        # Of the characters that JSON pointers escape, an xid can contain only the tilde.
        return f'"#{(xid[len(self.root) :] or "/").replace("~", "~0")}"'


def self_suffix(type: ResourceType) -> str:
    """What follows an xid in the `self` of a Resource or Version of a type."""
    return "$details" if type.hasdocument else ""
