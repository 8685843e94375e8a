"""The registry opened by the console itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from api.cli.outcome import StoreError
from api.registry.open_registry import Registry, open_registry
from api.settings.settings import Settings, server_url


@contextmanager
def open_local_registry(settings: Settings, address: str | None = None) -> Iterator[Registry]:
    """The registry of the settings, made where there is none yet. address: where it is served, if that is known better.

    Raises: StoreError when its store is not one that this program can write.
    """
    try:
        registry = open_registry(settings, address=address or server_url(settings))
    except RuntimeError as error:
        raise StoreError(str(error)) from error
    with closing(registry):
        yield registry
