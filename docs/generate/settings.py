"""docs/reference/settings.md: every setting with its type, default and meaning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pydantic_settings import BaseSettings

from annals.api.cli.setup.settings_classes import SETTINGS_CLASSES
from annals.api.cli.setup.spark_settings import SparkSettings
from annals.api.settings.client_settings import ConsoleSettings, KafkaSettings
from annals.api.settings.setting_info import setting_infos
from annals.api.settings.settings import Settings
from docs.generate.markdown import code, page, table

_INTRODUCTION: Final = """\
The value of a setting comes from the first of these that has it: a flag of the command, the environment, the file
`.env` in the current folder, the default. `annals config` prints the settings in force, with `***` for secrets;
`annals config --explain` also prints where each value comes from. A variable `ANNALS_...` that is not on this page
causes a warning at the start."""
_HEAD: Final = ("Setting", "Type", "Default", "Meaning")
#: The heading of each class, and the text below it.
_SECTIONS: Final[dict[type[BaseSettings], tuple[str, ...]]] = {
    Settings: ("## The registry",),
    KafkaSettings: ("## Kafka", "For `annals publish`, and for verbs that read a topic."),
    ConsoleSettings: ("## Options of verbs", "Verbs use these where the option is missing."),
    SparkSettings: (
        "## Spark",
        "For the verbs that start Spark, and for `annals.spark_projections.session` in Python.",
    ),
}


def text() -> str:
    """The whole page."""
    sections = (part for kind in SETTINGS_CLASSES for part in (*_SECTIONS[kind], table(_HEAD, _rows(kind))))
    return page("Settings", _INTRODUCTION, *sections)


def _rows(kind: type[BaseSettings]) -> Iterator[tuple[str, str, str, str]]:
    for info in setting_infos(kind):
        yield code(info.name), info.type, code(info.default) if info.default else "", info.description
