"""docs/reference/settings.md: every setting with its type, default and meaning."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from annals.api.cli.kafka_settings import KafkaSettings
from annals.api.cli.verbs.replicate import SECRET_VARIABLE
from annals.api.settings.settings import Settings
from annals.spark_projections.session import SparkSettings
from docs.generate.command_line import options_with_variables
from docs.generate.markdown import code, page, table

_INTRODUCTION: Final = """\
The value of a setting comes from the first of these that has it: a flag of the command, the environment, the file
`.env` in the current folder, the default. `annals config` prints the settings in force, with passwords hidden."""
_HEAD: Final = ("Setting", "Type", "Default", "Meaning")
_TYPE_NAMES: Final = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "`true` or `false`",
    type(None): "",
}
#: How limits of a value are written, by the attribute of pydantic's metadata.
_LIMITS: Final = {"ge": "at least {}", "gt": "above {}", "le": "at most {}"}


def text() -> str:
    """The whole page. Raises: ValueError if a class of settings is missing."""
    known = {each for each in BaseSettings.__subclasses__() if each.__module__.startswith("annals.")}
    if known != {Settings, KafkaSettings, SparkSettings}:
        raise ValueError(f"{__file__} has to list these settings, too: {known}")
    return page(
        "Settings",
        _INTRODUCTION,
        "## The registry",
        table(_HEAD, _rows(Settings)),
        "## Kafka",
        "For `annals publish`, and for verbs that read a topic.",
        table(_HEAD, _rows(KafkaSettings)),
        "## Spark",
        "For the verbs that start Spark, and for `annals.spark_projections.session` in Python.",
        table(_HEAD, _rows(SparkSettings)),
        "## Single options",
        "Environment variables that some verbs read where the option is missing.",
        table(("Variable", "Option", "Verbs"), _variables()),
    )


def _rows(settings: type[BaseSettings]) -> Iterator[tuple[str, str, str, str]]:
    prefix = settings.model_config["env_prefix"]
    for name, field in settings.model_fields.items():
        yield code(prefix + name.upper()), _type(field), _default(field), field.description or ""


def _default(field: FieldInfo) -> str:
    return "" if field.default in (None, {}) else code(field.default)


def _type(field: FieldInfo) -> str:
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
        return ", ".join(code(value) for value in get_args(annotation))
    if get_origin(annotation) in (Union, types.UnionType):
        return next(name for each in get_args(annotation) if (name := _type_name(each)))
    if get_origin(annotation) is dict:
        return "JSON object"
    return _TYPE_NAMES.get(annotation, "text")


def _variables() -> Iterator[tuple[str, str, str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for verb, option, variable in options_with_variables():
        found.setdefault((variable, option), []).append(verb)
    for (variable, option), verbs in sorted(found.items()):
        yield code(variable), code(option), ", ".join(map(code, verbs))
    yield code(SECRET_VARIABLE), "`--secret-file`, `--ask`", "`annals replicate add`"
