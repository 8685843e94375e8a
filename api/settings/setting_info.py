"""Each setting of a class of settings: its variable, type, default and meaning."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

_TYPE_NAMES: Final = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "true or false",
    type(None): "",
}
#: How limits of a value are written, by the attribute of pydantic's metadata.
_LIMITS: Final = {"ge": "at least {}", "gt": "above {}", "le": "at most {}"}


class SettingInfo(NamedTuple):
    """One setting. name: its environment variable. default: as text; empty if there is none."""

    name: str
    type: str
    default: str
    description: str


def setting_infos(kind: type[BaseSettings]) -> Iterator[SettingInfo]:
    """The settings of a class, in the order of its fields."""
    for field, info in kind.model_fields.items():
        yield SettingInfo(
            variable_name(kind, field), _type_with_limits(info), value_text(info.default), info.description or ""
        )


def variable_name(kind: type[BaseSettings], field: str) -> str:
    """The environment variable of a field."""
    return (kind.model_config["env_prefix"] + field).upper()


def value_text(value: Any) -> str:
    """A value as the environment has it; empty for no value."""
    if value is None or value == {}:
        return ""
    return json.dumps(value) if isinstance(value, bool | dict) else str(value)


def _type_with_limits(field: FieldInfo) -> str:
    limits = (
        text.format(limit)
        for each in field.metadata
        for name, text in _LIMITS.items()
        if (limit := getattr(each, name, None)) is not None
    )
    return ", ".join((_type_name(field.annotation), *limits))


def _type_name(annotation: Any) -> str:
    if get_origin(annotation) is Annotated:
        return _type_name(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        *values, last_value = map(str, get_args(annotation))
        return f"{', '.join(values)} or {last_value}"
    if get_origin(annotation) in (Union, types.UnionType):
        return next(name for each in get_args(annotation) if (name := _type_name(each)))
    if get_origin(annotation) is dict:
        return "JSON object"
    return _TYPE_NAMES.get(annotation, "text")
