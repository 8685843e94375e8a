"""The fields of the form of an entity: which attributes it has, and how values become texts and texts become values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from annals.api.ui.json_layout import indent
from annals.api.ui.registry_model import SERVER_SET, ModelPlace
from annals.domain.values.json_text import InvalidJson, dumps, loads, unquoted

TEXT: Final = "text"
NUMBER: Final = "number"
CHOICE: Final = "choice"
SWITCH: Final = "switch"
JSON: Final = "json"
#: The prefix of the names of fields of a Resource's meta.
META: Final = "meta."
#: The fields without an attribute of their own.
OTHERS: Final = "other attributes"
DOCUMENT: Final = "document text"
DOCUMENT_FILE: Final = "document file"
#: The fields of the form itself. Their names have a space, which no attribute has.
ACTION: Final = "form action"
POSITION: Final = "loaded position"
EPOCH: Final = "loaded epoch"
META_EPOCH: Final = "loaded meta epoch"
VERSION: Final = "loaded version"
#: The extensions of a Resource's meta.
META_OTHERS: Final = META + OTHERS
#: The attributes that the specification gives each meta: those that the form has, and others that clients can write.
_META_NAMES: Final = ("defaultversionid", "defaultversionsticky", "compatibility", "deprecated")
_HIDDEN_META_NAMES: Final = SERVER_SET | {*_META_NAMES, "labels", "xref"}
_KINDS: Final = {
    "boolean": SWITCH,
    **dict.fromkeys(("integer", "uinteger", "decimal"), NUMBER),
    **dict.fromkeys(("map", "object", "array", "any"), JSON),
}
_ON: Final = "on"


class FieldError(Exception):
    """A text that is no value of its field. name: of the field."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name
        self.text = text


class Field(NamedTuple):
    """One field. name: in the form; label: the name of the attribute. choices: of a combobox, without the empty one.

    is_number: whether the values are numbers. default: the value of an entity without one; None without a default.
    """

    name: str
    label: str
    kind: str
    is_required: bool = False
    description: str = ""
    choices: Sequence[str] = ()
    is_number: bool = False
    default: Any = None

    @property
    def id(self) -> str:
        """The id of the control in the page."""
        return "field-" + self.name.replace(" ", "-")

    def text_of(self, value: Any) -> str:
        """A value as the form shows it; empty for None."""
        if value is None:
            return ""
        if self.kind == SWITCH:
            return _ON if value else ""
        if self.kind == JSON:
            return _indented(value)
        return unquoted(value)

    @property
    def is_long(self) -> bool:
        """Whether its text can have several lines."""
        return self.kind == TEXT and self.label == "description"

    def value_of(self, text: str) -> Any:
        """The value of a text; None for no value. Raises: FieldError."""
        if self.kind == SWITCH:
            return text == _ON
        if not text.strip():
            return None
        if self.kind != JSON and not self.is_number:
            return text
        try:
            return loads(text.encode())
        except InvalidJson as error:
            what = "a number" if self.is_number else "JSON"
            raise FieldError(self.name, f"This is not {what}: {error}.") from None


def entity_fields(place: ModelPlace, formats: Sequence[str], *, is_new: bool) -> list[Field]:
    """The fields of an entity at a place, without those of its meta and its document."""
    fields = [_id_field(place)] if is_new else []
    hidden = _hidden_names(place, is_new=is_new)
    fields += [
        _field(name, name, definition, formats)
        for name, definition in place.attributes.items()
        if name not in hidden and not definition.get("readonly")
    ]
    return [*fields, Field(OTHERS, "Other attributes", JSON, description="Extensions, as one JSON object.")]


def meta_fields(place: ModelPlace, formats: Sequence[str]) -> list[Field]:
    """The fields of the group "Meta"; none for what is no Resource."""
    if not place.is_resource:
        return []
    definitions = place.meta_attributes
    fields = [
        _field(META + name, name, definitions[name], formats)._replace(is_required=False)
        for name in _META_NAMES
        if name in definitions
    ]
    fields += [
        _field(META + name, name, definition, formats)
        for name, definition in definitions.items()
        if name not in _HIDDEN_META_NAMES and name != f"{place.singular}id" and not definition.get("readonly")
    ]
    if place.has_meta_extensions:
        fields.append(Field(META_OTHERS, "Other meta attributes", JSON, description="Extensions, as one JSON object."))
    return fields


def other_attributes(definitions: Collection[str], entity: Mapping[str, Any]) -> dict[str, Any]:
    """The extensions of an entity, which the model does not name. definitions: the names that it has."""
    return {name: value for name, value in entity.items() if name not in definitions}


def _id_field(place: ModelPlace) -> Field:
    is_chosen_by_server = place.is_version
    description = "The server counts if this is empty." if is_chosen_by_server else ""
    return Field(place.id_name, place.id_name, TEXT, not is_chosen_by_server, description)


def _hidden_names(place: ModelPlace, *, is_new: bool) -> Collection[str]:
    """Attributes that a form does not have: ids, collections, the document, and what the server sets."""
    nested = place.nested_names
    names = {place.id_name, f"{place.definition.get('singular', '')}id", *place.server_set, *nested}
    names |= {f"{name}{suffix}" for name in nested for suffix in ("url", "count")}
    if place.is_resource or place.is_version:
        names |= {"versionid"} if place.is_version and is_new else {"versionid", "ancestorid"}
    return names | {*place.document_names[:1], *place.document_names[2:]}


def _field(name: str, label: str, definition: Mapping[str, Any], formats: Sequence[str]) -> Field:
    type = definition.get("type", "string")
    choices = [unquoted(each) for each in definition.get("enum", ())]
    if label == "format" and not choices:
        choices = list(formats)
    kind = _KINDS.get(type, TEXT)
    is_choice = bool(choices) and kind in (TEXT, NUMBER)
    default = definition.get("default")
    is_required = bool(definition.get("required")) and default is None and label != "ancestorid"
    description = definition.get("description", "")
    return Field(name, label, CHOICE if is_choice else kind, is_required, description, choices, kind == NUMBER, default)


def _indented(value: Any) -> str:
    """JSON in lines of one member each; short values in one line."""
    text = dumps(value).decode()
    if len(text) <= 60:
        return text
    return indent(value)
