"""Writes to a server of the standard API."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from domain.model import Model
from domain.values import xid as xids
from domain.values.json_text import dumps
from projections.replication.remote.remote_client import RemoteClient
from projections.replication.standard.comparable import ComparableGroup, ComparableResource


class StandardTarget:
    """Writes entities under xids of the other registry. Its methods raise RemoteError."""

    def __init__(self, remote: RemoteClient, model: Model) -> None:
        self._remote = remote
        self._model = model

    def write_group(self, xid: str, form: ComparableGroup) -> None:
        """Writes a Group without its contents."""
        self._request("PUT", xid, form.write_body())

    def write_resource(self, xid: str, form: ComparableResource, known: ComparableResource | None) -> None:
        """Writes a Resource. known: its current remote state; equal parts are not written."""
        plural, _, resources = xids.segments(xid)[:3]
        type = self._model.groups[plural].resources[resources]
        if known is None or "xref" in form.meta or "xref" in known.meta:
            if known is None or not form.is_copy_of(known):
                self._request("PUT", xid, form.write_body(type), "$details" if type.hasdocument else "")
            return
        if changed := form.changed_versions(known):
            self._request("POST", f"{xid}/versions", {id: each.write_body(type) for id, each in changed.items()})
        if form.meta != known.meta:
            self._request("PUT", f"{xid}/meta", form.meta_write_body())
        if gone := sorted(known.versions.keys() - form.versions.keys()):
            self._request("DELETE", f"{xid}/versions", {id: {} for id in gone})

    def delete(self, xid: str) -> None:
        """Deletes a Group or Resource with its contents."""
        self._request("DELETE", xid)

    def _request(self, method: str, xid: str, body: Any = None, view: str = "") -> None:
        content: dict[str, Any] = (
            {} if body is None else {"content": dumps(body), "headers": {"content-type": "application/json"}}
        )
        self._remote.request(method, quote(xid) + view, **content)
