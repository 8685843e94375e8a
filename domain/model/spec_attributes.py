"""The attributes that the specification itself defines, per level, in serialization order, and who sets them.

They are the base of every full model; a modelsource is overlaid on them.
Spec: core 1.0-rc4, "Attributes"; the published full model of `dirs` and `files`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

Definition = dict[str, Any]
Definitions = dict[str, Definition]

SPECVERSION: Final = "1.0-rc4"

#: Version modes that compute ancestors and therefore have a single root (ENT-100).
COMPUTED_MODES: Final = ("createdat", "modifiedat", "semver")
VERSIONMODES: Final = ("manual", *COMPUTED_MODES)

#: Resource-type aspects that a full model always contains, with their defaults.
RESOURCE_DEFAULTS: Final[dict[str, Any]] = {
    "maxversions": 0,
    "setversionid": True,
    "hasdocument": True,
    "versionmode": "manual",
    "singleversionroot": False,
    "validateformat": False,
    "validatecompatibility": False,
    "strictvalidation": False,
}


#: Descriptive attributes: if a Resource type has the name of one, its document replaces the attribute.
_REPLACEABLE: Final = frozenset({"name", "description", "documentation", "icon", "labels", "format"})

#: First path segments that are in use, so no Group type and no Registry attribute may have these names (HTTP-4).
RESERVED_PATHS: Final = ("subscriptions", "compat", "export", "capabilitiesoffered")
#: The response header of this name has another meaning, so no Version attribute may have it (EV-32).
RESERVED_HEADERS: Final = ("xregcorrelationid",)


@dataclass(frozen=True, slots=True)
class SpecAttributes:
    """The spec-defined attributes of one level.

    attributes: its definitions. last: names that are serialized after extensions, in this order.
    served: names that only the server sets, even if a model describes them; a client's value is never stored.
    compared: read-only names that a request may state, to be compared with the stored value (ENT-15).
    reserved: names that the level does not define but no extension may have.
    """

    attributes: Definitions
    last: tuple[str, ...] = ()
    served: frozenset[str] = frozenset()
    compared: frozenset[str] = frozenset()
    reserved: frozenset[str] = frozenset()


def _attribute(name: str, type_name: str, flags: str = "", **aspects: Any) -> Definition:
    return {"name": name, "type": type_name, **dict.fromkeys(flags.split(), True), **aspects}


def _table(*rows: Definition) -> Definitions:
    return {row["name"]: row for row in rows}


_FIXED: Final = "readonly immutable required"
_ANYTHING: Final[dict[str, Any]] = {"attributes": {"*": _attribute("*", "any")}}
_TEXT: Final[dict[str, Any]] = {"item": {"type": "string"}}

_ADDRESS: Final = (
    _attribute("self", "url", _FIXED),
    _attribute("shortself", "url", "readonly immutable"),
    _attribute("xid", "xid", _FIXED),
)
_EPOCH: Final = _attribute("epoch", "uinteger", "readonly required")
_NAME: Final = _attribute("name", "string")
_ABOUT: Final = (
    _attribute("description", "string"),
    _attribute("documentation", "url"),
    _attribute("icon", "url"),
)
_LABELS: Final = _attribute("labels", "map", **_TEXT)
_TIMES: Final = (_attribute("createdat", "timestamp", "required"), _attribute("modifiedat", "timestamp", "required"))
_DEPRECATED: Final = _attribute(
    "deprecated",
    "object",
    attributes=_table(
        _attribute("alternative", "url"),
        _attribute("documentation", "url"),
        _attribute("effective", "timestamp"),
        _attribute("removal", "timestamp"),
        _attribute("*", "any"),
    ),
)
_CONSTRAINTS: Final = _attribute(
    "constraints",
    "map",
    item={
        "type": "object",
        "attributes": _table(
            _attribute("default", "any"),
            _attribute("enum", "array", item={"type": "any"}),
            _attribute("equals", "string"),
        ),
    },
)
_COMPATIBILITIES: Final = [
    "backward",
    "backward_transitive",
    "forward",
    "forward_transitive",
    "full",
    "full_transitive",
]
_VALIDATED: Final = (
    _attribute("formatvalidated", "boolean", "readonly"),
    _attribute("formatvalidatedreason", "string", "readonly"),
    _attribute("compatibilityvalidated", "boolean", "readonly"),
    _attribute("compatibilityvalidatedreason", "string", "readonly"),
)
_SERVED: Final = frozenset({"self", "shortself", "xid", "epoch"})


def registry(groups: Iterable[str]) -> SpecAttributes:
    """The Registry level, with the collections of its Group types."""
    attributes = _table(
        _attribute("specversion", "string", "readonly required", default=SPECVERSION),
        _attribute("registryid", "string", _FIXED),
        *_ADDRESS,
        _EPOCH,
        _NAME,
        *_ABOUT,
        _LABELS,
        *_TIMES,
        _attribute("capabilities", "object", **_ANYTHING),
        _attribute("model", "object", "readonly", **_ANYTHING),
        _attribute("modelsource", "object", **_ANYTHING),
    )
    served_names = _SERVED | {"specversion", "capabilities", "model", "modelsource"}
    return replace(
        _with_collections(attributes, served_names, groups),
        compared=frozenset({"registryid"}),
        reserved=frozenset(RESERVED_PATHS),
    )


def group(singular: str, resources: Iterable[str]) -> SpecAttributes:
    """The level of a Group type, with the collections of its Resource types."""
    attributes = _table(_id(singular), *_ADDRESS, _EPOCH, _NAME, *_ABOUT, _LABELS, *_TIMES, _DEPRECATED, _CONSTRAINTS)
    return _with_collections(attributes, _SERVED, resources)


def version(singular: str, hasdocument: bool) -> SpecAttributes:
    """The level of a Resource type's Versions, whose attributes its Resources show too."""
    attributes = _table(
        _id(singular),
        _id("version"),
        *_ADDRESS,
        _EPOCH,
        _NAME,
        _attribute("isdefault", "boolean", "readonly required", default=False),
        *_ABOUT,
        _LABELS,
        *_TIMES,
        _attribute("ancestorid", "string", "required"),
        _attribute("contenttype", "string"),
        _attribute("format", "string"),
        *_VALIDATED,
    )
    document = _document(singular) if hasdocument else {}
    navigation = tuple(_NAVIGATION)
    served_names = _SERVED | {"isdefault", *(row["name"] for row in _VALIDATED), *navigation}
    return SpecAttributes(
        # A type may be called `format`; then its document replaces the attribute of that name.
        attributes={name: row for name, row in attributes.items() if name not in document} | document,
        last=(*document, *navigation),
        served=served_names | (document.keys() - {f"{singular}url"}),
        reserved=frozenset((*navigation, *RESERVED_HEADERS)),
    )


