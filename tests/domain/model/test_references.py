"""Which values of an entity refer to others, by the definitions that its values enable."""

from __future__ import annotations

from typing import Any

import pytest

from annals.domain.model.compile import compile_model
from annals.domain.model.references import reference_values


@pytest.mark.parametrize(
    ("switch", "key", "values"),
    [
        ({"type": "string"}, "Big", {"kind": "big"}),
        ({"type": "boolean"}, "true", {"kind": True}),
        ({"type": "integer"}, "1.0", {"kind": 1}),
        ({"type": "decimal"}, "1.5", {"kind": 1.5}),
        ({"type": "decimal"}, "1", {"kind": 1.0}),
        ({"type": "integer", "required": True, "default": 1}, "1", {}),
        ({"type": "integer", "required": True, "default": 1}, "1", {"kind": None}),
    ],
)
def test_siblings_refer_to_others(switch: Any, key: str, values: dict[str, Any]) -> None:
    # UI-77, MOD-20, MOD-23, MOD-24: numbers as values, a default is a value, siblings enable others
    inner = {"type": "string", "ifvalues": {"on": {"siblingattributes": {"deep": {"type": "xid"}}}}}
    siblings = {"near": {"type": "xid"}, "switch": inner}
    attributes = {"kind": switch | {"ifvalues": {key: {"siblingattributes": siblings}}}}
    model = compile_model({"groups": {"dirs": {"singular": "dir", "attributes": attributes}}})
    named = {"near": "/dirs/a", "deep": "/dirs/b", "switch": "on"}
    found = {reference.path: reference.uri for reference in reference_values(model, "dirs", values | named)}
    assert found == {("near",): "/dirs/a", ("deep",): "/dirs/b"}
    other = {"kind": 7 if switch["type"] in ("integer", "decimal") else "other"}
    assert [*reference_values(model, "dirs", other | named)] == []
