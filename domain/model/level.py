"""One level of a registry, as decisions use it: what clients may set, and what a valid entity is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from annals.domain.errors.problems import InvalidAttribute
from annals.domain.model.compiled_attributes import AttributeRules, CompiledAttributes
from annals.domain.model.defaults import assumed_defaults, has_defaults
from annals.domain.model.spec_attributes import Definitions, SpecAttributes
from annals.domain.model.validation import targets
from annals.domain.model.validation.targets import Types
from annals.domain.model.validation.value_errors import InvalidValue, MissingValues
from annals.domain.model.validation.values import ValueCheck
from annals.domain.registry.entities import Attributes
from annals.domain.registry.explicit_values import DefaultMarks
from annals.domain.values import dot_path, timestamps

_MEDIA_TYPE: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+[ \t]*(?:;.*)?\Z")


class Level:
    """The attributes of one level: the registry's, a Group type's, a Version's or a meta's.

    A request becomes an entity in three steps: `accept` its attributes, merge them with the stored ones, `complete` the
    result. This class does not handle what only the server sets (`self`, `shortself`, `xid`, `epoch`, `isdefault`,
    URLs, counts, nested collections, `capabilities`, `model`, `modelsource`, the document attributes, `formatvalidated`
    and similar ones): `accept` drops it, and `complete` neither requires nor returns it.
    """

    def __init__(self, definitions: Definitions, specified: SpecAttributes, types: Types) -> None:
        """definitions: those of a full model. Building costs O(definitions); a Level is built once per model.

        specified: which of them the specification defines; `self.specified` has their names.
        """
        rules = AttributeRules(
            types=types,
            trailing_names=specified.trailing_names,
            served_names=specified.served_names,
            compared_names=specified.compared_names,
            reserved_names=specified.reserved_names,
            extra_checks=_extra_checks(specified, types),
        )
        self.definitions = definitions
        self.spec_names = frozenset(specified.attributes)
        self.types = types
        self._has_defaults = has_defaults(definitions)
        self._compiled = CompiledAttributes(
            {name: _checked_definition(name, row, specified) for name, row in definitions.items()}, rules
        )

    def accept(self, requested: Mapping[str, Any], stored: Mapping[str, Any] | None = None) -> Attributes:
        """The attributes that a client may set: without read-only ones at every depth; nulls stay (they mean "delete").

        stored: the entity's attributes, for a request that changes only some of them. They decide which siblings of
            `ifvalues` are enabled and may be read-only.
        """
        try:
            return self._compiled.accept(requested, stored)
        except InvalidValue:
            # Two siblings contradict each other: `complete` refuses and names them.
            return dict(requested)

    def settable_values(self, stored: Attributes) -> Attributes:
        """A stored entity's attributes without what only the server sets: the input and output of `complete`."""
        return self._compiled.settable_values(stored)

    def readonly_values(self, stored: Attributes, replacement: Attributes) -> Attributes:
        """The stored values that a full replacement keeps: those of read-only attributes that the model defines.

        replacement: its values; they decide which siblings there are.
        """
        return self._compiled.readonly_values(stored, replacement)

    def complete(self, attributes: Attributes, xid: str, removed_names: frozenset[str] = frozenset()) -> Attributes:
        """The whole entity: without nulls, with defaults, types checked, timestamps in UTC, in serialization order.

        attributes: everything that clients can set on this level, including ids (`dirid`; a Version's `versionid` and
            `ancestorid`), `createdat`, `modifiedat`, and a meta's `defaultversionid`.
        removed_names: names that the request set to null, for the error of a required attribute (ENT-19).
        Raises: InvalidAttribute, UnknownAttribute, RequiredAttributeMissing, MalformedXid, MalformedXref.
        """
        try:
            return self._compiled.complete(attributes)
        except MissingValues as invalid_value:
            deleted = next((path for path in invalid_value.paths if path[0] in removed_names), None)
            if deleted is None:
                raise invalid_value.problem(xid) from None
            detail = "it is required, so it cannot be deleted"
            raise InvalidAttribute(xid, name=dot_path.text(deleted), error_detail=detail) from None
        except InvalidValue as invalid_value:
            raise invalid_value.problem(xid) from None

    def assumed_defaults(self, values: Attributes) -> DefaultMarks:
        """Marks of the values that equal the model's defaults, and would be the same if no client had given them."""
        return assumed_defaults(self.definitions, values) if self._has_defaults else {}

    def order(self, attributes: Attributes) -> Attributes:
        """The same in serialization order: the model's, then extensions by name; including server-set names."""
        return self._compiled.order(attributes)


def _checked_definition(name: str, definition: dict[str, Any], specified: SpecAttributes) -> dict[str, Any]:
    """A definition in the form that checks values, which differs from the published full model (C-15)."""
    if name not in specified.attributes:
        return definition
    if name == "compatibility":
        return definition | {"fold": True}
    if name == "xref":
        return definition | {"type": "string"}
    return definition | {"type": "uri"} if _is_document_url(name, definition, specified) else definition


def _is_document_url(name: str, definition: dict[str, Any], specified: SpecAttributes) -> bool:
    return name in specified.trailing_names and name.endswith("url") and not definition.get("readonly")


def _extra_checks(specified: SpecAttributes, types: Types) -> dict[str, ValueCheck]:
    """The rules about spec-defined attributes that the model language cannot express."""
    rules: dict[str, ValueCheck] = {**SPEC_RULES, "xref": lambda value: targets.check_xref(value, types)}
    rules |= {
        name: _check_not_empty for name, row in specified.attributes.items() if _is_document_url(name, row, specified)
    }
    return {name: rules[name] for name in specified.attributes if name in rules}


def _check_not_empty(value: Any) -> Any:
    if value == "":
        raise InvalidValue("it is empty")
    return value


def _check_media_type(value: Any) -> Any:
    if not _MEDIA_TYPE.match(value):
        raise InvalidValue(f"{value!r} is not a media type")
    return value


def _removed_after_effective(value: Any) -> Any:
    effective, removal = value.get("effective"), value.get("removal")
    if effective and removal and timestamps.instant_key(removal) < timestamps.instant_key(effective):
        raise InvalidValue("it is before effective", ("removal",))
    return value


#: Rules by attribute name that the model language cannot express.
SPEC_RULES: Final[dict[str, ValueCheck]] = {
    "name": _check_not_empty,
    "documentation": _check_not_empty,
    "icon": _check_not_empty,
    "format": _check_not_empty,
    "contenttype": _check_media_type,
    "deprecated": _removed_after_effective,
}
