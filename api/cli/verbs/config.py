"""`annals config`: prints the settings in force."""

from __future__ import annotations

from itertools import chain

import typer

from annals.api.cli.options import Database, PublicUrl, load_settings
from annals.api.settings.settings import list_settings


def config(database: Database = None, public_url: PublicUrl = None) -> None:
    """Print the settings in force, with passwords hidden.

    You can save the output as an .env file. The value of a setting comes from the first of these that has it: a flag,
    the environment, .env in the current folder, the default.
    """
    from annals.api.cli.kafka_settings import KafkaSettings

    registry = load_settings(database=database, public_url=public_url)
    for setting in chain(list_settings(registry), list_settings(KafkaSettings())):
        typer.echo(f"# {setting.description}")
        typer.echo(f"{setting.name}={setting.value}" if setting.value else f"# {setting.name}=")
