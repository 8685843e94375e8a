"""`/-/import`: writes a document in another format as one interaction, and reports the changes made to the document.

The translated document is handled like the body of a `POST /`: same checks, same response, same dry run.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from starlette.types import Receive

from annals.api.http.json_bodies import parse_required_json
from annals.api.http.limits import MAX_BODY, read_body
from annals.api.http.methods import check_caller, post_only_options
from annals.api.http.query_params import invalid_param, query_params, single_value
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.registry.open_registry import Registry
from annals.api.xregistry.writing import XRegistryWriteHandler
from annals.domain.errors import problems
from annals.domain.messaging.rc2 import DIALECTS, DialectMismatch, TranslatedDocument
from annals.domain.values.json_text import dumps

IMPORT: Final = "import"

_DIALECT: Final = "dialect"
_DRYRUN: Final = "dryrun"


class ImportRoutes:
    """The surface of `/-/import`. max_body: in bytes."""

    def __init__(self, registry: Registry, max_body: int = MAX_BODY) -> None:
        self._max_body = max_body
        self._write_handler = XRegistryWriteHandler(registry.command_bus, registry.readers, registry.definitions)

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`."""
        if len(request.segments) != 2:
            raise problems.ApiNotFound()
        if (options := post_only_options(request)) is not None:
            return options
        check_caller(request)
        parameters = query_params(request, (_DIALECT, _DRYRUN))
        dialect = single_value(parameters, _DIALECT)
        if dialect is None or dialect not in DIALECTS:
            raise invalid_param(_DIALECT, f"it has to be one of: {', '.join(DIALECTS)}")
        body = await read_body(request, receive, self._max_body)
        translated = await asyncio.to_thread(_translate, dialect, body)
        query = _DRYRUN.encode() if _DRYRUN in parameters else b""
        write_request = replace(request, segments=(), path="/", raw_path="/", query=query)
        response = await self._write_handler.answer(write_request, dumps(translated.tree))
        return response if _DRYRUN in parameters else _with_report(response, translated)


def _translate(dialect: str, body: bytes) -> TranslatedDocument:
    """The translated document.

    Raises: MissingBody, ParsingData, BadRequest for a document that is not in this format.
    """
    document = parse_required_json(body)
    try:
        return DIALECTS[dialect](document)
    except DialectMismatch as error:
        raise problems.BadRequest(error_detail=str(error)) from None


def _with_report(response: Response, translated: TranslatedDocument) -> Response:
    """The response to the write, together with the report of the translation."""
    assert isinstance(response.body, bytes), "a write is answered as a whole"
    report = dumps([change.members() for change in translated.report])
    return replace(response, body=b'{"result":%b,"report":%b}' % (response.body, report))
