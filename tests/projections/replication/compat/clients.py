"""Clients of registries over the legacy APIs, and links between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit

import httpx

from tests.support.registries.restarted import LOCAL, TOKEN, Registry

#: Seconds between two polls, of a link whose polls a test waits for, and of a link that polls only at its start.
OFTEN: Final = 0.2
NEVER: Final = 7 * 86400


@dataclass(frozen=True)
class Api:
    """One of the legacy APIs. format: of groups whose documents are not checked."""

    dialect: str
    base: str
    groups: str
    children: str
    header: str
    lookup: str
    xids: tuple[str, str]
    format: str = "Words"

    def xid(self, group: str, id: str | None = None) -> str:
        """The xid of a group, or of a definition in it."""
        return f"/{self.xids[0]}/{group}" + ("" if id is None else f"/{self.xids[1]}/{id}")


SR: Final = Api(
    *("schemaregistry", "/compat/schemaregistry/v0.2", "schemagroups", "schemas", "schema", "schema"),
    ("schemagroups", "schemas"),
)
MC: Final = Api(
    *("messagecatalog", "/compat/messagecatalog/v0.1", "messagecatalog", "messagedefinitions", "message"),
    *("messagedefinition", ("messagegroups", "messages")),
)


class Version(NamedTuple):
    """What a response says about a version, without its times."""

    path: str
    uri: str
    authority: str
    id: str
    content: bytes
    contenttype: str
    descriptions: Mapping[str, str]


class Client:
    """One registry through one of its legacy APIs."""

    def __init__(self, registry: Registry, api: Api) -> None:
        self.registry = registry
        self.api = api
        self.url = registry.url + api.base

    def group(self, id: str, **members: Any) -> Any:
        """Makes a group."""
        return self.registry.done("PUT", self.path(id), {"format": self.api.format, **members})

    def post(
        self, group: str, id: str, content: bytes, /, contenttype: str = "text/plain", **query: str
    ) -> httpx.Response:
        """Adds a version."""
        parameters = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
        headers = {"content-type": contenttype}
        return self.registry.request("POST", f"{self.path(group, id)}?{parameters}", content=content, headers=headers)

    def added(self, group: str, id: str, /, *contents: bytes, **query: str) -> None:
        """Adds versions, each of which must be accepted."""
        for content in contents:
            answer = self.post(group, id, content, **query)
            assert answer.status_code == 200, answer.text

    def delete(self, group: str, id: str | None = None, number: int | None = None) -> None:
        """Deletes a group, a definition, or a version."""
        self.registry.done("DELETE", self.path(group, id) + ("" if number is None else f"/versions/{number}"))

    def contents(self, group: str, id: str) -> list[bytes]:
        """The documents of a definition's versions; none if it does not exist."""
        return [version.content for version in self.versions(group, id)]

    def versions(self, group: str, id: str) -> list[Version]:
        """A definition's versions, by ascending number, without those that are deleted while they are read."""
        path = f"{self.path(group, id)}/versions"
        found = (self._version(f"{path}/{number}") for number in self._listed(path))
        return [version for version in found if version is not None]

    def versions_by_id(self) -> dict[tuple[str, str], list[Version]]:
        """All versions by the ids of their groups and definitions."""
        found = {}
        for group in self._listed(f"{self.api.base}/{self.api.groups}"):
            for id in self._listed(f"{self.path(group)}/{self.api.children}"):
                found[group, id] = self.versions(group, id)
        return found

    def pairs(self) -> set[tuple[str, bytes]]:
        """The URIs and documents of all versions."""
        return {(each.uri, each.content) for versions in self.versions_by_id().values() for each in versions}

    def document_of(self, uri: str) -> bytes | None:
        """The document of a URI."""
        answer = self.registry.request("GET", f"{self.api.base}/{self.api.lookup}?uri={quote(uri, safe='')}")
        return answer.content if answer.is_success else None

    def link(self, id: str, other: Client, mode: str = "pull", **members: Any) -> None:
        """Links this registry to another one."""
        shared = {"dialect": self.api.dialect, "mode": mode, "interval": OFTEN, "credential": {"token": TOKEN}}
        self.registry.done("PUT", f"/-/links/{id}", {"url": other.url, **shared, **members})

    def path(self, group: str, id: str | None = None) -> str:
        """The path of a group or of a definition in it. The ids have to be encoded."""
        below = "" if id is None else f"/{self.api.children}/{id}"
        return f"{self.api.base}/{self.api.groups}/{group}{below}"

    def _listed(self, path: str) -> list[Any]:
        answer = self.registry.request("GET", path)
        return list(answer.json()) if answer.is_success else []

    def _version(self, path: str) -> Version | None:
        answer = self.registry.request("GET", path)
        if answer.status_code == 404:
            return None
        assert answer.status_code == 200, answer.text
        names = ("format", "description", "version-description")
        values = {name: answer.headers.get(f"{self.api.header}-{name}", "") for name in (*names, "id", "authority")}
        headers = {name: unquote(value) for name, value in values.items()}
        place = urlsplit(answer.headers[f"{self.api.header}-id-location"])
        return Version(
            path=path.removeprefix(self.api.base),
            uri=parse_qs(place.query)["uri"][0],
            authority=headers["authority"],
            id=headers["id"],
            content=answer.content,
            contenttype=answer.headers["content-type"],
            descriptions={name: headers[name] for name in names},
        )


@contextmanager
def running_registries(
    home: Path, api: Api, *names: str, databases: Mapping[str, str] | None = None, **settings: str
) -> Iterator[list[Client]]:
    """Runs registries; yields their clients for one API.

    databases: URLs by name, of those that do not use SQLite. settings: environment variables of all of them.
    """
    with ExitStack() as stack:
        found = []
        for name in names:
            database = (databases or {}).get(name)
            registry = Registry(home / name, database, LOCAL, None, **{"ANNALS_SINKS_PLAINTEXT": "true", **settings})
            stack.callback(registry.close)
            registry.start()
            found.append(Client(registry, api))
        yield found
