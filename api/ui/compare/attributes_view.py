"""The view "Attributes": what `/-/diff` says of two moments, or the attributes of two Versions (UI-94)."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final, NamedTuple

from annals.api.ui.compare.sides import PageSide, PageSides
from annals.api.ui.own_api import query_text
from annals.api.ui.page_context import PageContext, url_path

#: Rows of one page; all differences are in the files.
MAX_ROWS: Final = 500
_EQUAL: Final = "No difference"
_DOCUMENT: Final = "document (SHA-256)"
#: Attributes that differ in any two Versions, because they name one.
_OWN_NAMES: Final = frozenset(("self", "shortself", "xid", "versionid"))


class AttributeDifference(NamedTuple):
    """A difference. entity: its xid. change: what happened to the entity."""

    entity: str
    change: str
    attribute: str
    before: Any
    after: Any


async def read_attributes_view(page: PageContext, sides: PageSides) -> Mapping[str, Any]:
    """What the view shows. reason: why there are no rows. Raises: Problem."""
    page.raw_json = None
    files: Mapping[str, str] = {}
    if sides.are_versions:
        rows = [row async for row in _version_rows(page, sides)]
    elif sides.left.asof == sides.right.asof:
        reason = "Both sides are now. Give a left moment." if sides.left.asof is None else _EQUAL
        return {"rows": [], "has_more": False, "files": {}, "reason": reason}
    else:
        rows, files = await _diff_rows(page, sides)
    reason = "" if rows else _EQUAL
    return {"rows": rows[:MAX_ROWS], "has_more": len(rows) > MAX_ROWS, "files": files, "reason": reason}


async def _diff_rows(page: PageContext, sides: PageSides) -> tuple[list[AttributeDifference], Mapping[str, str]]:
    start = sides.left.asof
    if start is None:
        start = str((await page.own_api.get(page.request, "/-/log/head")).json["position"])
    path = f"/-/diff{sides.place.xid}"
    query = {"from": start, "to": sides.right.asof}
    entities = [each async for each in page.first_lines(path, query, MAX_ROWS + 1)]
    files = {
        name: page.api_url(f"{url_path(path)}?{query_text({**query, 'format': name.lower()})}")
        for name in ("CSV", "NDJSON")
    }
    return [row for entity in entities for row in _entity_rows(entity)], files


def _entity_rows(entity: Mapping[str, Any]) -> Iterator[AttributeDifference]:
    shared = entity["xid"], entity["change"]
    for each in entity["attributes"]:
        yield AttributeDifference(*shared, each["path"], each.get("before", ""), each.get("after", ""))
    document = entity.get("document")
    if document and document["changed"]:
        yield AttributeDifference(*shared, _DOCUMENT, document["before"] or "", document["after"] or "")


async def _version_rows(page: PageContext, sides: PageSides) -> AsyncIterator[AttributeDifference]:
    """The attributes in which two Versions differ, then their documents."""
    left, right = [
        _flat((await page.get(side.details_path, {"asof": side.asof}, with_asof=False)).json)
        for side in (sides.left, sides.right)
    ]
    for name in {**left, **right}:
        if name not in _OWN_NAMES and left.get(name) != right.get(name):
            yield AttributeDifference(sides.place.xid, "changed", name, left.get(name, ""), right.get(name, ""))
    if sides.place.has_document:
        before, after = [await _document_hash(page, side) for side in (sides.left, sides.right)]
        if before != after:
            yield AttributeDifference(sides.place.xid, "changed", _DOCUMENT, before, after)


async def _document_hash(page: PageContext, side: PageSide) -> str:
    """The SHA-256 of a Version's document; empty for one that is elsewhere."""
    answer = await page.get(side.document_path, {"asof": side.asof}, with_asof=False)
    return "" if answer.is_elsewhere else hashlib.sha256(answer.body).hexdigest()


def _flat(attributes: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values by their paths; members of objects have a path each."""
    found: dict[str, Any] = {}
    for name, value in attributes.items():
        if isinstance(value, dict) and value:
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found