def resource(singular: str) -> SpecAttributes:
    """The attributes of a Resource in addition to its default Version's: all of them are navigation."""
    attributes = _table(_id(singular), *_ADDRESS) | _NAVIGATION
    return SpecAttributes(attributes, last=tuple(_NAVIGATION), served=frozenset(attributes))


def meta(singular: str) -> SpecAttributes:
    """The level of a Resource type's `meta`."""
    attributes = _table(
        _id(singular),
        *_ADDRESS,
        _attribute("xref", "url"),
        _EPOCH,
        _LABELS,
        *_TIMES,
        _attribute("readonly", "boolean", "readonly required", default=False),
        _attribute("compatibility", "string", enum=_COMPATIBILITIES, strict=True),
        _DEPRECATED,
        _attribute("defaultversionid", "string", "required"),
        _attribute("defaultversionurl", "url", "readonly required"),
        _attribute("defaultversionsticky", "boolean", "required", default=False),
    )
    return SpecAttributes(attributes, served=_SERVED | {"defaultversionurl"})


def fixed_names() -> frozenset[str]:
    """Names on a Resource, its Versions or its meta that no name derived from its type's `singular` may hide."""
    levels = (version("", False), resource(""), meta(""))
    return frozenset(name for level in levels for name in level.attributes) - _REPLACEABLE - {"id"}


def collection(plural: str) -> Definitions:
    """The three attributes with which an entity shows one of its collections."""
    return _table(
        _attribute(f"{plural}url", "url", _FIXED),
        _attribute(f"{plural}count", "uinteger", "readonly required"),
        _attribute(plural, "map", item={"type": "object", **_ANYTHING}),
    )


_NAVIGATION: Final = _table(
    _attribute("metaurl", "url", _FIXED), _attribute("meta", "object", **_ANYTHING)
) | collection("versions")


def _id(singular: str) -> Definition:
    return _attribute(f"{singular}id", "string", "immutable required")


def singular_names(singular: str, hasdocument: bool) -> frozenset[str]:
    """The attribute names that are derived from the `singular` of a Resource type."""
    return frozenset({f"{singular}id", *(_document(singular) if hasdocument else ())})


def _document(singular: str) -> Definitions:
    return _table(
        _attribute(f"{singular}url", "url"),
        _attribute(singular, "any"),
        _attribute(f"{singular}base64", "string"),
    )


def _with_collections(attributes: Definitions, served_names: frozenset[str], plurals: Iterable[str]) -> SpecAttributes:
    collection_attributes = {name: row for plural in plurals for name, row in collection(plural).items()}
    return SpecAttributes(
        attributes | collection_attributes,
        last=tuple(collection_attributes),
        served=served_names | collection_attributes.keys(),
    )
