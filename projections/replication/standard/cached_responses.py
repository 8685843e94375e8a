"""The JSON answers and pages of a server of the standard API, with conditional requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from annals.domain.values.json_text import InvalidJson, loads
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError
from annals.projections.replication.standard.comparable import BrokenEntity

if TYPE_CHECKING:
    import httpx  # takes long, and only links need it


class CachedResponses:
    """The answers of one server. `remember_tags` makes the ETags of applied answers usable for conditional requests.

    Each requesting method raises RemoteError, and BrokenEntity for an answer that is not a JSON object.
    """

    def __init__(self, remote: RemoteClient) -> None:
        self.remote = remote
        self._tags: dict[str, str] = {}
        self._seen_tags: dict[str, str] = {}

    def remember_tags(self) -> None:
        """Remembers the ETags of all answers since the last call, because they were applied."""
        self._tags |= self._seen_tags
        self._seen_tags = {}

    def forget_tags(self) -> None:
        """Drops all ETags, so that everything is fetched again."""
        self._tags, self._seen_tags = {}, {}

    def get_object(self, path: str) -> dict[str, Any]:
        """A JSON object."""
        return _parse_object(self.remote.request("GET", path))

    def find_object(self, path: str) -> dict[str, Any] | None:
        """A JSON object; None if it does not exist."""
        try:
            return self.get_object(path)
        except RemoteError as error:
            if error.status not in (404, 410):
                raise
            return None

    def get_if_changed(self, path: str) -> dict[str, Any] | None:
        """A JSON object; None if it has not changed since its ETag was remembered."""
        etag = self._tags.get(path)
        response = self.remote.request("GET", path, headers={"if-none-match": etag} if etag else {})
        if response.status_code == 304:
            return None
        document = _parse_object(response)
        if "etag" in response.headers:
            self._seen_tags[path] = response.headers["etag"]
        return document

    def members(self, path: str) -> Iterator[tuple[str, Any]]:
        """The members of a collection by id, page by page."""
        requested_paths = {path}
        while True:
            response = self.remote.request("GET", path)
            yield from _parse_object(response).items()
            next_url = response.links.get("next", {}).get("url")
            if next_url is None:
                return
            path = self._page_path(response, next_url)
            if path in requested_paths:
                raise RemoteError(f"{self.remote.url} has an endless sequence of pages at {path}")
            requested_paths.add(path)

    def _page_path(self, response: httpx.Response, next_url: str) -> str:
        """The path of a page on this server.

        If a link names another address than this client uses, its query is applied to the current path. So a server
        that does not know its own address still works, and the credential never goes elsewhere.
        """
        absolute_url = urljoin(str(response.url), next_url)
        if absolute_url.startswith(self.remote.url + "/"):
            return absolute_url.removeprefix(self.remote.url)
        current_path = str(response.url).removeprefix(self.remote.url).partition("?")[0]
        return f"{current_path}?{urlsplit(absolute_url).query}"


def _parse_object(response: httpx.Response) -> dict[str, Any]:
    try:
        document = loads(response.content)
    except InvalidJson:
        document = None
    if not isinstance(document, dict):
        raise BrokenEntity(f"GET {response.request.url.path} answers {response.status_code} with no JSON object")
    return document
