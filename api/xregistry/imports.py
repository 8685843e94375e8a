"""`/-/import`: writes a document of a registry as one interaction, and reports what was changed in an older format.

A translated document is handled like the body of a `POST /`: same checks, same response, same dry run. Documents of
this format may be exports. With `Accept: text/event-stream`, the answer says how far the import is.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from starlette.types import Receive

from annals.api.http.json_bodies import json_response, parse_required_json
from annals.api.http.limits import MAX_BODY, read_body
from annals.api.http.methods import check_caller, post_only_options
from annals.api.http.query_params import invalid_param, query_params, single_value
from annals.api.http.request import Request
from annals.api.http.response import CORRELATION_HEADER, Response
from annals.api.registry.open_registry import Registry
from annals.api.xregistry.dryrun import dry_run, findings_headers
from annals.api.xregistry.import_progress import count_events, stream_progress, wants_progress
from annals.api.xregistry.registry_documents import registry_document_command
from annals.api.xregistry.writing import XRegistryWriteHandler
from annals.domain.errors import problems
from annals.domain.messaging.rc2 import DIALECTS, DialectMismatch, TranslatedDocument
from annals.domain.values.json_text import dumps
from annals.projections.log.answer_position import note_position

IMPORT: Final = "import"

#: The format of exports.
XREGISTRY: Final = "xRegistry"
IMPORT_DIALECTS: Final = (XREGISTRY, *DIALECTS)

_DIALECT: Final = "dialect"
_DRYRUN: Final = "dryrun"


class ImportRoutes:
    """The surface of `/-/import`. max_body: in bytes."""

    def __init__(self, registry: Registry, max_body: int = MAX_BODY) -> None:
        self._max_body = max_body
        self._registry = registry
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
        if dialect is None or dialect not in IMPORT_DIALECTS:
            raise invalid_param(_DIALECT, f"it has to be one of: {', '.join(IMPORT_DIALECTS)}")
        body = await read_body(request, receive, self._max_body)
        translated = await asyncio.to_thread(_translate, dialect, body)
        if dialect == XREGISTRY or wants_progress(request):
            return await self._import(request, translated, is_dry_run=_DRYRUN in parameters)
        query = _DRYRUN.encode() if _DRYRUN in parameters else b""
        write_request = replace(request, segments=(), path="/", raw_path="/", query=query)
        response = await self._write_handler.answer(write_request, dumps(translated.tree))
        return response if _DRYRUN in parameters else _with_report(response, translated)

    async def _import(self, request: Request, translated: TranslatedDocument, *, is_dry_run: bool) -> Response:
        bus, readers = self._registry.command_bus, self._registry.readers
        definitions = await readers.read(self._registry.definitions.current, readers.quick_view())
        command = registry_document_command(translated.tree, definitions.model.groups)
        if is_dry_run:
            return await dry_run(request, bus, command, None)
        report = [change.members() for change in translated.report]
        if wants_progress(request):
            return stream_progress(request, bus, command, report)
        recorded = await asyncio.wrap_future(bus.submit(command, request.caller))
        note_position(recorded.position)
        headers = findings_headers(recorded)
        if recorded.xregcorrelationid is not None:
            headers.append((CORRELATION_HEADER, recorded.xregcorrelationid.encode()))
        return json_response(request, 200, {"result": count_events(recorded), "report": report}, headers)


def _translate(dialect: str, body: bytes) -> TranslatedDocument:
    """The translated document.

    Raises: MissingBody, ParsingData, BadRequest for a document that is not in this format.
    """
    document = parse_required_json(body)
    if dialect == XREGISTRY:
        if not isinstance(document, dict):
            raise problems.ParsingData(error_detail="a document of a registry is a JSON object")
        return TranslatedDocument({name: value for name, value in document.items() if name != "$schema"}, ())
    try:
        return DIALECTS[dialect](document)
    except DialectMismatch as error:
        raise problems.BadRequest(error_detail=str(error)) from None


def _with_report(response: Response, translated: TranslatedDocument) -> Response:
    """The response to the write, together with the report of the translation."""
    assert isinstance(response.body, bytes), "a write is answered as a whole"
    report = dumps([change.members() for change in translated.report])
    return replace(response, body=b'{"result":%b,"report":%b}' % (response.body, report))
