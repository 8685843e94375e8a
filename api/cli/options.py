"""Options that several verbs share, and the settings that they produce."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import unquote

import typer

from annals.api.cli.outcome import StoreError, UsageError
from annals.api.cli.setup.log_config import configure_logs

if TYPE_CHECKING:
    from annals.api.settings.client_settings import ConsoleSettings
    from annals.api.settings.settings import Settings
    from annals.commands.store.database.store_presence import DatabaseContents

Database = Annotated[
    str | None,
    typer.Option("--database", metavar="URL", help="The store: sqlite:///annals.db, postgresql://user@host/name."),
]
PublicUrl = Annotated[
    str | None,
    typer.Option("--public-url", metavar="URL", help="Root of the registry as its clients see it."),
]

_STORE_CREATION: Final = "`annals serve` or `annals import` creates one"
#: What the names of a SQLite store's files have at their ends.
_SQLITE_ENDS: Final = ("", "-wal", "-shm", "-journal")
#: The largest integer of the databases, for options with positions and limits.
MAX_INTEGER: Final = 2**63 - 1
#: The largest integer of Kafka, of Java and of lists in memory, for options with numbers of things.
MAX_COUNT: Final = 2**31 - 1
#: A week, for options with pauses: Python's timers cannot wait for all numbers.
MAX_SECONDS: Final = 604_800


def require_id(id: str | None) -> str | None:
    """The id of an argument, None if it is omitted.

    Raises: BadParameter if it is empty, as the value of a variable that a script has not set.
    """
    if id == "":
        raise typer.BadParameter("it is empty.")
    return id


def require_ids(ids: list[str]) -> list[str]:
    """The ids of an argument. Raises: BadParameter if one of them is empty."""
    for id in ids:
        require_id(id)
    return ids


def require_moment(moment: str | None) -> str | None:
    """The moment of an option, None if it is omitted. Whether this registry has it is not checked.

    Raises: BadParameter if it is neither a position, nor a time, nor has the form of a correlation id.
    """
    if moment is not None:
        from annals.projections.log.reader import check_moment  # late, because help does not need it

        try:
            check_moment(moment)
        except (ValueError, OverflowError) as error:
            raise typer.BadParameter(f"{error}.") from None
    return moment


def load_settings(**flags: Any) -> Settings:
    """The settings. Given flags have precedence over the environment and `.env`.

    From then on, log lines are as these settings say. Prints a warning for each variable that is no setting.
    Raises: ValidationError for an invalid setting; UsageError if `.env` is not text.
    """
    # Late, because the help of a verb does not need them.
    from annals.api.cli.setup.unknown_settings import warn_about_unknown_settings
    from annals.api.settings.settings import Settings

    with _explain_file_error():
        settings = Settings(**{name: value for name, value in flags.items() if value is not None})
    configure_logs(settings)
    warn_about_unknown_settings()
    return settings


def load_console_settings() -> ConsoleSettings:
    """What takes the place of missing options. Prints the same warnings. Raises: UsageError if `.env` is not text."""
    from annals.api.cli.setup.unknown_settings import warn_about_unknown_settings
    from annals.api.settings.client_settings import ConsoleSettings

    with _explain_file_error():
        warn_about_unknown_settings()
        return ConsoleSettings()


def bearer_token(option: str | None, url: str | None) -> str | None:
    """The token for another registry: that of the option, of the settings, or of the sign-in at the origin of its URL.

    url: or any other text, for which nobody can sign in. Raises: as `token_for`.
    """
    from annals.api.cli.server_tokens import token_for

    token = load_console_settings().token
    return option or (token.get_secret_value() if token else None) or token_for(url or "")


@contextmanager
def _explain_file_error() -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError:
        raise UsageError("the file .env is not UTF-8 text; correct it or move it away.") from None


def require_store(settings: Settings) -> Settings:
    """The same settings, if their store exists. A verb that only reads must not create an empty store.

    Raises: StoreError if there is no store; the errors of the driver.
    """
    contents, file = _read_contents(settings), sqlite_file(settings)
    if contents is None:
        raise StoreError(f"there is no store at {file}; {_STORE_CREATION}.")
    if not contents.has_store:
        from annals.api.settings.shown_settings import mask_password

        raise StoreError(f"there is no store in {file or mask_password(settings.database)}; {_STORE_CREATION}.")
    return settings


def require_folder(settings: Settings) -> None:
    """Checks that a SQLite store is where the settings say, or can be created there.

    Raises: StoreError if the folder is missing, or if the file has tables of another program and no store.
    """
    if sqlite_file(settings) is not None:
        _read_contents(settings)


def _read_contents(settings: Settings) -> DatabaseContents | None:
    """What the database has; None if the file of a SQLite store is missing. Raises: as `require_folder`."""
    from annals.commands.store.database.store_presence import read_contents

    file = sqlite_file(settings)
    if file is not None:
        _require_parent(file)
        if not file.exists():
            return None
    contents = read_contents(settings.database)
    if contents.other_tables:
        raise StoreError(
            f"{file} has tables of another program, such as {contents.other_tables[0]}, and no store; correct "
            "ANNALS_DATABASE or --database."
        )
    return contents


def _require_parent(file: Path) -> None:
    """Raises: StoreError if the folder of a SQLite store is missing. Nothing creates it."""
    if file.parent.is_dir():
        return
    hint = "" if file.is_absolute() else f" An absolute path has four slashes, as in sqlite:////{file}."
    raise StoreError(
        f"there is no folder {file.parent.absolute()} for the store {file}; create it, or correct ANNALS_DATABASE or "
        f"--database.{hint}"
    )


def require_other_file(path: Path | None, settings: Settings, *inputs: Path | None) -> None:
    """Checks that a file which a verb writes is none of those that it reads, and none of a SQLite store.

    Raises: UsageError.
    """
    if path is None or (path.exists() and not path.is_file()):  # devices and pipes have nothing to lose
        return
    store = sqlite_file(settings)
    store_files = [store.with_name(store.name + end) for end in _SQLITE_ENDS] if store is not None else []
    for file in (*inputs, *store_files):
        if file is not None and _is_same_file(path, file):
            contents = "the store" if file in store_files else "an input"
            raise UsageError(f"{path} is {contents}, which the output would replace; name another file.")


def _is_same_file(path: Path, other: Path) -> bool:
    """Whether both paths lead to one file, also by links; the file need not exist."""
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


def sqlite_file(settings: Settings) -> Path | None:
    """The file of an SQLite store, as the settings name it; None for another database."""
    from sqlalchemy.engine import make_url

    url = make_url(settings.database)
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    name = str(url.database)
    return Path(unquote(name.removeprefix("file:").partition("?")[0])) if name.startswith("file:") else Path(name)
