"""Discovery of registries, at `/.xregistry` and at `/.well-known/xregistry`.

Spec: core 1.0-rc4, "xRegistry Discovery"; HTTP binding 1.0-rc4, "xRegistry Discovery".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.types import Receive

from annals.api.http.json_bodies import json_response
from annals.api.http.methods import read_only_options
from annals.api.http.request import Request
from annals.api.http.response import Response

#: The path of the registry and the path of its host. They are at the same root if the registry has no path of its own.
DISCOVERY_PATHS: Final[tuple[tuple[str, ...], ...]] = ((".xregistry",), (".well-known", "xregistry"))


class DiscoveryRoutes:
    """The surface of both paths. other_registries: their URLs."""

    def __init__(self, other_registries: Sequence[str] = ()) -> None:
        self._other_registries = other_registries

    async def answer(self, request: Request, receive: Receive) -> Response:
        """This registry's URL and those of the others. Raises: MethodNotAllowed."""
        if (options := read_only_options(request)) is not None:
            return options
        registries = dict.fromkeys((request.base, *self._other_registries))
        return json_response(request, 200, {"registries": list(registries)})
