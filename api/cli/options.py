"""Options that several verbs share, and the settings that they come to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy.engine import make_url

from api.cli.outcome import StoreError, UsageError
from api.settings.settings import Settings

Database = Annotated[
    str | None,
    typer.Option("--database", metavar="URL", help="The store: sqlite:///annals.db, postgresql://user@host/name."),
]
PublicUrl = Annotated[
    str | None,
    typer.Option("--public-url", metavar="URL", help="Root of the registry as its clients see it."),
]


def load_settings(**flags: Any) -> Settings:
    """The settings, flags that were given before the environment and `.env`.

    Raises: ValidationError for a setting that cannot be, UsageError for an `.env` that is no text.
    """
    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except UnicodeDecodeError:
        raise UsageError("the file .env is not UTF-8 text; mend it or move it away.") from None


def require_store(settings: Settings) -> Settings:
    """The same settings, when their store can be there; a verb that only looks must not make an empty one.

    Raises: StoreError when the file of an SQLite store is missing.
    """
    url = make_url(settings.database)
    file = url.database
    if url.get_backend_name() == "sqlite" and file and not file.startswith("file:") and not Path(file).exists():
        raise StoreError(f"there is no store at {file}; `annals serve` or `annals import` makes one.")
    return settings
