"""The fields of the form of a subscription, and the document that they make (UI-54)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from annals.api.ui.forms import TYPED_BEFORE, Form
from annals.api.ui.json_layout import indent
from annals.domain.errors.problems import Problem
from annals.domain.subscriptions.event_families import families_in_scope, families_of_types
from annals.domain.values.json_text import loads

#: The field that no page repeats.
CREDENTIAL: Final = "credential"
_WORDS_OF_START: Final = ("latest", "earliest")
#: The fields, each with the members of the document that it is about.
_MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "protocol": ("protocol",),
    "sink": ("sink",),
    "types": ("types",),
    "filters": ("filters",),
    "settings": ("protocolsettings",),
    "start": ("config",),
    CREDENTIAL: ("sinkcredential",),
}


@dataclass(frozen=True, slots=True)
class FieldText:
    """A field as the form shows it. error: empty for a value that is not refused."""

    name: str
    text: str
    error: str = ""


class InvalidField(ValueError):
    """A text of a field that stands for no value. name: of the field."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name


def texts_of(subscription: Mapping[str, Any]) -> dict[str, str]:
    """The texts of the fields for a subscription; the credential is never shown."""
    config = subscription.get("config", {})
    return {
        "protocol": subscription.get("protocol", "HTTP"),
        "sink": subscription.get("sink", ""),
        "types": "\n".join(subscription.get("types", ())),
        "filters": _json_text(subscription.get("filters")),
        "settings": _json_text(subscription.get("protocolsettings")),
        "start": str(config.get("starttime") or config.get("startposition", "latest")),
        CREDENTIAL: "",
    }


def texts_of_form(form: Form) -> dict[str, str]:
    """The texts that a browser sent; the credential is not sent back."""
    return {name: form.get(name) for name in _MEMBERS} | {CREDENTIAL: ""}


def has_credential(form: Form) -> bool:
    """Whether a credential was typed into the form, or before into one that it comes from. No page repeats it."""
    return bool(form.get(CREDENTIAL).strip() or form.get(CREDENTIAL + TYPED_BEFORE))


def document_of(form: Form, stored: Mapping[str, Any]) -> dict[str, Any]:
    """The subscription that a form describes. stored: has the members that no field is about. Raises: InvalidField."""
    document = {name: value for name, value in stored.items() if name not in ("id", "status")}
    types = [line.strip() for line in form.get("types").split("\n") if line.strip()]
    texts = {
        "sink": form.get("sink").strip(),
        "protocol": form.get("protocol"),
        "types": types,
        "filters": _parse_json("filters", form.get("filters"), list),
        "protocolsettings": _parse_json("settings", form.get("settings"), dict),
        "config": _families(types, stored) | _start(form.get("start").strip()),
    }
    if credential := _parse_json(CREDENTIAL, form.get(CREDENTIAL), dict):
        texts["sinkcredential"] = credential
    document |= texts
    return {name: value for name, value in document.items() if value not in ("", None, [], {})}


def stored_differences(document: Mapping[str, Any], stored: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The fields that a subscription would change, each with its stored text; without the credential."""
    return [
        (name, text)
        for name, text in texts_of(stored).items()
        if name != CREDENTIAL and _members(name, document) != _members(name, stored)
    ]


def _members(name: str, subscription: Mapping[str, Any]) -> list[Any]:
    """What a subscription has for a field; without the families, which are in `config` and in no field."""
    members = [subscription.get(member) for member in _MEMBERS[name]]
    return [texts_of(subscription)[name]] if name == "start" else members


def refused_field(problem: Problem) -> str:
    """The field that a refusal is about; empty for none."""
    pointer = str((problem.extensions or {}).get("pointer", ""))
    member = pointer.split("/")[1] if pointer.startswith("/") else ""
    return next((field for field, members in _MEMBERS.items() if member in members), "")


def _families(types: Sequence[str], stored: Mapping[str, Any]) -> dict[str, Any]:
    """The event families that new types leave as they are; nothing where the default for the types is to count.

    A stored subscription does not tell a default from the same choice, and the form has no field for families.
    """
    families, stored_types = stored.get("config", {}).get("families", []), stored.get("types", [])
    is_default = families == families_in_scope(None, stored_types, {})
    if types != stored_types and (is_default or not set(families_of_types(types)) <= set(families)):
        return {}
    return {"families": families} if families else {}


def _start(text: str) -> dict[str, Any]:
    if not text:
        return {}
    if text in _WORDS_OF_START:
        return {"startposition": text}
    if text.isascii() and text.isdecimal() and len(text) < 19:
        return {"startposition": int(text)}
    return {"starttime": text}


def _parse_json(name: str, text: str, type: type[Any]) -> Any:
    if not text.strip():
        return None
    try:
        value = loads(text)
    except ValueError as error:
        raise InvalidField(name, f"it is not JSON: {error}") from None
    if not isinstance(value, type):
        raise InvalidField(name, f"a JSON {'array' if type is list else 'object'} is needed")
    return value


def _json_text(value: Any) -> str:
    return indent(value) if value else ""
