"""What the form of an entity begins with: its values as texts, its document, and the state that they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from annals.api.ui.edit.fields import (
    DOCUMENT,
    META_OTHERS,
    OTHERS,
    Field,
    entity_fields,
    meta_fields,
    other_attributes,
)
from annals.api.ui.html_size import MAX_PART, fits
from annals.api.ui.page_context import PageContext
from annals.api.ui.registry_model import ModelPlace
from annals.domain.errors.problems import Problem


@dataclass(frozen=True)
class EntityState:
    """position: of the log. texts: by the names of fields. values: the same as values.

    versionid: of the default Version of a Resource. document: None if it is none that a form can show.
    document_url: of a document that is elsewhere; empty for one that is here. created: see `read_created`.
    """

    position: int
    texts: Mapping[str, str]
    values: Mapping[str, Any]
    epoch: int | None = None
    meta_epoch: int | None = None
    versionid: str | None = None
    document: str | None = ""
    formats: Sequence[str] = ()
    document_url: str = ""
    created: tuple[str, ...] = ()

    def text(self, name: str) -> str:
        """The text of a field; empty without one."""
        return self.texts.get(name, "")

    @property
    def has_plain_document(self) -> bool:
        """Whether a form can show the document as text."""
        return self.document is not None


async def read_formats(page: PageContext) -> list[str]:
    """The formats that the registry knows, for the combobox. They are not what the page is about."""
    raw_json = page.raw_json
    try:
        found: list[str] = (await page.get("/capabilities")).json.get("formats", [])
    except Problem:
        return []
    finally:
        page.raw_json = raw_json
    return [name for name in found if "*" not in name]


async def read_state(
    page: PageContext, place: ModelPlace, formats: Sequence[str], asof: str | None = None
) -> EntityState:
    """The state of an entity now, or at a position. Raises: NotFound."""
    query = {"asof": asof}
    answer = await page.get(place.api_path, query)
    entity = answer.json
    meta = (await page.get(f"{place.xid}/meta", query)).json if place.is_resource else {}
    values = _values(place, entity, meta, formats)
    texts = {each.name: each.text_of(values.get(each.name)) for each in all_fields(place, formats)}
    document = await _read_document(page, place, query) if place.has_document else ""
    return EntityState(
        answer.position or 0,
        texts | {DOCUMENT: document or ""},
        values,
        entity.get("epoch"),  # an xref that leads nowhere shows none
        meta.get("epoch"),
        entity.get("versionid") if place.is_resource else None,
        document,
        formats,
        entity.get(place.document_names[1], "") if place.has_document else "",
        _created(entity, meta),
    )


async def read_created(page: PageContext, place: ModelPlace) -> tuple[str, ...]:
    """When an entity was created, and the meta of a Resource. One that is created again may have the epoch of before.

    Raises: NotFound.
    """
    entity = (await page.get(place.api_path)).json
    return _created(entity, (await page.get(f"{place.xid}/meta")).json if place.is_resource else {})


def _created(entity: Mapping[str, Any], meta: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(each.get("createdat", "") for each in (entity, meta))


def all_fields(place: ModelPlace, formats: Sequence[str]) -> list[Field]:
    """The fields of an entity that exists."""
    return [*entity_fields(place, formats, is_new=False), *meta_fields(place, formats)]


def _values(
    place: ModelPlace, entity: Mapping[str, Any], meta: Mapping[str, Any], formats: Sequence[str]
) -> dict[str, Any]:
    own = {each.name: entity.get(each.name) for each in entity_fields(place, formats, is_new=False)}
    of_meta = {each.name: meta.get(each.label) for each in meta_fields(place, formats)}
    others = {
        OTHERS: other_attributes(place.attributes, entity) or None,
        META_OTHERS: other_attributes(place.meta_attributes, meta) or None,
    }
    return own | of_meta | others


async def _read_document(page: PageContext, place: ModelPlace, query: Mapping[str, str | None]) -> str | None:
    """The text of the document; None if it is none that a form can show."""
    answer = await page.get(place.xid, query)
    if answer.is_elsewhere:
        return ""
    try:
        text = answer.body.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text or not fits(text, MAX_PART) else text
