"""The registry's model as pages read it from the API: what a path names, and which attributes an entity has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from annals.api.ui.page_context import PageContext
from annals.api.ui.text_values import shell_quoted
from annals.domain.values.json_text import dumps, loads

Attributes = Mapping[str, Mapping[str, Any]]

VERSIONS: Final = "versions"
#: Attributes that the server sets, though the model lets clients write some of them; forms and examples leave them out.
SERVER_SET: Final = frozenset(("self", "shortself", "xid", "epoch", "createdat", "modifiedat"))
_SERVER_SET_OF_REGISTRY: Final = SERVER_SET | {"specversion", "registryid"}
_SERVER_SET_OF_VERSION: Final = SERVER_SET | {"isdefault"}
#: Types whose values are one text, number or switch, by which a list can be sorted.
_NOT_SCALAR: Final = frozenset(("map", "array", "object", "any"))
_NESTED_IN_REGISTRY: Final = ("model", "modelsource", "capabilities")
_NESTED_IN_RESOURCE: Final = ("meta", VERSIONS)
#: An example of a value for each type that is no text.
_EXAMPLES: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("integer", "uinteger", "decimal"), 1),
    "boolean": True,
    "timestamp": "2026-01-01T00:00:00Z",
    **dict.fromkeys(("uri", "url", "uriabsolute", "urlabsolute"), "https://example.com/"),
    "map": {},
    "object": {},
    "array": [],
}


@dataclass(frozen=True)
class ModelPlace:
    """What a path below the registry is: an entity, or a collection if `segments` are odd in number.

    plural, singular: of the entity's type, or of the members of the collection. definition: of that type in the model:
    of the registry, a Group type, or a Resource type, which Versions share.
    """

    segments: tuple[str, ...]
    plural: str
    singular: str
    definition: Mapping[str, Any]

    @property
    def xid(self) -> str:
        """The xid of the entity, or the path of the collection."""
        return "/" + "/".join(self.segments)

    @property
    def is_collection(self) -> bool:
        """Whether it is a collection."""
        return len(self.segments) % 2 == 1

    @property
    def is_resource(self) -> bool:
        """Whether it is a Resource, or a collection of these."""
        return len(self.segments) in (3, 4)

    @property
    def is_version(self) -> bool:
        """Whether it is a Version, or a collection of these."""
        return len(self.segments) in (5, 6)

    @property
    def is_group(self) -> bool:
        """Whether it is a Group, or a collection of these."""
        return len(self.segments) in (1, 2)

    @property
    def has_document(self) -> bool:
        """Whether entities here can have a document."""
        return bool((self.is_resource or self.is_version) and self.definition.get("hasdocument", True))

    @property
    def id_name(self) -> str:
        """The attribute with the id of an entity here."""
        return "versionid" if self.is_version else f"{self.singular}id"

    @property
    def api_path(self) -> str:
        """The path at which the API has the entity's attributes, or the collection."""
        details = "$details" if self.has_document and not self.is_collection else ""
        return self.xid + details

    @property
    def attributes(self) -> Attributes:
        """The definitions of the attributes of an entity here."""
        own: dict[str, Any] = dict(self.definition.get("attributes", {}))
        if self.is_resource:
            own |= self.definition.get("resourceattributes", {})
        own.pop("*", None)
        return own

    @property
    def server_set(self) -> Collection[str]:
        """The attributes of an entity here that forms and examples leave out, because the server sets them."""
        if not self.segments:
            return _SERVER_SET_OF_REGISTRY
        return SERVER_SET if self.is_group else _SERVER_SET_OF_VERSION

    @property
    def meta_attributes(self) -> Attributes:
        """The definitions of the attributes of a Resource's meta."""
        own: dict[str, Any] = dict(self.definition.get("metaattributes", {}))
        own.pop("*", None)
        return own

    @property
    def has_meta_extensions(self) -> bool:
        """Whether a Resource's meta can have attributes that the model does not name."""
        return "*" in self.definition.get("metaattributes", {})

    @property
    def document_names(self) -> tuple[str, ...]:
        """The attributes that stand for the document of an entity here."""
        # A Version's singular is that of its Resource's type.
        name = str(self.definition.get("singular", ""))
        return (name, f"{name}url", f"{name}base64") if self.has_document else ()

    @property
    def collections(self) -> tuple[str, ...]:
        """The names of the collections of an entity here, without `versions`."""
        if not self.segments:
            return tuple(self.definition.get("groups", {}))
        return tuple(self.definition.get("resources", {})) if self.is_group else ()

    @property
    def nested_names(self) -> tuple[str, ...]:
        """The attributes of an entity here that are entities or collections; only a Resource has `meta`."""
        own = _NESTED_IN_REGISTRY if not self.segments else _NESTED_IN_RESOURCE if self.is_resource else ()
        return (*self.collections, *own)

    def scalar_names(self) -> Iterator[str]:
        """The attributes by which a collection can be sorted."""
        for name, definition in self.attributes.items():
            if definition.get("type") not in _NOT_SCALAR:
                yield name

    def example_body(self) -> dict[str, Any]:
        """Values for the attributes that a new entity here needs."""
        body: dict[str, Any] = {}
        for name, definition in self.attributes.items():
            if definition.get("required") and not _is_set_by_server(self, name, definition):
                body[name] = _example(name, definition)
        if self.has_document and not self.is_group and "format" in body:
            body[self.document_names[0]] = {"type": "string"}
        return body

    def curl(self, base: str) -> str:
        """A command that makes an entity in the collection. base: the URL of the registry."""
        url = f"{base}{self.xid}/my-{self.singular}"
        if self.has_document:
            url += "$details"
        body = shell_quoted(dumps(self.example_body()).decode())
        return f"curl -X PUT {shell_quoted(url)} -H 'Content-Type: application/json' -d {body}"


