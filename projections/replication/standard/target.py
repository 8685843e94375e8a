"""Writes to a server of the standard API."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from annals.domain.model import Model
from annals.domain.values import xid as xids
from annals.domain.values.json_text import dumps
from annals.projections.replication.remote.remote_client import RemoteClient
from annals.projections.replication.standard.comparable import ComparableGroup, ComparableResource
from annals.projections.replication.standard.response_checks import check_written


class StandardTarget:
    """Writes entities under xids of the other registry. Its methods raise RemoteError."""

    def __init__(self, remote: RemoteClient, model: Model) -> None:
        self._remote = remote
        self._model = model

    def write_group(self, xid: str, comparable: ComparableGroup) -> None:
        """Writes a Group without its contents."""
        self._request("PUT", xid, comparable.write_body())

    def write_resource(
        self, xid: str, comparable: ComparableResource, remote_resource: ComparableResource | None
    ) -> None:
        """Writes a Resource. remote_resource: its current remote state; equal parts are not written."""
        plural, _, resources = xids.segments(xid)[:3]
        type = self._model.groups[plural].resources[resources]
        if remote_resource is None or "xref" in comparable.meta or "xref" in remote_resource.meta:
            if remote_resource is None or not comparable.is_copy_of(remote_resource):
                self._request("PUT", xid, comparable.write_body(type), "$details" if type.hasdocument else "")
            return
        if bodies := comparable.changed_bodies(remote_resource, type):
            self._request("POST", f"{xid}/versions", bodies)
        if comparable.meta != remote_resource.meta:
            self._request("PUT", f"{xid}/meta", comparable.meta_write_body())
        if deleted_ids := sorted(remote_resource.versions.keys() - comparable.versions.keys()):
            self._request("DELETE", f"{xid}/versions", {id: {} for id in deleted_ids})

    def delete(self, xid: str) -> None:
        """Deletes a Group or Resource with its contents."""
        self._request("DELETE", xid)

    def _request(self, method: str, xid: str, body: Any = None, suffix: str = "") -> None:
        options: dict[str, Any] = (
            {} if body is None else {"content": dumps(body), "headers": {"content-type": "application/json"}}
        )
        check_written(self._remote.request(method, quote(xid) + suffix, **options))
