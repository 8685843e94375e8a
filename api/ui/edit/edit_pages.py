"""The pages that make and edit entities (UI-44, UI-80 to UI-84)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple

from annals.api.http.response import Headers, Response
from annals.api.ui.edit.check_result import check_document
from annals.api.ui.edit.conflict import conflict_page, merged_form
from annals.api.ui.edit.dry_runs import future_events
from annals.api.ui.edit.entity_form import EntityForm
from annals.api.ui.edit.entity_state import EntityState, read_created, read_formats, read_state
from annals.api.ui.edit.fields import (
    ACTION,
    DOCUMENT,
    DOCUMENT_FILE,
    EPOCH,
    META_EPOCH,
    POSITION,
    SWITCH,
    VERSION,
    FieldError,
    entity_fields,
    meta_fields,
)
from annals.api.ui.edit.request_body import changed_values, document_members, request_body, stated_values
from annals.api.ui.explore.entity_view import find_place
from annals.api.ui.forms import Form, read_upload
from annals.api.ui.own_api import ApiAnswer, Query
from annals.api.ui.page_context import PageContext, url_path
from annals.api.ui.registry_model import ModelPlace
from annals.api.ui.rights import require_writer
from annals.domain.errors.http_errors import Forbidden
from annals.domain.errors.problems import BadRequest, MismatchedEpoch, MismatchedId, NotFound, Problem

CHECK: Final = "check"
PREVIEW: Final = "preview"
DISCARD: Final = "discard"
MERGED: Final = "merged"
AGAIN: Final = "again"
_DRY_RUN: Final = {"dryrun": ""}
_ONLY_NEW: Final[Headers] = [(b"if-none-match", b"*")]
_ONLY_EXISTING: Final[Headers] = [(b"if-match", b"*")]


class Write(NamedTuple):
    """A request to the API that carries out what a form says. path: of the page that is shown afterwards."""

    method: str
    api_path: str
    body: dict[str, Any]
    headers: Headers
    path: str


async def new_page(page: PageContext) -> Response:
    """The page that makes a member of a collection. Raises: NotFound, Forbidden."""
    _, place = await find_place(page, page.path_params["xid"])
    if not place.is_collection:
        raise NotFound(place.xid)
    require_writer(page, place)
    page.raw_json = url_path(place.xid)
    base = await _state_of_new(page, place)
    form = EntityForm(f"Create {place.singular}", place, True, base, page.link(f"explore{place.xid}"))
    return await (form.render(page) if page.request.method != "POST" else _act(page, form))


async def edit_page(page: PageContext) -> Response:
    """The page that edits an entity. Raises: NotFound, Forbidden."""
    _, place = await find_place(page, page.path_params.get("xid", ""))
    if place.is_collection:
        raise NotFound(place.xid)
    require_writer(page, place)
    formats = await read_formats(page)
    id = place.segments[-1] if place.segments else "registry"
    cancel = page.link(f"explore{place.xid}")
    if page.request.method != "POST":
        return await EntityForm(f"Edit {id}", place, False, await read_state(page, place, formats), cancel).render(page)
    form = await _read_form(page)
    base = await read_state(page, place, formats, form.get(POSITION) or None)
    return await _act(page, EntityForm(f"Edit {id}", place, False, base, cancel, form))


async def _state_of_new(page: PageContext, place: ModelPlace) -> EntityState:
    """What a new entity begins with: a Version with what the default Version has, all others with nothing."""
    formats = await read_formats(page)
    if not place.is_version:
        fields = (*entity_fields(place, formats, is_new=True), *meta_fields(place, formats))
        defaults = {each.name: each.text_of(each.default) for each in fields if each.kind == SWITCH}
        return EntityState(0, defaults, {}, formats=formats)
    resource = ModelPlace(place.segments[:4], place.segments[2], str(place.definition["singular"]), place.definition)
    default = await read_state(page, resource, formats)
    texts = {name: text for name, text in default.texts.items() if not name.startswith("meta.")}
    texts |= {"ancestorid": default.versionid or ""}
    return EntityState(0, texts, default.values, document="", formats=formats)


async def _act(page: PageContext, shown: EntityForm) -> Response:
    """What a button of the form does."""
    form = shown.form or await _read_form(page)
    action = form.get(ACTION)
    if action == AGAIN:
        return await replace(shown, form=form).render(page)
    if action == DISCARD:
        return page.redirect(f"explore{shown.place.xid}")
    if action == MERGED:
        form = merged_form(form, shown.base.texts)
    shown = replace(shown, form=form)
    if action == CHECK:
        if not shown.place.has_document:
            raise BadRequest(error_detail="only a document can be checked")
        versionid = None if shown.is_new else form.get(VERSION) or shown.base.versionid or shown.place.segments[-1]
        return await replace(shown, check=await check_document(page, shown.place, form, versionid)).render(page)
    try:
        write = _write(shown)
        if write is not None and await _is_created_again(page, shown):
            return await conflict_page(page, shown)
        if action == PREVIEW:
            answer = await _send(page, write, _DRY_RUN) if write else None
            events = future_events(answer) if answer else future_events(ApiAnswer(200, [], b"[]"))
            return await replace(shown, events=events).render(page)
        if write is None:
            return page.redirect(f"explore{shown.place.xid}", saved="nothing")
        return page.saved(write.path, await _send(page, write))
    except FieldError as error:
        return await shown.mistaken(error).render(page, 400)
    except Forbidden:
        raise
    except Problem as problem:
        if _is_conflict(shown, problem):
            return await conflict_page(page, shown)
        return await shown.refused(page, problem).render(page, problem.status)


async def _is_created_again(page: PageContext, shown: EntityForm) -> bool:
    """Whether somebody deleted and made the entity again since the form was loaded, which its epoch does not say."""
    try:
        return not shown.is_new and await read_created(page, shown.place) != shown.base.created
    except NotFound:  # the write says what is wrong
        return False


def _is_conflict(shown: EntityForm, problem: Problem) -> bool:
    """Whether somebody changed the entity since the form was loaded, or made another Version the default one."""
    if isinstance(problem, MismatchedId):
        return shown.place.is_resource and problem.arguments["singular"] == "version"
    return isinstance(problem, MismatchedEpoch)


async def _read_form(page: PageContext) -> Form:
    """The form that was sent, or the one that a sign-in has kept, which is only shown."""
    form = await read_upload(page.request, page.receive)
    return Form({**form.kept, ACTION: AGAIN}, {}) if form.kept else form


async def _send(page: PageContext, write: Write, query: Query | None = None) -> ApiAnswer:
    return await page.send(write.method, write.api_path, query, write.body, headers=write.headers)


def _write(shown: EntityForm) -> Write | None:
    """The request that a form stands for; None if it changes nothing. Raises: FieldError."""
    return _write_of_new(shown) if shown.is_new else _write_of_change(shown)


def _write_of_new(shown: EntityForm) -> Write:
    form, place = shown.form, shown.place
    assert form is not None, "the form was sent"
    id = form.get(place.id_name).strip()
    if not id and not place.is_version:
        raise FieldError(place.id_name, "It is required.")
    fields = [field for field in shown.fields if field.name != place.id_name]
    body = request_body(place, stated_values(fields, form, shown.base), {}) | document_members(place, form, "")
    if file := form.files.get(DOCUMENT_FILE):
        body.setdefault("contenttype", file.type)
    elif place.has_document and form.get(DOCUMENT).lstrip()[:1] in ("{", "["):
        body.setdefault("contenttype", "application/json")
    details = "$details" if place.has_document else ""
    if not id:
        resource = "/" + "/".join(place.segments[:4])
        return Write("POST", resource + details, body, [], f"explore{resource}")
    xid = f"{place.xid}/{id.replace('/', '%2F')}"  # a slash in an id is a mistake, and no other path
    return Write("PUT", xid + details, body, _ONLY_NEW, f"explore{xid}")


def _write_of_change(shown: EntityForm) -> Write | None:
    form, place, base = shown.form, shown.place, shown.base
    assert form is not None, "the form was sent"
    changed = changed_values(shown.fields, form, base)
    body = request_body(place, changed, base.values) | document_members(place, form, base.document)
    if not body:
        return None
    path = f"explore{place.xid}"
    meta = body.get("meta") if place.is_resource else None  # elsewhere it is an extension like any other
    if meta is not None:
        meta["epoch"] = _number(form.get(META_EPOCH))
        if len(body) == 1:  # the default Version is not touched
            return Write("PATCH", f"{place.xid}/meta", meta, _ONLY_EXISTING, path)
    body["epoch"] = _number(form.get(EPOCH))
    if versionid := form.get(VERSION):
        body["versionid"] = versionid
    return Write("PATCH", place.api_path, body, _ONLY_EXISTING, path)


def _number(text: str) -> int | None:
    """An epoch that the form was loaded with."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None
