"""The descriptions of the two legacy APIs: routing, query parameters and the OpenAPI documents are read from them."""

from __future__ import annotations

from typing import Final

from annals.api.openapi.builders import Schema
from annals.api.openapi.named_schemas import move_named_schemas
from annals.api.openapi.path_files import fill_placeholders, load_file, path_items
from annals.domain.compat.document_attributes import request_names
from annals.domain.compat.legacy_apis import LEGACY_APIS, LegacyApi

#: The maximum number of members in a page.
MAX_LIMIT: Final = 10_000


def _fill_description(file: Schema, family: LegacyApi) -> Schema:
    """A file as it is for one API, with `paths` as OpenAPI has them."""
    own = file[family.name]
    values = {
        **own["values"],
        "GROUPS": family.path,
        "CHILDREN": family.children,
        "LOOKUP": family.lookup,
        "HEADERS": family.headers,
        "ABOUT": request_names(family)["about"][0],
        "PAGE_LIMIT": MAX_LIMIT,
    }
    filled = fill_placeholders({**file, "schemas": own["schemas"]}, values)
    paths = move_named_schemas(path_items(filled))
    return {**filled, "paths": paths.part, "schemas": {**filled["schemas"], **paths.schemas}}


_DESCRIPTION_FILE: Final = load_file("annals.api.compat")
#: What each API has, by its name: `info`, `paths`, `headers`, `schemas` and `refused`, the statuses of all problems.
DESCRIPTIONS: Final = {family.name: _fill_description(_DESCRIPTION_FILE, family) for family in LEGACY_APIS}
