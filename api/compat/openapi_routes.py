"""Where the OpenAPI documents of the older APIs are: below their bases, and beside the registry's own."""

from __future__ import annotations

from typing import Final

from starlette.types import Receive

from api.compat.openapi import compat_openapi_document
from api.compat.responses import json_response
from api.http.methods import read_only_options
from api.http.request import Request
from api.http.response import Response
from domain.compat.legacy_apis import LEGACY_APIS, LegacyApi
from domain.errors import problems

#: The name below `/-/` that both have as well, each as `<name>.json`.
COMPAT_OPENAPI: Final = "openapi"

_BY_NAME: Final[dict[tuple[str, ...], LegacyApi]] = {(f"{family.name}.json",): family for family in LEGACY_APIS}


class CompatOpenapiRoutes:
    """The surface of `/-/openapi/schemaregistry.json` and `/-/openapi/messagecatalog.json`."""

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`."""
        family = _BY_NAME.get(request.segments[2:])
        if family is None:
            raise problems.ApiNotFound()
        return read_only_options(request) or openapi_response(request, family)


def openapi_response(request: Request, family: LegacyApi) -> Response:
    """The document of one of them."""
    return json_response(request, 200, compat_openapi_document(family, request.base))
