"""The registry opened by the console itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from api.console.outcome import StoreFault
from api.settings import Settings
from api.wiring import Registry, open_registry


@contextmanager
def opened(settings: Settings) -> Iterator[Registry]:
    """The registry of the settings, made where there is none yet.

    Raises: StoreFault when its store is not one that this program can write.
    """
    try:
        registry = open_registry(settings)
    except RuntimeError as error:
        raise StoreFault(str(error)) from error
    with closing(registry):
        yield registry
