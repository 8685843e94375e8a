"""JSON as the body of a request and of a response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from annals.api.http.problem_response import root_link
from annals.api.http.request import Request
from annals.api.http.response import JSON, Response
from annals.domain.errors import problems
from annals.domain.values.json_text import InvalidJson, Json, dumps, loads


def parse_json(body: bytes) -> Any:
    """The value of a body. Raises: ParsingData."""
    try:
        return loads(body)
    except InvalidJson as error:
        raise problems.ParsingData(error_detail=str(error)) from None


def parse_required_json(body: bytes) -> Any:
    """The value of a body that has to be there. Raises: MissingBody, ParsingData."""
    if not body:
        raise problems.MissingBody()
    return parse_json(body)


def json_response(request: Request, status: int, body: Json, headers: Sequence[tuple[bytes, bytes]] = ()) -> Response:
    """A response with a JSON body."""
    return Response(status, [JSON, root_link(request.base), *headers], dumps(body))
