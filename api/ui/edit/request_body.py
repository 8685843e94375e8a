"""The body of a write that a form stands for: the attributes that differ from what the form began with."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final

from annals.api.ui.edit.entity_state import EntityState
from annals.api.ui.edit.fields import DOCUMENT, DOCUMENT_FILE, META, META_OTHERS, OTHERS, Field, FieldError
from annals.api.ui.forms import Form, with_line_feeds
from annals.api.ui.registry_model import ModelPlace
from annals.domain.values.json_text import is_equal

_META_NAME: Final = "meta"


def changed_values(fields: Sequence[Field], form: Form, base: EntityState) -> dict[str, Any]:
    """The values whose texts differ from what the form began with, by the names of fields; None for one that is to go.

    Raises: FieldError.
    """
    found: dict[str, Any] = {}
    for field in fields:
        text = form.get(field.name)
        if text != with_line_feeds(base.text(field.name)):
            value = field.value_of(text)
            if not is_equal(value, base.values.get(field.name)):
                found[field.name] = value
    return found


def stated_values(fields: Sequence[Field], form: Form, base: EntityState) -> dict[str, Any]:
    """The values of a new entity, by the names of fields; of a switch that is off, if it is required, has a default, or
    was off in what the form began with.

    Raises: FieldError.
    """
    stated: dict[str, Any] = {}
    for field in fields:
        value = field.value_of(form.get(field.name))
        is_off = value is False and not (field.is_required or field.default is not None)
        if value is not None and (not is_off or base.values.get(field.name) is False):
            stated[field.name] = value
    return stated


def request_body(place: ModelPlace, changed: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a write, with the meta in its own object. Raises: FieldError."""
    others = _changed_extensions(OTHERS, changed, base)
    if place.is_resource and _META_NAME in (changed.get(OTHERS) or ()):
        raise FieldError(OTHERS, 'Remove "meta": a Resource has its members as the fields below "Meta".')
    named = {name: value for name, value in changed.items() if name not in (OTHERS, META_OTHERS)}
    body = {name: value for name, value in named.items() if not name.startswith(META)} | others
    meta = {name.removeprefix(META): value for name, value in named.items() if name.startswith(META)}
    meta |= _changed_extensions(META_OTHERS, changed, base)
    return body | ({_META_NAME: meta} if meta else {})


def _changed_extensions(field: str, changed: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a field with extensions that differ; None for one that is to go. Raises: FieldError."""
    if field not in changed:
        return {}
    before, after = base.get(field) or {}, changed[field] or {}
    if not isinstance(after, dict):
        raise FieldError(field, "This has to be a JSON object.")
    removed = {name: None for name in before if name not in after}
    return removed | {name: value for name, value in after.items() if not is_equal(value, before.get(name))}


def document_members(place: ModelPlace, form: Form, base: str | None) -> dict[str, Any]:
    """The members that replace the document; none if it is unchanged. base: its text before, None if it is no text.

    A file comes before the text. Bytes are sent as they are, so the stored document is what was typed or chosen.
    """
    if not place.has_document:
        return {}
    name, _, base64_name = place.document_names
    if (file := form.files.get(DOCUMENT_FILE)) is not None:
        return {base64_name: b64encode(file.content).decode()}
    text = form.get(DOCUMENT)
    if base is None or DOCUMENT not in form.fields or text == with_line_feeds(base):
        return {}
    if not text:
        return {name: None}
    return {base64_name: b64encode(_with_line_ends_of(base, text).encode()).decode()}


def document_bytes(form: Form) -> bytes:
    """The document that a form has."""
    file = form.files.get(DOCUMENT_FILE)
    return file.content if file is not None else form.get(DOCUMENT).encode()


def document_text(form: Form) -> str:
    """The document that a form has, as text; other bytes are replaced."""
    return document_bytes(form).decode(errors="replace")


def _with_line_ends_of(base: str, text: str) -> str:
    """The text with the line ends that the document had before, which forms do not keep."""
    return text.replace("\n", "\r\n") if base.count("\r\n") > base.count("\n") / 2 else text
