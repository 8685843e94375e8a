"""The JSON answers and pages of a server of the standard API, with conditional requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urljoin, urlsplit

from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError
from annals.projections.replication.standard.response_checks import parse_object

if TYPE_CHECKING:
    import httpx  # takes long, and only links need it

#: Statuses for something that does not exist, or not any more.
_ABSENT_STATUSES: Final = (404, 410)


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
        return parse_object(self.remote.request("GET", path))

    def find_entity(self, path: str) -> dict[str, Any] | None:
        """The JSON object of a Group, or of the meta of a Resource; None if it does not exist."""
        try:
            return self.get_object(path)
        except RemoteError as error:
            if not self._is_absent(path.removesuffix("/meta"), error):
                raise
            return None

    def get_if_changed(self, path: str) -> dict[str, Any] | None:
        """A JSON object; None if it has not changed since its ETag was remembered.

        An error drops the ETag: what depends on the object may be deleted then, and has to be fetched later.
        """
        etag = self._tags.pop(path, None)
        response = self.remote.request("GET", path, headers={"if-none-match": etag} if etag else {})
        if etag and response.status_code == 304:
            self._tags[path] = etag
            return None
        document = parse_object(response)
        if "etag" in response.headers:
            self._seen_tags[path] = response.headers["etag"]
        return document

    def members(self, path: str) -> Iterator[tuple[str, Any]]:
        """The members of a collection by id, page by page."""
        requested_paths = {path}
        while True:
            response = self.remote.request("GET", path)
            yield from parse_object(response).items()
            next_url = response.links.get("next", {}).get("url")
            if next_url is None:
                return
            path = self._page_path(response, next_url)
            if path in requested_paths:
                raise RemoteError(f"{self.remote.url} has an endless sequence of pages at {path}")
            requested_paths.add(path)

    def _is_absent(self, path: str, error: RemoteError) -> bool:
        """Whether an error says that a Group or a Resource does not exist.

        Without a problem document it may come from a proxy. Then the collection must answer, and not list the entity.
        """
        if error.status not in _ABSENT_STATUSES:
            return False
        collection, _, id = path.rpartition("/")
        if error.problem or not collection:
            return bool(error.problem)
        try:
            return unquote(id).lower() not in {member.lower() for member, _ in self.members(collection)}
        except RemoteError as collection_error:
            return self._is_absent(collection.rpartition("/")[0], collection_error)

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
