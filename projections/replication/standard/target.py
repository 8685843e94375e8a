"""Writes to a server of the standard API."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from annals.domain.model import Model
from annals.domain.values import xid as xids
from annals.domain.values.json_text import dumps
from annals.projections.replication.remote.remote_client import RemoteClient
from annals.projections.replication.standard.comparable import ComparableGroup, ComparableResource, ResourceWrite
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
        for write in comparable.writes(remote_resource, type):
            suffix = "$details" if type.hasdocument and not write.path else ""
            self._request(write.method, xid + write.path, _with_xids(xid, write), suffix)

    def delete(self, xid: str) -> None:
        """Deletes a Group or Resource with its contents."""
        self._request("DELETE", xid)

    def _request(self, method: str, xid: str, body: Any = None, suffix: str = "") -> None:
        options: dict[str, Any] = (
            {} if body is None else {"content": dumps(body), "headers": {"content-type": "application/json"}}
        )
        check_written(self._remote.request(method, quote(xid) + suffix, **options))


def _with_xids(xid: str, write: ResourceWrite) -> dict[str, Any]:
    """The body of a write whose Versions have xids, as in responses: so the other registry can tell copies.

    xid: of the Resource in the other registry.
    """

    def with_xids(versions: dict[str, Any]) -> dict[str, Any]:
        return {id: {**version, "xid": f"{xid}/versions/{id}"} for id, version in versions.items()}

    if write.method == "POST":
        return with_xids(write.body)
    return {**write.body, "versions": with_xids(write.body["versions"])} if "versions" in write.body else write.body
