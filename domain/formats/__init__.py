"""Schema formats: what a document of one has to be, and which changes between Versions it allows.

A format is a module of this package that implements `contract.SchemaFormat`; `FORMAT_MODULES` lists them by name. A
module and its libraries are imported when a document is first checked, in the process that checks it, so that a server
which only reads never loads them.
Spec: core 1.0-rc4, "format Attribute"; schema 1.0-rc4, "Schema Formats".
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib import import_module
from typing import Final, cast

from domain.formats.contract import DocumentLocation, Incompatibility, InvalidDocument, SchemaFormat

__all__ = [
    "COMPATIBILITIES",
    "FORMAT_MODULES",
    "DocumentLocation",
    "FormatModule",
    "Incompatibility",
    "InvalidDocument",
    "SchemaFormat",
    "find_format",
    "matches_format",
]

#: Every rule of compatibility that core names; a format that can compare two documents can check all of them.
COMPATIBILITIES: Final = (
    *("backward", "backward_transitive", "forward", "forward_transitive", "full", "full_transitive"),
)


@dataclass(frozen=True, slots=True)
class FormatModule:
    """One schema format, before anything of it is imported.

    names: the values of `format` that mean it, in any letter case; `*` stands for any text. text: documents are text,
    which a JSON document carries as one string; otherwise they are JSON. compares: whether it can compare two
    documents. tame: to parse a small document, or to compare two, costs no more than to ask a process.
    """

    module: str
    names: tuple[str, ...]
    text: bool = False
    compares: bool = True
    tame: bool = False

    def load(self) -> SchemaFormat:
        """The format itself; its libraries are imported with it."""
        return cast(SchemaFormat, import_module(f"{__name__}.{self.module}"))


def _releases(family: str, *releases: str) -> tuple[str, ...]:
    return tuple(name for release in releases for name in (f"{family}/{release}", f"{family}/{release}.*"))


#: Every format that this registry knows.
FORMAT_MODULES: Final[tuple[FormatModule, ...]] = (
    FormatModule("avro", _releases("Avro", "1.8", "1.9", "1.10", "1.11", "1.12"), tame=True),
    FormatModule(
        "jsonschema",
        (
            *("JsonSchema/draft-04", "JsonSchema/draft-06", "JsonSchema/draft-07"),
            *("JsonSchema/draft/2019-09", "JsonSchema/draft/2020-12"),
            *("JsonSchema/draft-2019-09", "JsonSchema/draft-2020-12"),
        ),
    ),
    FormatModule("jsonstructure", ("JsonStructure/draft-04",)),
    FormatModule("protobuf", tuple(f"Protobuf/{name}" for name in ("2", "2.0", "3", "3.0", "2023", "2024")), text=True),
    FormatModule("xsd", ("XSD/1.0", "XSD/1.1", "XMLSchema/1.0", "XMLSchema/1.1"), text=True),
    FormatModule(
        "graphql", tuple(f"GraphQL/{name}" for name in ("June2018", "October2021", "September2025")), text=True
    ),
    FormatModule("openapi", _releases("OpenAPI", "2.0", "3.0", "3.1", "3.2"), compares=False),
)


@lru_cache(maxsize=1024)
def find_format(name: str) -> FormatModule | None:
    """The format of a name, in any letter case."""
    return next((room for room in FORMAT_MODULES if any(matches_format(name, pattern) for pattern in room.names)), None)


def matches_format(name: str, pattern: str) -> bool:
    """Whether a `format` value is one that a name with `*` stands for, in any letter case (SC-15)."""
    return fnmatchcase(name.lower(), pattern.lower().replace("[", "[[]").replace("?", "[?]"))
