"""Entities with inlined parts: splices into the stored text give the same JSON as splitting it into members."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.api.xregistry.render.entities import PeekableRows, Renderer
from annals.api.xregistry.render.json_members import join_members
from annals.api.xregistry.render.render_options import VALIDATION_ATTRIBUTES, RenderOptions
from annals.api.xregistry.request.inline import InlineTree
from annals.domain.model import compile_model
from annals.domain.registry.events import EntityCreated
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads
from annals.projections.entities.rows import EntityRow, entity_row
from tests.support.registries.in_process import MODEL

FILE, NOTE = (compile_model(MODEL).groups["dirs"].resources[plural] for plural in ("files", "notes"))
XID = "/dirs/d~1/files/f"
OPTIONS = (
    RenderOptions("http://h"),
    RenderOptions("http://h", binary=True, asof_suffix="?asof=3"),
    RenderOptions("http://h", doc=True),
    RenderOptions("http://h", doc=True, root="/dirs/d~1", asof_suffix="?asof=3"),
)
#: Names that the splices look for, and others.
NAMES = st.sampled_from(
    [*VALIDATION_ATTRIBUTES, "contenttype", "fileurl", "defaultversionid", "versionscount", "meta", "other"]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.text(max_size=5)
    | st.sampled_from(['a","meta":{', "1.10", '"', ',"contenttype":"x']),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)
EXTENSIONS = st.dictionaries(NAMES.filter(lambda name: name not in ("meta", "versionscount")), VALUES, max_size=4)
INLINED = st.sets(st.sampled_from(["file", "meta", "versions"])).map(dict.fromkeys)


def row(xid: str, attributes: dict[str, Any]) -> EntityRow:
    event = EntityCreated(
        xid=xid,
        type=xids.type_of(xid),
        revision=1,
        epoch=1,
        attributes=attributes,
        private={"document": "hash"},
        xregcorrelationid="c",
        time=datetime(2026, 1, 2, tzinfo=UTC),
    )
    return entity_row(event, 7)


def resource_row(attributes: dict[str, Any], meta: dict[str, Any]) -> EntityRow:
    ids = {"fileid": "f", "versionid": "1", "epoch": 1}
    meta = {"fileid": "f", "epoch": 1, "defaultversionid": "1", **meta}
    return row(XID, {**ids, **attributes, "meta": meta, "versionscount": 1})


def version_row(attributes: dict[str, Any]) -> EntityRow:
    return row(f"{XID}/versions/1", {"fileid": "f", "versionid": "1", "epoch": 1, **attributes})


def renderer(options: RenderOptions, content: bytes = b'{"a":1}') -> Renderer:
    return Renderer(options, lambda _: content, PeekableRows([]))


@pytest.mark.parametrize("options", OPTIONS)
@given(EXTENSIONS, EXTENSIONS, INLINED)
def test_a_resource_is_the_same(
    options: RenderOptions, attributes: dict[str, Any], meta: dict[str, Any], inlined: dict[str, None]
) -> None:
    inline: InlineTree = {name: {} for name in inlined}
    used, found = renderer(options), resource_row(attributes, meta)
    assert used._splices.resource(found, FILE, inline) in (None, used._resource_opening(found, FILE, inline))


@pytest.mark.parametrize("options", OPTIONS)
@given(EXTENSIONS, st.booleans())
def test_a_version_is_the_same(options: RenderOptions, attributes: dict[str, Any], has_document: bool) -> None:
    inline: InlineTree = {"file": {}} if has_document else {}
    used, found = renderer(options), version_row(attributes)
    whole = "{" + join_members(used.version_members(found, FILE, inline)) + "}"
    assert used._splices.version(found, FILE, inline) in (None, whole)


@pytest.mark.parametrize("options", OPTIONS)
def test_usual_texts_are_not_split(options: RenderOptions) -> None:
    validated = {name: "because" if name.endswith("reason") else True for name in VALIDATION_ATTRIBUTES}
    attributes = {"name": 'a "b"', "labels": {"a": "b"}, "contenttype": "application/json", "size": 1.5, **validated}
    inline: InlineTree = {"file": {}, "meta": {}, "versions": {"file": {}}}
    used = renderer(options)
    resource = used._splices.resource(resource_row(attributes, {"readonly": False}), FILE, inline)
    version = used._splices.version(version_row(attributes), FILE, inline)
    assert resource and version
    members = loads(version)
    assert ("formatvalidated" in members) is not options.doc
    assert members["filebase64" if options.binary else "file"] == ("eyJhIjoxfQ==" if options.binary else {"a": 1})
    assert used._splices.version(version_row(attributes), NOTE, inline) is None  # its ids have other names


@pytest.mark.parametrize(
    "text",
    [
        '"labels":{"formatvalidated":"x"},"formatvalidated":true',
        '"formatvalidated":true,"size":1e999',
        '"formatvalidated":1.10',
    ],
)
def test_uncertain_texts_are_split(text: str) -> None:
    used = renderer(RenderOptions("http://h", doc=True))
    found = version_row({})
    found = found._replace(attributes=f"{found.attributes[:-1]},{text}}}")
    assert used._splices.version(found, FILE, {}) is None
