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

Each path also answers OPTIONS, and HEAD where it answers GET. Each answer has a header `Server` with the version of the
program. An answer that shows or changes the state of the registry has `Annals-Position`, the position of that state in
the log. Each GET accepts `waitfor` with such a position, and `timeout`; see [Several
servers](../guides/operation.md#several-servers). An error is one of [these](errors.md).

The body of a write is JSON. `/subscriptions` and Confluent's API refuse other media types than `application/json`; most
other paths read the body as JSON whatever its type is, so `curl --data` needs no header. These paths accept more:

| Path | Media type |
|---|---|
| the document of a Resource or a Version | any; it is stored as `contenttype`, without a change of the bytes |
| `/-/check/{path}`, `/-/compare/{path}` | any, for the document |
| `/subscriptions` and below | also `application/cloudevents-subscription+json` |
| `/-/links/{id}/log` | `application/x-ndjson` |
| `/-/links/{id}/events` | `application/cloudevents+json` |
| [Confluent's API](#confluent-schema-registrys-api) | also `application/vnd.schemaregistry.v1+json` and the like |

A browser may not send the types of HTML forms, except with a document; see
[Web pages](../guides/operation.md#http)."""
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
#: What the requests of Confluent's API do, whose document has no summaries.
_CONFLUENT_REQUESTS: Final[Mapping[str, str]] = {
    "GET /": "Read an empty object, which shows that the server answers",
    "POST /": "The same",
    "GET /subjects": "List the subjects",
    "POST /subjects/{subject}": "Find the version of a subject that has a schema",
    "DELETE /subjects/{subject}": "Soft-delete a subject, or with `permanent` for good",
    "GET /subjects/{subject}/versions": "List the versions of a subject",
    "POST /subjects/{subject}/versions": "Register a schema as a version of a subject",
    "GET /subjects/{subject}/versions/{version}": "Read a version; `latest` is the newest",
    "DELETE /subjects/{subject}/versions/{version}": "Soft-delete a version, or with `permanent` for good",
    "GET /subjects/{subject}/versions/{version}/schema": "Read the text of a version",
    "GET /subjects/{subject}/versions/{version}/referencedby": "List the ids of schemas that refer to a version",
    "POST /subjects/{subject}/versions/{version}/tags": "Refused: tags of single versions are not kept",
    "GET /subjects/{subject}/metadata": "Read the latest version whose metadata have given properties",
    "GET /schemas": "List the schemas of all subjects",
    "GET /schemas/ids/{id}": "Read a schema by its id",
    "GET /schemas/ids/{id}/schema": "Read the text of a schema by its id",
    "GET /schemas/ids/{id}/subjects": "List the subjects that have a schema",
    "GET /schemas/ids/{id}/versions": "List the subjects and versions that have a schema",
    "GET /schemas/guids/{guid}": "Read a schema by its guid",
    "GET /schemas/guids/{guid}/ids": "List the ids of a schema in the contexts",
    "GET /schemas/types": "List the types of schemas",
    "POST /compatibility/subjects/{subject}/versions": "Compare a schema with the versions of a subject, by its level",
    "POST /compatibility/subjects/{subject}/versions/{version}": "Compare a schema with one version",
    "GET /config": "Read the config of a context",
    "PUT /config": "Change the config of a context",
    "DELETE /config": "Remove the config of a context",
    "GET /config/{subject}": "Read the config of a subject",
    "PUT /config/{subject}": "Change the config of a subject",
    "DELETE /config/{subject}": "Remove the config of a subject",
    "GET /mode": "Read the mode of a context",
    "PUT /mode": "Change the mode of a context",
    "DELETE /mode": "Remove the mode of a context",
    "GET /mode/{subject}": "Read the mode of a subject",
    "PUT /mode/{subject}": "Change the mode of a subject",
    "DELETE /mode/{subject}": "Remove the mode of a subject",
    "GET /contexts": "List the contexts",
    "DELETE /contexts/{context}": "Delete a context that has no subjects",
    "POST /-/import": "Import versions with their ids, as `annals import --from-confluent --server` does",
    "GET /v1/metadata/id": "Read the id of the registry",
    "GET /v1/metadata/version": "Read the version of the server",
    "GET /v1/metadata/deployment": "Read how the server is run",
}
_METHODS: Final = ("get", "put", "patch", "post", "delete")

Document = Mapping[str, Any]


def text() -> str:
    """The whole page. Raises: ValueError if Confluent's API has requests without a text, or texts without a request."""
    with running_registry() as registry:
        document = registry.get("/-/openapi.json")
        confluent = registry.get("/-/openapi/confluent.json")
        legacy = {api.name: registry.get(f"/-/openapi/{api.name}.json") for api in LEGACY_APIS}
    parts = [part for tag in _SECTIONS for part in _section(document, tag)]
    parts += ["## Flags and headers", "Of the registry and its entities.", _flags(document)]
    parts += _confluent_section(confluent)
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


def _confluent_section(document: Document) -> Iterator[str]:
    requests = [
        f"{method.upper()} {path}" for path, item in document["paths"].items() for method in _METHODS if method in item
    ]
    if different := set(requests) ^ set(_CONFLUENT_REQUESTS):
        raise ValueError(f"say in {__file__} what these requests do, or remove them: {sorted(different)}")
    yield "## Confluent Schema Registry's API"
    yield (
        f"Below `{_compat_path(document)}`, and at the root of the port `ANNALS_CONFLUENT_PORT`; see the "
        f"[guide](../guides/confluent.md). {document['info']['description']} `asof` shows the past, and `dryrun` on a "
        "write shows the events that it would record."
    )
    yield table(("Request", "Does"), ((code(request), _CONFLUENT_REQUESTS[request]) for request in requests))


def _compat_path(document: Document) -> str:
    """The path of the only server, such as `/compat/confluent`."""
    base = document["servers"][0]["url"].partition("/compat")
    return f"{base[1]}{base[2]}"


def _legacy_section(document: Document) -> Iterator[str]:
    yield f"## {document['info']['title']} {document['info']['version']}"
    yield f"Below `{_compat_path(document)}`; see the [guide](../guides/compat.md)."
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
