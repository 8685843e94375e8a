"""The region "Versions": a Resource's Versions under their ancestors (UI-75)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from annals.api.ui.explore.entity_view import EntityView
from annals.api.ui.page_context import MAX_ROWS, PageContext
from annals.domain.errors.problems import Problem

_MAX_REVISIONS: Final = 1000


class VersionRow(NamedTuple):
    """A Version. depth: how many ancestors it is under. marks: words, each with a class of the stylesheet."""

    id: str
    url: str
    depth: int
    ancestor: str
    createdat: str
    caller: str
    marks: list[tuple[str, str]]
    reasons: list[str]


async def read_versions(page: PageContext, entity: EntityView) -> Mapping[str, Any]:
    """The rows, ancestors first. total: the number of Versions. more: the URL of their page; empty if these are all.

    has_old_default: whether the first row is the default Version, which is not one of the newest.
    """
    path = f"{entity.place.xid}/versions"
    found = await _read_newest(page, entity, path)
    versions = found.versions
    callers = await _creators(page, path)
    is_sticky = bool(entity.meta.get("defaultversionsticky"))
    rows = [
        VersionRow(
            id,
            page.link(f"explore{path}/{id}"),
            depth,
            versions[id]["ancestorid"],
            versions[id]["createdat"],
            callers.get(f"{path}/{id}".lower(), ""),
            list(_marks(versions[id], is_sticky)),
            [versions[id][name] for name in _REASONS if name in versions[id]],
        )
        for id, depth in _tree(versions)
    ]
    return {
        "rows": rows,
        "total": found.total,
        "more": page.link(f"explore{path}") if found.total > len(versions) else "",
        "has_old_default": found.has_old_default,
        "action": page.link(page.path) if versions and page.has_page("compare/x") else "",
    }


class _FoundVersions(NamedTuple):
    """Versions by id, older ones first. total: the number of all. has_old_default: see `read_versions`."""

    versions: Mapping[str, Any]
    total: int
    has_old_default: bool = False


async def _read_newest(page: PageContext, entity: EntityView, path: str) -> _FoundVersions:
    """All Versions; of more than a page shows, the newest ones with the default one."""
    answer = await page.get(path, {"limit": str(MAX_ROWS)})
    following = answer.link("next")
    if following is None:
        return _FoundVersions(answer.json, len(answer.json))
    sorted_query = {"limit": str(MAX_ROWS), "sort": "createdat=desc"}
    newest: dict[str, Any] = (await page.get(path, sorted_query)).json
    versions = dict(reversed(newest.items()))
    total = following.count or len(versions)
    default = str(entity.meta.get("defaultversionid", ""))
    if default in versions:
        return _FoundVersions(versions, total)
    details = "$details" if entity.place.has_document else ""
    old_default = (await page.get(f"{path}/{default}{details}")).json
    versions.pop(next(iter(versions)))
    return _FoundVersions({default: old_default, **versions}, total, has_old_default=True)


_REASONS: Final = ("formatvalidatedreason", "compatibilityvalidatedreason")


async def _creators(page: PageContext, path: str) -> dict[str, str]:
    """Who made each Version, by its xid in lower case; empty if the caller may not know."""
    query = {"below": "true", "order": "desc", "limit": str(_MAX_REVISIONS), "until": page.asof}
    try:
        revisions = (await page.get(f"/-/history{path}", query, with_asof=False)).json
    except Problem:
        return {}
    found: dict[str, str] = {}
    for each in revisions:
        if each["action"] == "created":
            found.setdefault(each["xid"].lower(), each["caller"])
    return found


def _tree(versions: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The ids in the order of the tree, each with its depth. An ancestor that is not there counts as none."""
    children = defaultdict[str, list[str]](list)
    for id, version in versions.items():
        ancestor = version["ancestorid"]
        children[ancestor if ancestor != id and ancestor in versions else ""].append(id)
    waiting = [(id, 0) for id in reversed(children[""])]
    while waiting:
        id, depth = waiting.pop()
        yield id, depth
        waiting += ((child, depth + 1) for child in reversed(children[id]))


def _marks(version: Mapping[str, Any], is_sticky: bool) -> Iterator[tuple[str, str]]:
    if version.get("isdefault"):
        yield "Default", "good"
        if is_sticky:
            yield "Sticky", ""
    for name, good, bad in (
        ("formatvalidated", "Valid", "Not valid"),
        ("compatibilityvalidated", "Compatible", "Not compatible"),
    ):
        if name in version:
            yield (good, "good") if version[name] else (bad, "bad")
