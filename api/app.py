"""The composition root: settings in, a running registry out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.routing import Mount, Route, Router
from starlette.types import ASGIApp

from api.problem import OWN
from api.routes.docs import DOCS, OPENAPI, Described
from api.routes.health import LIVEZ, READYZ, Health
from api.routes.xregistry import XRegistry
from api.wiring import Wanted, open_registry
from commands.clock import Clock
from commands.correlation import NewId


def create_app(settings: Wanted, *, clock: Clock | None = None, new_id: NewId | None = None) -> Starlette:
    """The ASGI application of one registry; its lifespan opens and closes the store."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        registry = open_registry(settings, clock=clock, new_id=new_id)
        health = Health(registry, settings.public_url)
        xregistry = XRegistry(registry, health, settings.public_url)
        described = Described(registry, settings.public_url)
        own = Router(_own_routes(health, described), default=xregistry, redirect_slashes=False)
        # No Group type can have a name with a dot, so this alias is always free.
        app.router.routes += [Mount(f"/{OWN}", own), Route(f"/{OPENAPI}", described)]
        app.router.default = xregistry
        try:
            yield
        finally:
            xregistry.close()
            registry.close()

    app = Starlette(lifespan=lifespan)
    app.router.redirect_slashes = False
    return app


def _own_routes(health: Health, described: Described) -> list[Route]:
    """The paths below `/-/`, each with and without a slash at its end."""
    endpoints: dict[str, ASGIApp] = {LIVEZ: health, READYZ: health, OPENAPI: described, DOCS: described}
    return [Route(f"/{name}{end}", endpoint) for name, endpoint in endpoints.items() for end in ("", "/")]
