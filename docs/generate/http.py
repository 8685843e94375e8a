"""docs/reference/http.md: the paths of every surface, from the OpenAPI documents that a new registry serves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from annals.domain.compat.legacy_apis import LEGACY_APIS
from docs.generate.application import running_registry
from docs.generate.markdown import code, page, table

_INTRODUCTION: Final = """\
The paths of a new registry. The registry itself describes its API at `/-/openapi.json`, for the model and the
capabilities in force, and at `/-/docs` for people; both also have the members of requests and answers. `/-/` lists the
paths with their methods, as JSON and, for a browser, as a page.

Each path also answers HEAD and OPTIONS, and each answer has a header `Server` with the version of the program. An
answer that shows or changes the state of the registry has `Annals-Position`, the position of that state in the log.
Each GET accepts `waitfor` with such a position, and `timeout`; see
[Several servers](../guides/operation.md#several-servers). A write is `application/json`; an error is one of
[these](errors.md)."""
_REGISTRY_NOTE: Final = """\
Each type of Groups has the same paths. Here they are those of `schemagroups`; `messagegroups` and `endpoints` have
`messages` in place of `schemas`. Their Resources have no documents, so they have no paths with `$details`."""
#: The tags of the document that are shown: its paths' heading, and what stands before them.
_SECTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "registry": ("The registry", ""),
    "schemagroups": ("Groups, Resources and Versions", _REGISTRY_NOTE),
    "subscriptions": ("Subscriptions", "See the [guide](../guides/subscriptions/README.md)."),
    "server": ("Paths of this server", "Paths below `/-/` are not of the specification."),
}
_METHODS: Final = ("get", "put", "patch", "post", "delete")

Document = Mapping[str, Any]


def text() -> str:
    """The whole page."""
    with running_registry() as registry:
        document = registry.get("/-/openapi.json")
        legacy = {api.name: registry.get(f"/-/openapi/{api.name}.json") for api in LEGACY_APIS}
    parts = [part for tag in _SECTIONS for part in _section(document, tag)]
    parts += ["## Flags and headers", "Of the registry and its entities.", _flags(document)]
    parts += [part for api in legacy.values() for part in _legacy_section(api)]
    return page("HTTP", _INTRODUCTION, *parts)


def _section(document: Document, tag: str) -> Iterator[str]:
    heading, note = _SECTIONS[tag]
    paths = {
        path: item
        for path, item in document["paths"].items()
        if any(tag in item[method]["tags"] for method in _METHODS if method in item)
    }
    yield from (f"## {heading}", *((note,) if note else ()), _operations(paths))
    if parameters := [*_own_parameters(paths)]:
        yield table(("Path", "Parameter", "Meaning"), parameters)


def _legacy_section(document: Document) -> Iterator[str]:
    base = document["servers"][0]["url"].partition("/compat")
    yield f"## {document['info']['title']} {document['info']['version']}"
    yield f"Below `{base[1]}{base[2]}`; see the [guide](../guides/compat.md)."
    yield _operations(document["paths"])


def _operations(paths: Mapping[str, Any]) -> str:
    rows = (
        (code(f"{method.upper()} {path}"), item[method]["summary"])
        for path, item in paths.items()
        for method in _METHODS
        if method in item
    )
    return table(("Request", "Does"), rows)


def _own_parameters(paths: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The parameters that paths describe themselves, not by a reference to a common one."""
    for path, item in paths.items():
        operations = (item[method] for method in _METHODS if method in item)
        listed = [*item.get("parameters", ()), *(row for each in operations for row in each.get("parameters", ()))]
        described = {row["name"]: row for row in listed if row.get("description")}
        for index, row in enumerate(described.values()):
            yield "" if index else code(path), code(row["name"]), row["description"]


def _flags(document: Document) -> str:
    """The common parameters, without the headers that only some types of documents have."""
    common = {name: row for name, row in document["components"]["parameters"].items() if "." not in name}
    return table(("Name", "In", "Meaning"), _flag_rows(common.values()))


def _flag_rows(parameters: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for row in parameters:
        yield code(row["name"]), row["in"], row.get("description", "")
