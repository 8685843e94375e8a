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
_REPLACEABLE_NAMES: Final = frozenset({"name", "description", "documentation", "icon", "labels", "format"})

#: First path segments that are in use, so no Group type and no Registry attribute may have these names (HTTP-4).
RESERVED_PATHS: Final = ("subscriptions", "compat", "ui", "export", "capabilitiesoffered")
#: The response header of this name has another meaning, so no Version attribute may have it (EV-32).
RESERVED_HEADERS: Final = ("xregcorrelationid",)


@dataclass(frozen=True, slots=True)
class SpecAttributes:
    """The spec-defined attributes of one level.

    attributes: its definitions. trailing_names: names that are serialized after extensions, in this order.
    served_names: names that only the server sets, even if a model describes them; a client's value is never stored.
    compared_names: read-only names that a request may state, to be compared with the stored value (ENT-15).
    reserved_names: names that the level does not define but no extension may have.
    """

    attributes: Definitions
    trailing_names: tuple[str, ...] = ()
    served_names: frozenset[str] = frozenset()
    compared_names: frozenset[str] = frozenset()
    reserved_names: frozenset[str] = frozenset()


def _define(name: str, type_name: str, flags: str = "", **aspects: Any) -> Definition:
    return {"name": name, "type": type_name, **dict.fromkeys(flags.split(), True), **aspects}


def _definitions_by_name(*rows: Definition) -> Definitions:
    return {row["name"]: row for row in rows}


_FIXED_FLAGS: Final = "readonly immutable required"
_ANY_ATTRIBUTES: Final[dict[str, Any]] = {"attributes": {"*": _define("*", "any")}}
_TEXT_ITEM: Final[dict[str, Any]] = {"item": {"type": "string"}}

