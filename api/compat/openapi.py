"""The OpenAPI documents of the two legacy APIs.

They are separate documents because client generators need the base URL of each API as a server, and because the model
does not change them. The OpenAPI document of the registry links to them.
"""

from __future__ import annotations

from typing import Any, Final

from annals.api.compat.descriptions import DESCRIPTIONS
from annals.api.openapi.builders import Schema
from annals.api.openapi.content_encoding import add_coding_headers, add_coding_to_paths
from annals.api.openapi.path_files import COMPONENTS
from annals.api.openapi.positions import WAIT_PARAMETERS, add_position_headers, add_positions_to_paths
from annals.api.openapi.problems import problem_response, problem_schema
from annals.domain.compat.legacy_apis import LegacyApi

#: The schema of problems, and the prefix of the responses with one.
_REFUSAL: Final = "Refusal"


def compat_openapi_document(family: LegacyApi, base_url: str) -> dict[str, Any]:
    """The complete OpenAPI document of one legacy API. base_url: absolute URL of the registry."""
    described = DESCRIPTIONS[family.name]
    return {
        "openapi": "3.1.0",
        "info": described["info"],
        "servers": [{"url": base_url + family.base}],
        "security": [{}, {"bearer": []}],
        "paths": add_positions_to_paths(add_coding_to_paths(described["paths"])),
        "components": {
            "schemas": {
                _REFUSAL: problem_schema("status", "detail", "instance"),
                **COMPONENTS["schemas"],
                **described["schemas"],
            },
            "parameters": WAIT_PARAMETERS,
            "headers": {**COMPONENTS["headers"], **described["headers"]},
            "responses": add_position_headers(
                add_coding_headers({f"{_REFUSAL}-{each}": _problem_response(each) for each in described["refused"]})
            ),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _problem_response(status: int) -> Schema:
    schema = {"$ref": f"#/components/schemas/{_REFUSAL}"}
    return problem_response(status, "application/problem+json", schema, "Link", "X-Content-Type-Options")
