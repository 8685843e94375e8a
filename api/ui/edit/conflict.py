"""The page of a save that comes after another change of the same entity (UI-84)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

from annals.api.http.response import Response
from annals.api.ui.edit.entity_form import EntityForm
from annals.api.ui.edit.entity_state import EntityState, read_state
from annals.api.ui.edit.fields import DOCUMENT, Field, FieldError
from annals.api.ui.edit.line_merge import merge_lines
from annals.api.ui.forms import Form
from annals.api.ui.page_context import PageContext

_CONFLICT: Final = 409
#: The prefix of the fields of the form "Conflict" that say which side was chosen.
PICK: Final = "pick "


class MergedField(NamedTuple):
    """A field that one side or both have changed. merged: the value that a save takes; None if both differ."""

    name: str
    label: str
    loaded: str
    now: str
    yours: str
    merged: str | None


async def conflict_page(page: PageContext, shown: EntityForm) -> Response:
    """The page: what the form began with, what the entity has now, and what the form has."""
    form = shown.form
    assert form is not None, "the form was sent"
    now = await read_state(page, shown.place, shown.base.formats)
    labels = {each.name: each.label for each in shown.fields}
    if shown.place.has_document and now.has_plain_document and shown.base.has_plain_document:
        labels[DOCUMENT] = "Document"
    kinds = {each.name: each for each in shown.fields}
    rows = await asyncio.to_thread(_merge, shown.base, now, form, labels, kinds)
    merged = {row.name: row.merged if row.merged is not None else row.yours for row in rows}
    kept = {name: form.get(name) for name in labels if name not in merged}
    return await page.render(
        "edit/conflict.html",
        "Conflict",
        _CONFLICT,
        place=shown.place,
        rows=rows,
        hidden={**kept, **merged},
        now=now,
        action=page.link(page.path),
    )


def merged_form(form: Form, theirs: Mapping[str, str]) -> Form:
    """The form of the entity that the form "Conflict" stands for, with what was chosen where both sides differ.

    theirs: the texts of what was stored when that form was shown.
    """
    fields = dict(form.fields)
    for name, side in form.fields.items():
        if name.startswith(PICK) and side == "theirs":
            field = name.removeprefix(PICK)
            fields[field] = theirs.get(field, "").replace("\r\n", "\n")
    return Form(fields, form.files)


def _merge(
    base: EntityState, now: EntityState, form: Form, labels: Mapping[str, str], kinds: Mapping[str, Field]
) -> list[MergedField]:
    """The fields that one side or both have changed."""
    rows = []
    for name, label in labels.items():
        texts = base.texts.get(name, ""), now.texts.get(name, ""), form.get(name)
        loaded_value, now_value, your_value = (_comparable(kinds.get(name), text) for text in texts)
        if loaded_value == now_value == your_value:
            continue
        loaded, theirs, yours = texts
        merged: str | None = None
        if your_value == loaded_value:
            merged = theirs
        elif now_value in (loaded_value, your_value):
            merged = yours
        elif name == DOCUMENT:
            merged = merge_lines(loaded.replace("\r\n", "\n"), theirs.replace("\r\n", "\n"), yours)
        rows.append(MergedField(name, label, loaded, theirs, yours, merged))
    return rows


def _comparable(field: Field | None, text: str) -> object:
    """What two texts of a field have in common if they mean the same value."""
    if field is None:
        return text.replace("\r\n", "\n")
    try:
        return field.value_of(text, None)
    except FieldError:
        return text
