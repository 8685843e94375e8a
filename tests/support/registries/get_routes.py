"""The GET routes of all APIs of a registry, as listed in their OpenAPI documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Final, NamedTuple

from tests.support.registries.in_process import Api

CONFLUENT: Final = "/compat/confluent"
SCHEMAS: Final = "/compat/schemaregistry/v0.2"
MESSAGES: Final = "/compat/messagecatalog/v0.1"
#: The OpenAPI documents, each with the base of its paths.
DOCUMENTS: Final = {
    "/-/openapi.json": "",
    "/-/openapi/schemaregistry.json": SCHEMAS,
    "/-/openapi/messagecatalog.json": MESSAGES,
    "/-/openapi/confluent.json": CONFLUENT,
}


class GetRoute(NamedTuple):
    """A path with `{name}` for each parameter, and the names of the parameters of its query."""

    template: str
    query: frozenset[str]

    def paths(self, values: Mapping[str, Sequence[str]]) -> Iterator[str]:
        """The paths with each combination of values."""
        names = re.findall(r"\{(\w+)\}", self.template)
        for chosen in product(*(values[name] for name in names)):
            path = self.template
            for name, value in zip(names, chosen, strict=True):
                path = path.replace(f"{{{name}}}", value, 1)
            yield path

    def queries(self, queries: Iterable[str]) -> list[str]:
        """The query strings that have only parameters of the route."""
        return [q for q in queries if all(part.partition("=")[0] in self.query for part in q.split("&") if part)]


def get_routes(api: Api, authorization: str) -> Iterator[GetRoute]:
    """Each GET route of each API."""
    for document, base in DOCUMENTS.items():
        answer = api.done("GET", document, authorization=authorization).json()
        for template, operations in answer["paths"].items():
            if "get" in operations:
                parameters = [*operations["get"].get("parameters", ()), *operations.get("parameters", ())]
                query = frozenset(each["name"] for each in parameters if each.get("in") == "query")
                yield GetRoute(base + template, query)
