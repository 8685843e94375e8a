"""Options that several verbs share, and the settings that they produce."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from annals.api.cli.outcome import StoreError, UsageError

if TYPE_CHECKING:
    from annals.api.settings.settings import Settings

Database = Annotated[
    str | None,
    typer.Option("--database", metavar="URL", help="The store: sqlite:///annals.db, postgresql://user@host/name."),
]
PublicUrl = Annotated[
    str | None,
    typer.Option("--public-url", metavar="URL", help="Root of the registry as its clients see it."),
]


def load_settings(**flags: Any) -> Settings:
    """The settings. Given flags have precedence over the environment and `.env`.

    Raises: ValidationError for an invalid setting; UsageError if `.env` is not text.
    """
    from annals.api.settings.settings import Settings  # late, because the help of a verb does not need it

    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except UnicodeDecodeError:
        raise UsageError("the file .env is not UTF-8 text; correct it or move it away.") from None


def require_store(settings: Settings) -> Settings:
    """The same settings, if their store exists. A verb that only reads must not create an empty store.

    Raises: StoreError if the file of an SQLite store is missing.
    """
    from sqlalchemy.engine import make_url

    url = make_url(settings.database)
    file = url.database
    if url.get_backend_name() == "sqlite" and file and not file.startswith("file:") and not Path(file).exists():
        raise StoreError(f"there is no store at {file}; `annals serve` or `annals import` creates one.")
    return settings
