"""The page of a save that comes after another change of the same entity (UI-84)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

from annals.api.http.response import Response
from annals.api.ui.edit.entity_form import EntityForm
from annals.api.ui.edit.entity_state import EntityState, read_state
from annals.api.ui.edit.fields import DOCUMENT, Field, FieldError
from annals.api.ui.edit.line_merge import merge_lines
from annals.api.ui.forms import Form, with_line_feeds
from annals.api.ui.page_context import PageContext
from annals.domain.values.json_text import is_equal

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
        file_name=shown.file_name,
        loses_text=shown.base.has_plain_document and not now.has_plain_document and _has_new_text(shown.base, form),
        rows=rows,
        hidden={**kept, **merged},
        now=now,
        action=page.link(page.path),
    )


def _has_new_text(base: EntityState, form: Form) -> bool:
    return form.get(DOCUMENT) != with_line_feeds(base.text(DOCUMENT))


def merged_form(form: Form, theirs: Mapping[str, str]) -> Form:
    """The form of the entity that the form "Conflict" stands for, with what was chosen where both sides differ.

    theirs: the texts of what was stored when that form was shown.
    """
    fields = dict(form.fields)
    for name, side in form.fields.items():
        if name.startswith(PICK) and side == "theirs":
            field = name.removeprefix(PICK)
            fields[field] = with_line_feeds(theirs.get(field, ""))
    return Form(fields, form.files)


def _merge(
    base: EntityState, now: EntityState, form: Form, labels: Mapping[str, str], kinds: Mapping[str, Field]
) -> list[MergedField]:
    """The fields that one side or both have changed."""
    rows = []
    for name, label in labels.items():
        loaded, theirs, yours = (with_line_feeds(text) for text in (base.text(name), now.text(name), form.get(name)))
        is_same = partial(_means_the_same, kinds.get(name))
        if is_same(loaded, theirs) and is_same(loaded, yours):
            continue
        merged: str | None = None
        if is_same(yours, loaded):
            merged = theirs
        elif is_same(theirs, loaded) or is_same(theirs, yours):
            merged = yours
        elif name == DOCUMENT:
            merged = merge_lines(loaded, theirs, yours)
        rows.append(MergedField(name, label, loaded, theirs, yours, merged))
    return rows


def _means_the_same(field: Field | None, text: str, other: str) -> bool:
    """Whether two texts are equal, or mean the same value of a field."""
    if text == other or field is None:
        return text == other
    try:
        return is_equal(field.value_of(text), field.value_of(other))
    except FieldError:
        return False
