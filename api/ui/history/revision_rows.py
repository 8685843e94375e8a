"""Revisions as rows of tables: what each did, and links to the registry at that moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from annals.api.ui.page_context import PageContext

_CREATED: Final = "created"
_DELETED: Final = "deleted"


class RevisionRow(NamedTuple):
    """One revision. moment: the last position of its interaction, which the links are about.

    asof: the entity after the revision. compare: with the state before. restore: that state again. Each is empty where
    there is no such state, or the caller may not.
    """

    time: str
    position: int
    action: str
    epoch: int
    changed: list[str]
    caller: str
    xid: str
    id: str
    moment: int
    asof: str
    compare: str
    restore: str


def revision_row(page: PageContext, item: Mapping[str, Any]) -> RevisionRow:
    """The row of a revision as `/-/history` and `/-/interactions` have it."""
    xid, moment, action = item["xid"], item["last"], item["action"]
    path = xid.strip("/")
    exists = action != _DELETED and _has_page(xid)
    before = str(item["position"] - 1)
    return RevisionRow(
        item["time"],
        item["position"],
        f"{action} ({item['reason']})" if item.get("reason", action) != action else action,
        item["epoch"],
        item["changed"],
        item["caller"],
        xid,
        item["xregcorrelationid"],
        moment,
        page.link(f"explore/{path}", asof=str(moment)) if exists else "",
        _compare_link(page, path, before, str(moment)) if exists and action != _CREATED else "",
        page.link(f"restore/{path}", asof=str(moment)) if exists and page.caller.can_write(xid) else "",
    )


def _has_page(xid: str) -> bool:
    """Whether an entity is part of the registry's tree, so that there is a page about it."""
    return not xid.startswith(("/-/", "/subscriptions/")) and xid not in ("/model", "/capabilities")


def _compare_link(page: PageContext, path: str, before: str, moment: str) -> str:
    target = f"compare/{path}"
    return page.link(target, leftasof=before, rightasof=moment, asof=None) if page.has_page(target) else ""
