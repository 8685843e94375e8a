"""A client of `/-/keys` and `/-/grants` over a store, as an administrator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from annals.api.access.collections import AccessContext
from annals.api.access.grant_routes import GrantRoutes
from annals.api.access.key_routes import KeyRoutes
from annals.api.cli.open_registry import open_local_registry
from annals.api.cli.surface_client import SurfaceClient
from annals.api.settings.settings import Settings
from annals.projections.access.key_uses import KeyUses
from annals.projections.access.stored_access import StoredAccess


@contextmanager
def open_key_client(settings: Settings) -> Iterator[SurfaceClient]:
    """Raises: StoreError."""
    with open_local_registry(settings) as registry, closing(KeyUses(settings.database)) as key_uses:
        key_uses.open()
        yield SurfaceClient(KeyRoutes(AccessContext(registry, StoredAccess()), key_uses))


@contextmanager
def open_grant_client(settings: Settings) -> Iterator[SurfaceClient]:
    """Raises: StoreError."""
    with open_local_registry(settings) as registry:
        yield SurfaceClient(GrantRoutes(AccessContext(registry, StoredAccess())))
