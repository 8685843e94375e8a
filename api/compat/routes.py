"""`/compat`: the two legacy APIs, Schema Registry 0.2 and Message Catalog 0.1.

Rules LEG-101 to LEG-109, LEG-200.
"""

from __future__ import annotations

from starlette.types import Receive

from annals.api.compat.openapi_routes import openapi_response
from annals.api.compat.paths import CompatPathKind, CompatTarget, resolve_path
from annals.api.compat.reading import CompatReadHandler
from annals.api.compat.writing import CompatWriteHandler
from annals.api.http.browsers.cross_origin import check_form
from annals.api.http.methods import MethodNotAllowed
from annals.api.http.problem_response import COMPAT, root_link
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.registry.open_registry import Registry
from annals.api.xregistry.snapshots import Snapshots
from annals.commands.store.database.registry_url import UNCONFIGURED_URL
from annals.domain.errors import problems

__all__ = ["COMPAT", "CompatRoutes"]


class CompatRoutes:
    """The surface of all paths below `/compat`.

    max_body: in bytes. accepts_foreign_authority: whether a write may name another registry as its authority.
    """

    def __init__(self, registry: Registry, max_body: int, accepts_foreign_authority: bool = True) -> None:
        self._readers = registry.readers
        self._definitions_cache = definitions_cache = registry.definitions
        root = registry.store.public_url or UNCONFIGURED_URL
        self._read_handler = CompatReadHandler(
            registry, Snapshots(registry.readers, definitions_cache, registry.store.clock), root
        )
        self._write_handler = CompatWriteHandler(registry, definitions_cache, root, max_body, accepts_foreign_authority)

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`."""
        target = resolve_path(request.raw_path)
        if request.method == "OPTIONS":
            allow = _allow_header(target).encode()
            headers = [(b"allow", allow), (b"access-control-allow-methods", allow)]
            return Response(204, [root_link(request.base), *headers])
        if request.method != "HEAD" and request.method not in target.methods:
            raise MethodNotAllowed(problems.ActionNotSupported(action=request.method), _allow_header(target))
        if target.kind is CompatPathKind.DESCRIPTION:
            return openapi_response(request, target.family)
        definitions = await self._readers.read(self._definitions_cache.current, self._readers.quick_view())
        if "entities" not in definitions.capabilities.available:
            raise problems.NotAvailable("/entities")
        if request.is_read:
            return await self._read_handler.answer(request, target)
        if target.kind is not CompatPathKind.CHILD:
            check_form(request)
        return await self._write_handler.answer(request, target, receive)


def _allow_header(target: CompatTarget) -> str:
    first_method, *other_methods = target.methods
    return ", ".join((first_method, "HEAD", "OPTIONS", *other_methods))
