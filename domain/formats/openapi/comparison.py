"""Finds what a server with one description breaks for clients that were written against another.

The reader is the description of the server, the writer that of the clients. In requests, the server has to accept what
clients send; in responses, clients have to accept what the server sends. Schemas are compared as JSON Schema compares
them, so data has only declared members (SC-36). Servers, callbacks, webhooks and links are not compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from annals.domain.formats.contract import DocumentLocation, Incompatibility
from annals.domain.formats.jsonschema import compare_nodes
from annals.domain.formats.openapi.locations import with_fragment
from annals.domain.formats.openapi.operations import (
    ApiResponse,
    Body,
    Content,
    Operation,
    OperationPlace,
    Parameter,
    read_paths,
)
from annals.domain.formats.openapi.schema_views import ANY_POINTER, Direction, SchemaView

#: A role in a text, or a quoted name, which is none.
_ROLE: Final = re.compile(r'"[^"]*"|\b(reader|writer)\b')
#: Who reads and who writes, in texts of the comparison of schemas.
_ROLES: Final = {
    Direction.REQUEST: {"reader": "server", "writer": "client"},
    Direction.RESPONSE: {"reader": "client", "writer": "server"},
}
_DEFAULT: Final = "DEFAULT"
#: Members of a security scheme that change nothing for clients.
_WORDS: Final = frozenset({"description", "bearerFormat"})


def find_incompatibilities(reader: Mapping[str, Any], writer: Mapping[str, Any], limit: int) -> list[Incompatibility]:
    """At most `limit` reasons why clients of `writer` do not work with a server of `reader`.

    Cost: that of the comparison of each schema of an operation.
    """
    return [
        replace(reason, reader=with_fragment(reason.reader, reader), writer=with_fragment(reason.writer, writer))
        for reason in islice(_ApiComparison(reader, writer, limit).incompatibilities(), limit)
    ]


class _ApiComparison:
    def __init__(self, server: Mapping[str, Any], client: Mapping[str, Any], limit: int) -> None:
        self._server, self._client, self._limit = server, client, limit
        self._views = {
            direction: (SchemaView(server, direction), SchemaView(client, direction)) for direction in Direction
        }
        #: Schemas that many operations share are compared once in each direction.
        self._compared: set[tuple[Direction, str, str]] = set()

    def incompatibilities(self) -> Iterator[Incompatibility]:
        server_paths = read_paths(self._server)
        for template, path in read_paths(self._client).items():
            server_path = server_paths.get(template)
            if server_path is None:
                yield _reason("path-removed", f"the server has no path {path.template}", "/paths", path.pointer)
                continue
            if server_path.outside != path.outside:
                references = ", ".join(sorted(server_path.outside ^ path.outside))[:150]
                text = f"{path.template} refers to {references}, which is not fetched; only the same reference is equal"
                yield _reason("reference-outside", text, server_path.pointer, path.pointer)
            for method, operation in path.operations.items():
                server_operation = server_path.operations.get(method)
                if server_operation is None:
                    text = f"the server does not have {operation.name}"
                    yield _reason("operation-removed", text, server_path.pointer, operation.pointer)
                else:
                    yield from self._operation(server_operation, operation)

    def _operation(self, server: Operation, client: Operation) -> Iterator[Incompatibility]:
        for key, parameter in server.parameters.items():
            subject = f'the {key[0]} parameter "{parameter.name}" of {client.name}'
            yield from self._parameter(subject, parameter, client.parameters.get(key), client)
        yield from self._body(f"the body of {client.name}", server, client)
        yield from self._responses(server, client)
        yield from self._security(server, client)

    def _parameter(
        self, subject: str, server: Parameter, client: Parameter | None, operation: Operation
    ) -> Iterator[Incompatibility]:
        if client is None:
            if server.required:
                text = f"{subject} is required by the server and not known to the client"
                yield _reason("required-parameter-added", text, server.pointer, operation.pointer)
            return
        if server.required and not client.required:
            text = f"{subject} is required by the server and may be left out by the client"
            yield _reason("parameter-became-required", text, server.pointer, client.pointer)
        if server.style != client.style:
            text = f"{subject} is written in another way: {client.style} by the client, {server.style} for the server"
            yield _reason("parameter-style-changed", text, server.pointer, client.pointer)
        yield from self._schemas(subject, Direction.REQUEST, server.schema, client.schema)

    def _body(self, subject: str, server: Operation, client: Operation) -> Iterator[Incompatibility]:
        expected, sent = server.body, client.body
        if sent is None:
            if expected is not None and expected.required:
                text = f"{subject} is required by the server and not known to the client"
                yield _reason("required-request-body-added", text, expected.pointer, client.pointer)
            return
        if expected is None:
            text = f"{subject} is sent by the client and not known to the server"
            yield _reason("request-body-removed", text, server.pointer, sent.pointer)
            return
        if expected.required and not sent.required:
            text = f"{subject} is required by the server and may be left out by the client"
            yield _reason("request-body-became-required", text, expected.pointer, sent.pointer)
        yield from self._request_content(subject, expected, sent)

    def _request_content(self, subject: str, server: Body, client: Body) -> Iterator[Incompatibility]:
        for media_type, schema in client.content.items():
            accepted = _find_media_type(server.content, media_type)
            if accepted is None:
                text = f"{subject} may be {media_type}, which the server does not accept"
                yield _reason("request-media-type-removed", text, server.pointer, client.pointer)
            else:
                yield from self._schemas(subject, Direction.REQUEST, server.content[accepted], schema)

    def _responses(self, server: Operation, client: Operation) -> Iterator[Incompatibility]:
        for status, expected in client.responses.items():
            if status.startswith("2") and _find_status(server, status) is None:
                text = f"the response {status} of {client.name} is expected by the client, the server does not send it"
                yield _reason("response-status-removed", text, server.pointer, expected.pointer)
        for status, sent in server.responses.items():
            expected_status = _find_status(client, status)
            if expected_status is not None:
                subject = f"the response {status.lower()} of {client.name}"
                yield from self._response(subject, sent, client.responses[expected_status])

    def _response(self, subject: str, server: ApiResponse, client: ApiResponse) -> Iterator[Incompatibility]:
        for media_type, schema in client.content.items():
            sent = _find_media_type(server.content, media_type)
            if sent is None:
                text = f"{subject} is read by the client as {media_type}, which the server does not send"
                yield _reason("response-media-type-removed", text, server.pointer, client.pointer)
            else:
                yield from self._schemas(subject, Direction.RESPONSE, server.content[sent], schema)
        for name, expected in client.headers.items():
            yield from self._header(f'the header "{expected.name}" of {subject}', server, expected, name)

    def _header(self, subject: str, server: ApiResponse, expected: Parameter, name: str) -> Iterator[Incompatibility]:
        sent = server.headers.get(name)
        if expected.required and (sent is None or not sent.required):
            text = f"{subject} is required by the client, and the server may leave it out"
            place = server.pointer if sent is None else sent.pointer
            yield _reason("response-header-removed", text, place, expected.pointer)
        if sent is not None:
            yield from self._schemas(subject, Direction.RESPONSE, sent.schema, expected.schema)

    def _security(self, server: Operation, client: Operation) -> Iterator[Incompatibility]:
        if not all(any(_satisfies(sent, needed) for needed in server.security) for sent in client.security):
            text = f"{client.name} requires credentials of the server that clients do not send"
            yield _reason("security-added", text, server.security_pointer, client.security_pointer)
        for scheme in sorted({name for alternative in client.security for name in alternative}):
            (place, needed), (client_place, sent) = (_scheme(one, scheme) for one in (self._server, self._client))
            if needed is not None and sent is not None and needed != sent:
                text = f'the security scheme "{scheme}" is another one for the server than for the client'
                reason = _reason("security-scheme-changed", text, place, client_place)
                if self._is_new(Direction.REQUEST, place, client_place):
                    yield reason

    def _schemas(
        self, subject: str, direction: Direction, server: OperationPlace | None, client: OperationPlace | None
    ) -> Iterator[Incompatibility]:
        """Why one side does not accept the values that the other one sends. None: any value."""
        reader, writer = (server, client) if direction is Direction.REQUEST else (client, server)
        if reader is None or (server is not None and client is not None and server.value == client.value == {}):
            return
        if not self._is_new(direction, server.pointer if server else "", client.pointer if client else ""):
            return
        server_view, client_view = self._views[direction]
        views = (server_view, client_view) if direction is Direction.REQUEST else (client_view, server_view)
        nodes = views[0].node(reader), views[1].any_value() if writer is None else views[1].node(writer)
        for reason in compare_nodes(*nodes, server_view.size + client_view.size, self._limit):
            yield _translated(reason, subject, direction)

    def _is_new(self, direction: Direction, server: str, client: str) -> bool:
        key = direction, server, client
        if key in self._compared:
            return False
        self._compared.add(key)
        return True


def _translated(reason: Incompatibility, subject: str, direction: Direction) -> Incompatibility:
    """A reason about schemas in the words of this module, with the server as the reader."""
    roles = _ROLES[direction]
    text = _ROLE.sub(lambda match: roles[match[1]] if match[1] else match[0], reason.text)
    rule = f"{direction}-{reason.rule.removeprefix('reader-')}"
    server, client = (
        None if place is None or place.pointer == ANY_POINTER else place for place in (reason.reader, reason.writer)
    )
    if direction is Direction.RESPONSE:
        server, client = client, server
    return Incompatibility(rule, f"{subject}: {text[:1].lower()}{text[1:]}", server, client)


def _reason(rule: str, text: str, server: str, client: str) -> Incompatibility:
    return Incompatibility(rule, text, DocumentLocation(pointer=server), DocumentLocation(pointer=client))


def _find_media_type(content: Content, media_type: str) -> str | None:
    """The media type of some content that includes another one, the most specific first."""
    plain = media_type.partition(";")[0]
    candidates = (media_type, plain, f"{plain.partition('/')[0]}/*", "*/*")
    return next((candidate for candidate in candidates if candidate in content), None)


def _find_status(operation: Operation, status: str) -> str | None:
    """The response of an operation that includes a status."""
    candidates = (status, f"{status[:1]}XX", _DEFAULT)
    return next((candidate for candidate in candidates if candidate in operation.responses), None)


def _satisfies(sent: Mapping[str, frozenset[str]], needed: Mapping[str, frozenset[str]]) -> bool:
    return all(name in sent and scopes <= sent[name] for name, scopes in needed.items())


def _scheme(document: Mapping[str, Any], name: str) -> tuple[str, Any]:
    """The pointer and the definition of a security scheme, without words; None where it is not there."""
    steps = ("securityDefinitions", name) if "swagger" in document else ("components", "securitySchemes", name)
    value: Any = document
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, dict):
        value = {member: each for member, each in value.items() if member not in _WORDS}
    return "/" + "/".join(steps), value
