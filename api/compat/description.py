"""Where the OpenAPI documents of the older APIs are: below their bases, and beside the registry's own."""

from __future__ import annotations

from typing import Final

from starlette.types import Receive

from api.answer import Answer
from api.compat.answers import json_answer
from api.openapi.compat import document
from api.request import Request
from api.rules import options_of_reads
from domain import problems
from domain.compat.family import FAMILIES, Family

#: The name below `/-/` that both have as well, each as `<name>.json`.
DESCRIPTIONS: Final = "openapi"

_BY_NAME: Final[dict[tuple[str, ...], Family]] = {(f"{family.name}.json",): family for family in FAMILIES}


class Descriptions:
    """The surface of `/-/openapi/schemaregistry.json` and `/-/openapi/messagecatalog.json`."""

    async def answer(self, request: Request, receive: Receive) -> Answer:
        """See `front.Surface`."""
        family = _BY_NAME.get(request.segments[2:])
        if family is None:
            raise problems.ApiNotFound()
        return options_of_reads(request) or description(request, family)


def description(request: Request, family: Family) -> Answer:
    """The document of one of them."""
    return json_answer(request, 200, document(family, request.base))
