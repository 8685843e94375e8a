"""Opens the registry for the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from annals.api.cli.options import require_folder
from annals.api.cli.outcome import StoreError

if TYPE_CHECKING:
    from annals.api.registry.open_registry import Registry
    from annals.api.settings.settings import Settings


@contextmanager
def open_local_registry(settings: Settings, address: str | None = None) -> Iterator[Registry]:
    """The registry of the settings; creates it if it does not exist.

    address: the URL of the registry, if it is known better than from the settings. Raises: StoreError if this program
    cannot write the store, or if the folder of an SQLite store is missing.
    """
    # Late, because the help of a verb does not need the registry.
    from annals.api.registry.open_registry import open_registry
    from annals.api.settings.settings import server_url

    require_folder(settings)
    try:
        registry = open_registry(settings, address=address or server_url(settings))
    except RuntimeError as error:
        raise StoreError(str(error)) from error
    with closing(registry):
        yield registry
