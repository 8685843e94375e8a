"""The models of the endpoint, message and schema registries: includes expanded, without descriptions.

They equal the published models, except for one target: an endpoint's `messagegroups` refer to message groups, not to
messages (EP-41).
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Final

#: The file of each Group type, in the order in which a registry shows them.
FILES: Final = {"endpoints": "endpoint.json", "messagegroups": "message.json", "schemagroups": "schema.json"}


def default_source() -> dict[str, Any]:
    """A new modelsource with all three, the initial one of a registry."""
    return source(*FILES)


def source(*plurals: str) -> dict[str, Any]:
    """A new modelsource with some of the Group types; `endpoints` need `messagegroups`, whose messages they import."""
    return {"groups": {plural: _read_file(FILES[plural])["groups"][plural] for plural in plurals}}


def _read_file(name: str) -> Any:
    return json.loads(files(__name__).joinpath(name).read_text("utf-8"))
