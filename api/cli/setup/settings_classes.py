"""All classes of settings, and the names of their variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pydantic_settings import BaseSettings

from annals.api.cli.setup.spark_settings import SparkSettings
from annals.api.settings.client_settings import ConsoleSettings, KafkaSettings
from annals.api.settings.setting_info import variable_name
from annals.api.settings.settings import Settings

SETTINGS_CLASSES: Final[tuple[type[BaseSettings], ...]] = (Settings, KafkaSettings, ConsoleSettings, SparkSettings)


_CLASSES_BY_NAME: Final = {kind.__name__: kind for kind in SETTINGS_CLASSES}


def variable_of_error(class_name: str, *location: str) -> str:
    """The variable that a ValidationError is about. class_name: its title. location: of one of its errors."""
    return variable_name(_CLASSES_BY_NAME.get(class_name, Settings), "_".join(location))


def variable_names() -> Iterator[str]:
    """The environment name of every setting."""
    return (variable_name(kind, field) for kind in SETTINGS_CLASSES for field in kind.model_fields)
