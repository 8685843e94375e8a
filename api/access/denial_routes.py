"""`/-/denials`: writes that were refused, for administrators of the registry (ACC-116)."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import Receive

from annals.api.access.collections import answer_json
from annals.api.http.methods import read_only_options
from annals.api.http.next_link import next_link
from annals.api.http.query_params import parse_number, query_params, single_value
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.domain.errors.http_errors import Forbidden
from annals.domain.errors.problems import NotAvailable
from annals.domain.values.json_text import Json
from annals.projections.access.denied_writes import DeniedWrite, DeniedWrites

DENIALS: Final = "denials"
#: Default and maximum number of denials in a page.
DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1000
_PATH: Final = f"/-/{DENIALS}"
_MAX_NUMBER: Final = 1 << 62


class DenialRoutes:
    """The surface of this path. denied_writes: None if this server keeps none."""

    def __init__(self, denied_writes: DeniedWrites | None) -> None:
        self._denied_writes = denied_writes

    async def answer(self, request: Request, receive: Receive) -> Response:
        """A page, the newest first. Raises: Forbidden, NotAvailable, BadRequest, MethodNotAllowed."""
        if (options := read_only_options(request)) is not None:
            return options
        if not request.caller.is_admin:
            raise Forbidden(caller=request.caller.name)
        if self._denied_writes is None:
            raise NotAvailable(_PATH, detail="this server keeps no refused writes; set ANNALS_DENIALS_KEPT")
        parameters = query_params(request, ("after", "limit"))
        limit = parse_number("limit", single_value(parameters, "limit"), 1, MAX_LIMIT) or DEFAULT_LIMIT
        before = parse_number("after", single_value(parameters, "after"), 1, _MAX_NUMBER)
        found = await asyncio.to_thread(self._denied_writes.read, limit + 1, before)
        links = [next_link(request, str(found[limit - 1][0]))] if len(found) > limit else []
        return answer_json(request, 200, [denial_document(*each) for each in found[:limit]], links)


def denial_document(number: int, denied: DeniedWrite) -> dict[str, Json]:
    """A denial as JSON, without what is empty."""
    members = denied._asdict()
    left_out = members.pop("left_out")
    known = {name: value for name, value in members.items() if value != ""}
    return {"number": number, **known, **({"leftout": left_out} if left_out else {})}
