"""Routes of the legacy APIs' OpenAPI documents: below the base of each API, and next to the registry's own document."""

from __future__ import annotations

from typing import Final

from starlette.types import Receive

from annals.api.compat.confluent.openapi import confluent_openapi_document
from annals.api.compat.openapi import compat_openapi_document
from annals.api.compat.responses import json_response
from annals.api.http.methods import read_only_options
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.domain.compat.legacy_apis import LEGACY_APIS, LegacyApi
from annals.domain.errors import problems

#: The name below `/-/`. Each document is at `<name>.json` below it.
COMPAT_OPENAPI: Final = "openapi"

_APIS_BY_FILE: Final[dict[tuple[str, ...], LegacyApi]] = {(f"{family.name}.json",): family for family in LEGACY_APIS}
_CONFLUENT_FILE: Final = ("confluent.json",)


class CompatOpenapiRoutes:
    """The surface of `/-/openapi/schemaregistry.json`, `messagecatalog.json` and `confluent.json` next to it."""

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`. Raises: ApiNotFound."""
        if request.segments[2:] == _CONFLUENT_FILE:
            document = confluent_openapi_document(request.base)
            return read_only_options(request) or json_response(request, 200, document)
        family = _APIS_BY_FILE.get(request.segments[2:])
        if family is None:
            raise problems.ApiNotFound()
        return read_only_options(request) or openapi_response(request, family)


def openapi_response(request: Request, family: LegacyApi) -> Response:
    """The response with the OpenAPI document of one legacy API."""
    return json_response(request, 200, compat_openapi_document(family, request.base))
