"""The offset of a Resource's own `meta`, which a row of the read model has in addition to its event."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from annals.domain.registry.events import EntityCreated
from annals.projections.entities.rows import EntityRow, entity_row

IDS = {"fileid": "f1", "versionid": "1"}
META = {"fileid": "f1", "epoch": 1}
LIKE_IT = {"x": 1, "meta": {"é": {}}}


def row_of(xid: str, type: str, attributes: dict[str, Any]) -> EntityRow:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    event = EntityCreated(
        xid=xid, type=type, revision=1, epoch=1, xregcorrelationid="01j", attributes=attributes, changed=(), time=noon
    )
    return entity_row(event, 1)


@pytest.mark.parametrize("before", [{}, {"name": 'a ,"meta":{ é'}, {"labels": LIKE_IT}, {"a": LIKE_IT, "b": "\x00"}])
@pytest.mark.parametrize("meta", [META, {**META, "labels": LIKE_IT}])
def test_a_resources_own_meta_is_found(before: dict[str, Any], meta: dict[str, Any]) -> None:
    """Responses insert the URLs of a Resource at this offset. Other members may have the name `meta` too."""
    found = row_of("/dirs/d1/files/f1", "dirs.files", {**IDS, **before, "meta": meta, "versionscount": 1})
    expected = row_of("/dirs/d1/files/f1", "dirs.files", {**IDS, **before}).attributes
    assert found.attributes[: found.meta] + "}" == expected


@pytest.mark.parametrize(
    ("xid", "type", "attributes"),
    [
        ("/dirs/d1", "dirs", {"dirid": "d1", "meta": {"a": 1}}),
        ("/dirs/d1/files/f1", "dirs.files", {"fileid": "f1", "meta": {**META, "xref": "/dirs/d1/files/f2"}}),
        ("/dirs/d1/files/f1/versions/1", "dirs.files.versions", {**IDS, "meta": {"a": 1}}),
    ],
)
def test_others_have_none(xid: str, type: str, attributes: dict[str, Any]) -> None:
    assert row_of(xid, type, attributes).meta == 0
