"""The xRegistry paths: the default surface, for all requests that no other surface handles.

Spec: HTTP binding 1.0-rc4, "Registry HTTP APIs".
"""

from __future__ import annotations

from starlette.types import Receive

from annals.api.http.canonical_header import CanonicalLinks
from annals.api.http.limits import MAX_BODY, read_body
from annals.api.http.methods import check_caller
from annals.api.http.problem_response import root_link
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.registry.definitions import RegistryDefinitions
from annals.api.registry.open_registry import Registry
from annals.api.xregistry.reading import XRegistryReadHandler
from annals.api.xregistry.request.paths import OFFERED_PATH, allow_header, resolve_path
from annals.api.xregistry.snapshots import Snapshots
from annals.api.xregistry.writing import XRegistryWriteHandler


class XRegistryRoutes:
    """The surface of the xRegistry paths.

    max_body: in bytes. pagelimit: maximum page size of a collection. max_inlined:
    maximum number of inlined entities in a response. 0: no maximum. canonical_links: knows which entities are copies
    from other registries.
    """

    def __init__(
        self,
        registry: Registry,
        max_body: int = MAX_BODY,
        pagelimit: int = 0,
        max_inlined: int = 0,
        canonical_links: CanonicalLinks | None = None,
    ) -> None:
        self._max_body = max_body
        self._readers = registry.readers
        self._definitions_cache = registry.definitions
        snapshots = Snapshots(registry.readers, self._definitions_cache, registry.store.clock)
        self._read_handler = XRegistryReadHandler(
            registry.readers,
            registry.lookups,
            self._definitions_cache,
            snapshots,
            registry.streams,
            pagelimit,
            max_inlined,
        )
        self._canonical_links = canonical_links or CanonicalLinks(registry.readers)
        self._write_handler = XRegistryWriteHandler(registry.command_bus, registry.readers, self._definitions_cache)

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`."""
        if request.method == "OPTIONS":
            view = self._readers.quick_view()
            return _options(request, await self._readers.read(self._definitions_cache.current, view))
        check_caller(request)
        if not request.is_read:
            return await self._write_handler.answer(request, await read_body(request, receive, self._max_body))
        if request.segments == (OFFERED_PATH,):
            return await self._read_handler.offered_capabilities(request)
        return await self._canonical_links.add_header(await self._read_handler.answer(request), request)

    def allow(self, request: Request) -> str:
        """The value of Allow for a path. Raises: Problem if there is no such path."""
        return _allow(request, self._known_definitions())

    def is_free(self, name: str) -> bool:
        """Whether no Group type and no attribute of the registry uses a name."""
        model = self._known_definitions().model
        return name not in model.groups and name not in model.registry.definitions

    def _known_definitions(self) -> RegistryDefinitions:
        """The latest definitions, on a server those that were read last: a probe of its health must not wait for it."""
        if self._readers.is_server:
            return self._definitions_cache.definitions
        return self._definitions_cache.current(self._readers.quick_view())


def _allow(request: Request, definitions: RegistryDefinitions) -> str:
    target = resolve_path(request.segments, definitions.model, request.details)
    return allow_header(target.kind, definitions.capabilities.for_caller(request.caller), target.has_document_body)


def _options(request: Request, definitions: RegistryDefinitions) -> Response:
    methods = _allow(request, definitions).encode()
    headers = [root_link(request.base), (b"allow", methods), (b"access-control-allow-methods", methods)]
    return Response(200, headers)
