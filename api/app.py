"""The composition root: settings in, a running registry out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.routing import Mount, Route, Router

from api.problem import OWN
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
        app.router.routes.append(
            Mount(f"/{OWN}", Router(_own_routes(health), default=xregistry, redirect_slashes=False))
        )
        app.router.default = xregistry
        try:
            yield
        finally:
            xregistry.close()
            registry.close()

    app = Starlette(lifespan=lifespan)
    app.router.redirect_slashes = False
    return app


def _own_routes(health: Health) -> list[Route]:
    """The paths below `/-/`, each with and without a slash at its end."""
    endpoints = {LIVEZ: health, READYZ: health}
    return [Route(f"/{name}{end}", endpoint) for name, endpoint in endpoints.items() for end in ("", "/")]
