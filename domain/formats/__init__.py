"""Schema formats: what makes a document valid, and which changes between Versions are compatible.

A format is a module of this package that implements `contract.SchemaFormat`; `FORMAT_MODULES` lists them by name. A
module and its libraries are imported at the first check of a document, in the process that checks it. So a server that
only reads never loads them. Rules for entities do not belong here. Begin with `contract.py`.
Spec: core 1.0-rc4, "format Attribute"; schema 1.0-rc4, "Schema Formats".
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib import import_module
from typing import Final, cast

from annals.domain.formats.contract import DocumentLocation, Incompatibility, InvalidDocument, SchemaFormat

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

#: All compatibility rules of core. Each format can check all of them.
COMPATIBILITIES: Final = (
    *("backward", "backward_transitive", "forward", "forward_transitive", "full", "full_transitive"),
)


@dataclass(frozen=True, slots=True)
class FormatModule:
    """One schema format, without importing it.

    names: the values of `format` that mean it, in any letter case; `*` matches any text. One without a release stands
    for that which each document declares. is_text: documents are text, which a JSON document embeds as one string;
    otherwise they are JSON. is_cheap: parsing a small document or comparing two costs no more than a request to a
    worker process.
    """

    module: str
    names: tuple[str, ...]
    is_text: bool = False
    is_cheap: bool = False

    def load(self) -> SchemaFormat:
        """The module of the format; imports its libraries too."""
        return cast(SchemaFormat, import_module(f"{__name__}.{self.module}"))


def _release_names(family: str, *releases: str) -> tuple[str, ...]:
    return tuple(name for release in releases for name in (f"{family}/{release}", f"{family}/{release}.*"))


#: Every format that this registry supports.
FORMAT_MODULES: Final[tuple[FormatModule, ...]] = (
    FormatModule("avro", _release_names("Avro", "1.8", "1.9", "1.10", "1.11", "1.12"), is_cheap=True),
    FormatModule(
        "jsonschema",
        (
            *("JsonSchema/draft-04", "JsonSchema/draft-06", "JsonSchema/draft-07"),
            *("JsonSchema/draft/2019-09", "JsonSchema/draft/2020-12"),
            *("JsonSchema/draft-2019-09", "JsonSchema/draft-2020-12"),
            "JsonSchema",
        ),
    ),
    FormatModule("jsonstructure", ("JsonStructure/draft-04",)),
    FormatModule(
        "protobuf",
        (*(f"Protobuf/{name}" for name in ("2", "2.0", "3", "3.0", "2023", "2024")), "Protobuf"),
        is_text=True,
    ),
    FormatModule("xsd", ("XSD/1.0", "XSD/1.1", "XMLSchema/1.0", "XMLSchema/1.1"), is_text=True),
    FormatModule(
        "graphql", tuple(f"GraphQL/{name}" for name in ("June2018", "October2021", "September2025")), is_text=True
    ),
    FormatModule("openapi", _release_names("OpenAPI", "2.0", "3.0", "3.1", "3.2")),
)


@lru_cache(maxsize=1024)
def find_format(name: str) -> FormatModule | None:
    """The format with a name, in any letter case; None for an unknown name."""
    return next(
        (
            format_module
            for format_module in FORMAT_MODULES
            if any(matches_format(name, pattern) for pattern in format_module.names)
        ),
        None,
    )


@lru_cache(maxsize=4096)
def matches_format(name: str, pattern: str) -> bool:
    """Whether a `format` value matches a name in which `*` matches any text, in any letter case (SC-15)."""
    return fnmatchcase(name.lower(), pattern.lower().replace("[", "[[]").replace("?", "[?]"))
