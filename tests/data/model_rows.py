"""A model as rows: the definition of each attribute as one short text, by path, so that a table can hold a whole model.

`boolean! = false` is a required boolean whose default is false, `string: a | b` has an enum and `string: a | ...` one
that is not strict; `[string]` is an array, `{string}` a map, and `<a: string, b: uri>` an object. `-> /dirs` is a
target, `extended` the larger set of characters; `protocol=KAFKA/` begins the paths of sibling attributes of that value.
Descriptions are omitted. All other aspects of a definition are appended to the text unchanged, so that none is lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]
_CHILDREN = ("groups", "resources", "attributes", "resourceattributes", "metaattributes")


def rows(model: Json, *, prefix: str = "") -> dict[str, str]:
    """Each attribute of the registry, of its Groups and of their Resources, and each aspect of those."""
    found: dict[str, str] = {}
    for name, value in model.items():
        if name in ("groups", "resources"):
            for plural, child in value.items():
                found |= rows(child, prefix=f"{prefix}/{plural}")
        elif name in _CHILDREN:
            part = {"attributes": "", "resourceattributes": "resource ", "metaattributes": "meta "}[name]
            found |= {f"{prefix} {part}{path}": text for path, text in _attributes(value)}
        elif name not in ("description", "$schema"):
            found[f"{prefix} ({name})"] = json.dumps(value)
    return found


def _attributes(attributes: Json, above: str = "") -> Iterator[tuple[str, str]]:
    """The rows of a map of attributes. An attribute that does not fit into one row has further rows for its members."""
    for name, definition in attributes.items():
        assert definition.get("name", name) == name
        path = f"{above}{name}"
        if _fits(definition):
            yield path, _text(definition)
        else:
            yield path, _text(definition, members=False)
            yield from _inside(definition, path)
        for value, addition in definition.get("ifvalues", {}).items():
            assert list(addition) == ["siblingattributes"]
            yield from _attributes(addition["siblingattributes"], f"{above}{name}={value}/")


def _inside(definition: Json, path: str) -> Iterator[tuple[str, str]]:
    if "item" in definition:
        yield from _inside(definition["item"], path + "/*")
    yield from _attributes(definition.get("attributes", {}), path + "/")


def _fits(definition: Json) -> bool:
    """Whether one row can hold the definition: its members, if any, are neither objects nor collections."""
    if "item" in definition:
        return _fits(definition["item"])
    return not any(
        "attributes" in each or "item" in each or "ifvalues" in each
        for each in definition.get("attributes", {}).values()
    )


def _text(definition: Json, *, members: bool = True) -> str:
    left = {**definition, "type": definition["type"]}
    for each in ("name", "description", "ifvalues"):
        left.pop(each, None)
    text = _type(left.pop("type"), left.pop("item", None), left.pop("attributes", {}), members)
    text += "!" if left.pop("required", False) else ""
    if (choice := left.pop("enum", [])) or not left.get("strict", True):
        text += ": " + " | ".join([*map(_value, choice), *([] if left.pop("strict", True) else ["..."])])
    left.pop("strict", None)
    text += f" = {json.dumps(left.pop('default'))}" if "default" in left else ""
    text += f" -> {left.pop('target')}" if "target" in left else ""
    text += f", {left.pop('namecharset')}" if "namecharset" in left else ""
    return text + "".join(f", {name}" if value is True else f", {name} {value!r}" for name, value in left.items())


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _type(type: str, item: Json | None, attributes: Json, members: bool) -> str:
    if item is not None:
        return ("[{}]" if type == "array" else "{{{}}}").format(_text(item, members=members))
    if not attributes or not members:
        return type
    return f"<{', '.join(f'{name}: {_text(each)}' for name, each in attributes.items())}>"