_ADDRESS_ATTRIBUTES: Final = (
    _define("self", "url", _FIXED_FLAGS),
    _define("shortself", "url", "readonly immutable"),
    _define("xid", "xid", _FIXED_FLAGS),
)
_EPOCH: Final = _define("epoch", "uinteger", "readonly required")
_NAME: Final = _define("name", "string")
_DOCUMENTATION_ATTRIBUTES: Final = (
    _define("description", "string"),
    _define("documentation", "url"),
    _define("icon", "url"),
)
_LABELS: Final = _define("labels", "map", **_TEXT_ITEM)
_TIMESTAMPS: Final = (_define("createdat", "timestamp", "required"), _define("modifiedat", "timestamp", "required"))
_DEPRECATED: Final = _define(
    "deprecated",
    "object",
    attributes=_definitions_by_name(
        _define("alternative", "url"),
        _define("documentation", "url"),
        _define("effective", "timestamp"),
        _define("removal", "timestamp"),
        _define("*", "any"),
    ),
)
_CONSTRAINTS: Final = _define(
    "constraints",
    "map",
    item={
        "type": "object",
        "attributes": _definitions_by_name(
            _define("default", "any"),
            _define("enum", "array", item={"type": "any"}),
            _define("equals", "string"),
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
_VALIDATION_ATTRIBUTES: Final = (
    _define("formatvalidated", "boolean", "readonly"),
    _define("formatvalidatedreason", "string", "readonly"),
    _define("compatibilityvalidated", "boolean", "readonly"),
    _define("compatibilityvalidatedreason", "string", "readonly"),
)
_SERVED_NAMES: Final = frozenset({"self", "shortself", "xid", "epoch"})


def registry(groups: Iterable[str]) -> SpecAttributes:
    """The Registry level, with the collections of its Group types."""
    attributes = _definitions_by_name(
        _define("specversion", "string", "readonly required", default=SPECVERSION),
        _define("registryid", "string", _FIXED_FLAGS),
        *_ADDRESS_ATTRIBUTES,
        _EPOCH,
        _NAME,
        *_DOCUMENTATION_ATTRIBUTES,
        _LABELS,
        *_TIMESTAMPS,
        _define("capabilities", "object", **_ANY_ATTRIBUTES),
        _define("model", "object", "readonly", **_ANY_ATTRIBUTES),
        _define("modelsource", "object", **_ANY_ATTRIBUTES),
    )
    served_names = _SERVED_NAMES | {"specversion", "capabilities", "model", "modelsource"}
    return replace(
        _with_collections(attributes, served_names, groups),
        compared_names=frozenset({"registryid"}),
        reserved_names=frozenset(RESERVED_PATHS).difference(groups),
    )


def group(singular: str, resources: Iterable[str]) -> SpecAttributes:
    """The level of a Group type, with the collections of its Resource types."""
    attributes = _definitions_by_name(
        _id_attribute(singular),
        *_ADDRESS_ATTRIBUTES,
        _EPOCH,
        _NAME,
        *_DOCUMENTATION_ATTRIBUTES,
        _LABELS,
        *_TIMESTAMPS,
        _DEPRECATED,
        _CONSTRAINTS,
    )
    return _with_collections(attributes, _SERVED_NAMES, resources)


def version(singular: str, hasdocument: bool) -> SpecAttributes:
    """The level of a Resource type's Versions, whose attributes its Resources show too."""
    attributes = _definitions_by_name(
        _id_attribute(singular),
        _id_attribute("version"),
        *_ADDRESS_ATTRIBUTES,
        _EPOCH,
        _NAME,
        _define("isdefault", "boolean", "readonly required", default=False),
        *_DOCUMENTATION_ATTRIBUTES,
        _LABELS,
        *_TIMESTAMPS,
        _define("ancestorid", "string", "required"),
        _define("contenttype", "string"),
        _define("format", "string"),
        *_VALIDATION_ATTRIBUTES,
    )
    document = _document_attributes(singular) if hasdocument else {}
    navigation = tuple(_NAVIGATION_ATTRIBUTES)
    served_names = _SERVED_NAMES | {"isdefault", *(row["name"] for row in _VALIDATION_ATTRIBUTES), *navigation}
    return SpecAttributes(
        # A type may be called `format`; then its document replaces the attribute of that name.
        attributes={name: row for name, row in attributes.items() if name not in document} | document,
        trailing_names=(*document, *navigation),
        served_names=served_names | (document.keys() - {f"{singular}url"}),
        reserved_names=frozenset((*navigation, *RESERVED_HEADERS)),
    )


def resource(singular: str) -> SpecAttributes:
    """The attributes of a Resource in addition to its default Version's: all of them are navigation."""
    attributes = _definitions_by_name(_id_attribute(singular), *_ADDRESS_ATTRIBUTES) | _NAVIGATION_ATTRIBUTES
    return SpecAttributes(attributes, trailing_names=tuple(_NAVIGATION_ATTRIBUTES), served_names=frozenset(attributes))


def meta(singular: str) -> SpecAttributes:
    """The level of a Resource type's `meta`."""
    attributes = _definitions_by_name(
        _id_attribute(singular),
        *_ADDRESS_ATTRIBUTES,
        _define("xref", "url"),
        _EPOCH,
        _LABELS,
        *_TIMESTAMPS,
        _define("readonly", "boolean", "readonly required", default=False),
        _define("compatibility", "string", enum=_COMPATIBILITIES, strict=True),
        _DEPRECATED,
        _define("defaultversionid", "string", "required"),
        _define("defaultversionurl", "url", "readonly required"),
        _define("defaultversionsticky", "boolean", "required", default=False),
    )
    return SpecAttributes(attributes, served_names=_SERVED_NAMES | {"defaultversionurl"})


def fixed_names() -> frozenset[str]:
    """Names on a Resource, its Versions or its meta that no name derived from its type's `singular` may hide."""
    levels = (version("", False), resource(""), meta(""))
    return frozenset(name for level in levels for name in level.attributes) - _REPLACEABLE_NAMES - {"id"}


def collection(plural: str) -> Definitions:
    """The three attributes with which an entity shows one of its collections."""
    return _definitions_by_name(
        _define(f"{plural}url", "url", _FIXED_FLAGS),
        _define(f"{plural}count", "uinteger", "readonly required"),
        _define(plural, "map", item={"type": "object", **_ANY_ATTRIBUTES}),
    )


_NAVIGATION_ATTRIBUTES: Final = _definitions_by_name(
    _define("metaurl", "url", _FIXED_FLAGS), _define("meta", "object", **_ANY_ATTRIBUTES)
) | collection("versions")


def _id_attribute(singular: str) -> Definition:
    return _define(f"{singular}id", "string", "immutable required")


def singular_names(singular: str, hasdocument: bool) -> frozenset[str]:
    """The attribute names that are derived from the `singular` of a Resource type."""
    return frozenset({f"{singular}id", *(_document_attributes(singular) if hasdocument else ())})


def _document_attributes(singular: str) -> Definitions:
    return _definitions_by_name(
        _define(f"{singular}url", "url"),
        _define(singular, "any"),
        _define(f"{singular}base64", "string"),
    )


def _with_collections(attributes: Definitions, served_names: frozenset[str], plurals: Iterable[str]) -> SpecAttributes:
    collection_attributes = {name: row for plural in plurals for name, row in collection(plural).items()}
    return SpecAttributes(
        attributes | collection_attributes,
        trailing_names=tuple(collection_attributes),
        served_names=served_names | collection_attributes.keys(),
    )
