"""The client for another registry's legacy API: Groups, definitions and Versions, as its clients see them.

It uses nothing that Schema Registry 0.2 or the Message Catalog 0.1 lacks. Rules LEG-902, LEG-904.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, urlsplit

from annals.commands.store.database.registry_url import UNCONFIGURED_URL
from annals.domain.compat import uris
from annals.domain.compat.document_attributes import DocumentAttributes, request_names
from annals.domain.compat.ids import decode_segment, encode_segment
from annals.domain.compat.legacy_apis import LegacyApi
from annals.domain.values.header_values import InvalidHeaderValue, decode
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError
from annals.projections.replication.standard.response_checks import is_json

if TYPE_CHECKING:
    import httpx  # takes long, and only links need it

#: Statuses for something that does not exist, or not any more.
_ABSENT_STATUSES: Final = (404, 410)
#: Statuses for something that exists. The document of a Version may be elsewhere.
_FOUND_STATUSES: Final = (200, 303)
_LOOPBACK_HOSTS: Final = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class LegacyVersion:
    """A Version of the other registry.

    uri: absolute.
    authority: never empty (LEG-904).
    path: its path below the base of the API.
    attributes: those of its document, without authority and id.
    content: None if the document is stored elsewhere.
    etag: ETag for a later conditional request; empty if there is none.
    """

    uri: str
    authority: str
    path: str
    attributes: DocumentAttributes
    content: bytes | None = field(repr=False)
    contenttype: str | None
    etag: str


class VersionUnchanged(Exception):
    """A Version still has the given ETag."""


class BrokenResponse(RemoteError):
    """An answer about one object does not follow the API."""


class LegacyClient:
    """One legacy API of another registry. Ids are decoded. Missing objects are None.

    Each method raises RemoteError for failed requests, and BrokenResponse for an invalid answer about one object.
    broken_ids: paths of list members that are no ids, with the reason; the reader empties it.
    """

    def __init__(self, remote: RemoteClient, family: LegacyApi) -> None:
        self.family = family
        self.base = remote.url
        self.broken_ids: dict[str, str] = {}
        self._remote = remote

    def groups(self) -> list[str]:
        """The ids of all Groups.

        Raises: RemoteError, also if the API does not exist: then nothing is known about Groups.
        """
        members = self._get_list(path := f"/{self.family.path}")
        if members is None:
            raise RemoteError(f"GET {path} finds nothing: this is not the URL of the API", 404)
        return self._parse_ids(path, members)

    def group(self, id: str) -> dict[str, Any] | None:
        """A Group's members."""
        attributes: dict[str, Any] | None = self._get_json(path := self.path(id))
        if attributes is not None and not isinstance(attributes, dict):
            raise BrokenResponse(f"GET {path} answers with something that is not a Group")
        return attributes

    def definitions(self, group: str) -> list[str] | None:
        """The ids of the definitions in a Group."""
        members = self._get_list(path := f"{self.path(group)}/{self.family.children}")
        return None if members is None else self._parse_ids(path, members)

    def version_numbers(self, group: str, id: str) -> list[int]:
        """The numbers of a definition's Versions, ascending; empty if the definition does not exist."""
        return self.version_numbers_at(self.path(group, id))

    def version_numbers_at(self, path: str) -> list[int]:
        """The same as `version_numbers`, by the definition's path."""
        numbers = self._get_list(f"{path}/versions") or []
        if not all(type(number) is int for number in numbers):
            raise BrokenResponse(f"GET {path}/versions answers with something that is not a list of numbers")
        return sorted(numbers)

    def version(self, group: str, id: str, number: int, etag: str = "") -> LegacyVersion | None:
        """A Version. Raises: VersionUnchanged if it still has this ETag."""
        path = uris.default_version_path(self.family, group, id, number)
        response = self._get(path, {"if-none-match": etag} if etag else {})
        return None if response is None else self._legacy_version(response, path)

    def version_at(self, path: str) -> LegacyVersion | None:
        """The Version at its path, or the one that a path from `lookup_path` finds."""
        response = self._get(path)
        if response is None:
            return None
        if "?" in path:
            path = _version_path(
                response.headers.get("content-location" if response.status_code == 303 else "location", "")
            )
        return self._legacy_version(response, path)

    def version_by_uri(self, uri: str) -> LegacyVersion | None:
        """The Version with a URI."""
        return self.version_at(self.lookup_path(uri))

    def lookup_path(self, uri: str) -> str:
        """The path below the base that finds the Version with a URI."""
        return f"/{self.family.lookup}?uri={quote(uri, safe='')}"

    def authority(self, group: str, id: str) -> str | None:
        """The authority of a definition."""
        response = self._get(self.path(group, id))
        return None if response is None else self._legacy_version(response, "").authority

    def put_group(self, group: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Writes a Group. Returns its members; none if the answer does not have them."""
        response = self._remote.request("PUT", self.path(group), json=body)
        # Schema Registry 0.2 creates a Group without a body in its answer.
        _check(response, response.status_code == 201 or _is_object(response))
        return response.json() if _is_object(response) else {}

    def add_version(self, group: str, id: str, version: LegacyVersion) -> None:
        """Adds a Version to a definition."""
        identity = {"authority": version.authority, "id": version.uri}
        values = {name: identity.get(name, getattr(version.attributes, name)) for name in request_names(self.family)}
        query = "&".join(
            f"{parameter}={quote(values[name], safe='')}"
            for name, (parameter, _) in request_names(self.family).items()
            if values[name] is not None
        )
        headers = {"content-type": version.contenttype.encode("latin-1", "replace")} if version.contenttype else {}
        path = f"{self.path(group, id)}?{query}"
        response = self._remote.request("POST", path, content=version.content, headers=headers)
        _check(response, response.is_success and self._has_version_headers(response))

    def delete(self, path: str) -> None:
        """Deletes what is at a path below the base, if it exists."""
        try:
            response = self._remote.request("DELETE", path)
        except RemoteError as error:
            if not self._is_absent(path, error):
                raise
        else:
            _check(response, response.status_code == 204 or _is_object(response))

    def path(self, group: str, id: str | None = None) -> str:
        """The path of a Group or a definition below the base."""
        path = f"/{self.family.path}/{encode_segment(group)}"
        return path if id is None else f"{path}/{self.family.children}/{encode_segment(id)}"

    def _get_json(self, path: str) -> Any:
        response = self._get(path)
        if response is None:
            return None
        try:
            return response.json()
        except ValueError:
            _check(response, is_json(response))
            raise BrokenResponse(f"GET {path} answers with something that is not JSON", response.status_code) from None

    def _get_list(self, path: str) -> list[Any] | None:
        members = self._get_json(path)
        if members is not None and not isinstance(members, list):
            raise BrokenResponse(f"GET {path} answers with something that is not a list")
        return members

    def _parse_ids(self, path: str, members: list[Any]) -> list[str]:
        ids = []
        for member in members:
            try:
                ids.append(decode_segment(member))
            except (TypeError, ValueError, AttributeError) as error:
                self.broken_ids[f"{path}/{member}"[:200]] = f"it is not an id: {error}"
        return ids

    def _get(self, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response | None:
        """The answer to a GET; None if nothing exists there.

        Raises: RemoteError, also for redirects, which are not followed (LEG-1108); VersionUnchanged.
        """
        try:
            response = self._remote.request("GET", path, headers=headers or {})
        except RemoteError as error:
            if not self._is_absent(path, error):
                raise
            return None
        if headers and response.status_code == 304:
            raise VersionUnchanged
        _check(response, response.status_code in _FOUND_STATUSES)
        return response

    def _is_absent(self, path: str, error: RemoteError) -> bool:
        """Whether an error says that there is nothing at a path.

        Schema Registry 0.2 sends no body then, but a proxy may answer the same. So without a problem document one of
        the lists above the path must answer, and not have the next segment. For a lookup, the first list must answer.
        """
        if error.status not in _ABSENT_STATUSES:
            return False
        if error.problem:
            return True
        if "?" in path:
            return self._get_list(f"/{self.family.path}") is not None
        segments = path.split("/")
        return any(
            unquote(segments[length]) not in self._listed_segments("/".join(segments[:length]))
            for length in range(2, len(segments), 2)
        )

    def _listed_segments(self, path: str) -> set[str]:
        """The members of a list, as decoded segments of paths; empty if it does not exist."""
        return {unquote(str(member)) for member in self._get_list(path) or ()}

    def _has_version_headers(self, response: httpx.Response) -> bool:
        """Whether an answer has attributes of a Version, as every answer about one has."""
        prefix = f"{self.family.headers}-".lower()
        return any(name.lower().startswith(prefix) for name in response.headers)

    def _legacy_version(self, response: httpx.Response, path: str) -> LegacyVersion:
        _check(response, self._has_version_headers(response))
        attributes = {
            name: _decode_header(response, header) for name, (_, header) in request_names(self.family).items()
        }
        id, authority = attributes.pop("id"), attributes.pop("authority")
        uri = self._explicit_uri(response) or uris.compose_uri(authority, id, self.base, path)
        is_elsewhere = response.status_code == 303
        return LegacyVersion(
            uri=uri,
            authority=authority or self._implied_authority(uri, id or path),
            path=path,
            attributes=DocumentAttributes(**attributes),
            content=None if is_elsewhere else response.content,
            contenttype=response.headers.get("content-type"),
            etag=response.headers.get("etag", ""),
        )

    def _explicit_uri(self, response: httpx.Response) -> str | None:
        """The URI under which the other registry finds a Version.

        None if it gives none, or one below its own address.
        """
        location = response.headers.get(f"{self.family.headers}-Id-Location", "")
        parameters = (parameter.partition("=") for parameter in urlsplit(location).query.split("&"))
        uri = next((unquote(value) for name, _, value in parameters if name == "uri"), "")
        return uri if uris.is_absolute(uri) and not self._is_own_address(uri) else None

    def _is_own_address(self, uri: str) -> bool:
        """Whether a URI starts with an address that means nothing elsewhere, as from a server without a public URL."""
        is_loopback = urlsplit(uri).hostname in _LOOPBACK_HOSTS and urlsplit(self.base).hostname not in _LOOPBACK_HOSTS
        is_unconfigured = uri.startswith(UNCONFIGURED_URL) and not self.base.startswith(UNCONFIGURED_URL)
        return (is_loopback or is_unconfigured) and urlsplit(uri).path.startswith(self.family.base)

    def _implied_authority(self, uri: str, id: str) -> str:
        """The authority of a Version that gives none: the part of its URI before its id, or the API's URL (LEG-904)."""
        return uri.removesuffix(id).rstrip("/") if uri.endswith(id) and uri != id else self.base


def _check(response: httpx.Response, is_expected: bool) -> None:
    """Raises: RemoteError unless an answer is one that the API gives. Others come from a proxy, for example."""
    if not is_expected:
        request = response.request
        raise RemoteError(
            f"{request.method} {request.url.path} answers {response.status_code}, but not as this API does",
            response.status_code,
        )


def _is_object(response: httpx.Response) -> bool:
    """Whether an answer is a JSON object."""
    try:
        return response.is_success and isinstance(response.json(), dict)
    except ValueError:
        return False


def _decode_header(response: httpx.Response, header: str) -> str | None:
    value = response.headers.get(header)
    try:
        return decode(value) if value is not None else None
    except (InvalidHeaderValue, UnicodeEncodeError):
        raise BrokenResponse(f"the header {header} is not percent-encoded UTF-8") from None


def _version_path(url: str) -> str:
    """The path of a Version below the base of its API, from its URL. Ids contain no slash, so it has six segments."""
    return "/" + "/".join(urlsplit(url).path.split("/")[-6:])