@dataclass(frozen=True)
class ModelView:
    """The model of the moment that a page shows. document: as `GET /model` has it."""

    document: Mapping[str, Any]

    @property
    def group_types(self) -> Mapping[str, Mapping[str, Any]]:
        """The Group types by plural."""
        found: Mapping[str, Mapping[str, Any]] = self.document.get("groups", {})
        return found

    def place(self, segments: Sequence[str]) -> ModelPlace | None:
        """What a path names; None if the model has no such path."""
        path = tuple(segments)
        if not path:
            return ModelPlace(path, "", "registry", self.document)
        group_type = self.group_types.get(path[0])
        if group_type is None or len(path) > 6:
            return None
        if len(path) <= 2:
            return ModelPlace(path, path[0], group_type["singular"], group_type)
        resource_type = group_type.get("resources", {}).get(path[2])
        if resource_type is None or (len(path) > 4 and path[4] != VERSIONS):
            return None
        plural, singular = (path[2], resource_type["singular"]) if len(path) <= 4 else (VERSIONS, "version")
        return ModelPlace(path, plural, singular, resource_type)


async def read_model(page: PageContext) -> ModelView:
    """The model of the moment that a page shows. Raises: Problem."""
    return _parse((await page.get("/model")).body)


@lru_cache(maxsize=8)
def _parse(body: bytes) -> ModelView:
    """The model in an answer, which is the same for nearly all pages."""
    return ModelView(loads(body))


def _is_set_by_server(place: ModelPlace, name: str, definition: Mapping[str, Any]) -> bool:
    is_address = name in (place.id_name, f"{place.singular}id", "versionid", "ancestorid", *place.nested_names)
    return bool(name in place.server_set or definition.get("readonly") or "default" in definition or is_address)


def _example(name: str, definition: Mapping[str, Any]) -> Any:
    if name == "format":
        return "JsonSchema/draft-07"
    allowed = definition.get("enum")
    value = allowed[0] if allowed else _EXAMPLES.get(definition.get("type", ""), "text")
    return [value] if definition.get("type") == "array" and allowed else value
