"""`annals config`: prints the settings in force."""

from __future__ import annotations

from itertools import chain

import typer

from api.cli.options import Database, PublicUrl, load_settings
from api.settings.settings import list_settings


def config(database: Database = None, public_url: PublicUrl = None) -> None:
    """Print the settings in force, passwords hidden.

    The lines can be kept as an .env file. Each setting comes from a flag, else from the environment, else from .env in
    the current folder, else it has the value shown here by default.
    """
    from api.cli.kafka_settings import KafkaSettings

    registry = load_settings(database=database, public_url=public_url)
    for setting in chain(list_settings(registry), list_settings(KafkaSettings())):
        typer.echo(f"# {setting.description}")
        typer.echo(f"{setting.name}={setting.value}" if setting.value else f"# {setting.name}=")
