"""The description of the API: `/-/openapi.json` for programs, `/-/docs` for people, `/-/` as a list for both."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from starlette.types import Receive

from annals.api.feeds.formats import negotiate_format
from annals.api.http.browsers.page_headers import page_headers
from annals.api.http.methods import read_only_options
from annals.api.http.problem_response import OWN_PREFIX, root_link
from annals.api.http.request import Request
from annals.api.http.response import JSON, Response
from annals.api.openapi.html_page import PAGE_POLICY, render_index, render_page
from annals.api.openapi.named_schemas import NamedSchemas
from annals.api.openapi.path_index import IndexEntry, path_index
from annals.api.registry.definitions import RegistryDefinitions
from annals.api.registry.open_registry import Registry
from annals.api.xregistry.openapi.document import openapi_document
from annals.domain.errors.problems import ApiNotFound
from annals.domain.values.json_text import dumps

OPENAPI: Final = "openapi.json"
DOCS: Final = "docs"
#: The name of `/-/` itself, and its two forms by media type.
INDEX: Final = ""
_INDEX_PAGE: Final = "index.html"
_INDEX_FORMS: Final = {"application/json": INDEX, "text/html": _INDEX_PAGE}

_VARY: Final = (b"vary", b"accept")


class OpenapiRoutes:
    """The surface of all three. The last results are cached until the model or the capabilities change."""

    def __init__(self, registry: Registry, own_paths: NamedSchemas, other_apis: Sequence[IndexEntry]) -> None:
        """own_paths: path items that do not depend on the model, and their schemas.

        other_apis: where clients of APIs with other documents begin.
        """
        self._own_paths = own_paths
        self._other_apis = other_apis
        self._readers = registry.readers
        self._definitions_cache = registry.definitions
        self._cache: dict[tuple[tuple[int, int], str, str], bytes] = {}

    async def answer(self, request: Request, receive: Receive) -> Response:
        """The document or a page. Raises: ApiNotFound, MethodNotAllowed, NotAcceptable."""
        if request.segments[1:] not in ((), (DOCS,), (OPENAPI,)):
            raise ApiNotFound()
        if (options := read_only_options(request)) is not None:
            return options
        is_index = request.segments[-1] == OWN_PREFIX
        accept = request.header(b"accept")
        name = negotiate_format(accept, _INDEX_FORMS) if is_index else request.segments[-1]
        body = await asyncio.to_thread(self._body, name, request.base)
        headers = page_headers(PAGE_POLICY) if name in (DOCS, _INDEX_PAGE) else [JSON]
        return Response(200, [*headers, *([_VARY] if is_index else []), root_link(request.base)], body)

    def _body(self, name: str, base_url: str) -> bytes:
        definitions = self._definitions_cache.current(self._readers.latest_view())
        key = (definitions.positions, base_url, name)
        document_text = self._cache.get(key)
        if document_text is None:
            document_text = self._describe(name, definitions, base_url)
            # Clients choose the base if it follows the Host header, so the cache has only the newest base of each name.
            self._cache = {cache_key: text for cache_key, text in self._cache.items() if cache_key[2] != name} | {
                key: document_text
            }
        return document_text

    def _describe(self, name: str, definitions: RegistryDefinitions, base_url: str) -> bytes:
        document = openapi_document(definitions.model, definitions.capabilities, base_url, self._own_paths)
        if name == DOCS:
            return render_page(document).encode()
        if name == OPENAPI:
            return dumps(document)
        index = path_index(document, self._other_apis)
        return render_index(index, base_url).encode() if name == _INDEX_PAGE else dumps(index)
