"""`annals config`: prints the settings in force."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from annals.api.cli.options import Database, PublicUrl, load_settings
from annals.api.cli.setup.settings_classes import SETTINGS_CLASSES
from annals.api.settings.settings import Settings
from annals.api.settings.shown_settings import ShownSetting, shown_settings

Explain = Annotated[
    bool, typer.Option("--explain", help="Also print the type, the default and the source of each value.")
]


def config(explain: Explain = False, database: Database = None, public_url: PublicUrl = None) -> None:
    """Print the settings in force, with secrets hidden.

    The output has the form of an .env file. Secrets, and passwords in URLs, are `***` in it: before you use it as .env,
    write them in their places. The value of a setting comes from the first of these that has it: a flag,
    the environment, .env in the current folder, the default.

    Example: annals config --explain
    """
    flags = {name: value for name, value in {"database": database, "public_url": public_url}.items() if value}
    registry = load_settings(**flags)
    every_object = [registry if kind is Settings else kind() for kind in SETTINGS_CLASSES]
    for settings in every_object:
        for setting in shown_settings(settings, flags if settings is registry else ()):
            typer.echo("\n".join(_lines(setting, explain)))


def _lines(setting: ShownSetting, explain: bool) -> Iterator[str]:
    info = setting.info
    yield f"# {info.description}"
    if explain:
        yield f"#   type: {info.type}"
        yield f"#   default: {info.default or 'none'}"
        yield f"#   value from: {setting.source}"
    yield f"{info.name}={setting.value}" if setting.value else f"# {info.name}="
