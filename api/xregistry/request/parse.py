"""Turns a write request into its command.

Spec: HTTP binding 1.0-rc4, "Creating or Updating Entities", "Serializing Resource Domain-Specific Documents".
"""

from __future__ import annotations

from typing import Final

from annals.api.http.browsers.cross_origin import check_form
from annals.api.http.json_bodies import parse_required_json
from annals.api.http.request import Request
from annals.api.registry.header_attributes import HEADER_PREFIX, xregistry_headers
from annals.api.xregistry.request.flags import Flags
from annals.api.xregistry.request.parsed_request import ParsedRequest
from annals.api.xregistry.request.paths import COLLECTION_KINDS, PathKind, RequestTarget
from annals.domain.decisions.commands import (
    Command,
    DeleteEntities,
    ReplaceModel,
    WriteCapabilities,
    WriteMethod,
    WriteTree,
)
from annals.domain.errors import problems
from annals.domain.values.json_text import Json

#: Kinds whose metadata is in the body, so that metadata in headers is an error.
_VERSIONED: Final = frozenset(
    (PathKind.RESOURCES, PathKind.RESOURCE, PathKind.META, PathKind.VERSIONS, PathKind.VERSION)
)


def parse_command(parsed: ParsedRequest, body: bytes) -> Command:
    """The command of a PUT, PATCH, POST or DELETE.

    Raises: MissingBody, ParsingData, ExtraXregistryHeader, HeaderError, InvalidAttribute, BadRequest,
    UnsupportedMediaType.
    """
    request, target, flags, _ = parsed
    if not target.has_document_body:
        check_form(request)
    if request.method == "DELETE":
        return _delete_command(target, flags, body)
    if target.has_document_body:
        return _document_command(parsed, body)
    _check_headers(request, target)
    tree = _parse_object(body)
    method = WriteMethod(request.method)
    if target.kind is PathKind.CAPABILITIES:
        return WriteCapabilities(tree, method)
    if target.kind is PathKind.MODELSOURCE:
        return ReplaceModel(tree)
    if _has_one_entity(target, method):
        tree.pop("$schema", None)
    return WriteTree(target.xid, tree, method, ignore=flags.ignore, setdefaultversionid=flags.setdefaultversionid)


def _delete_command(target: RequestTarget, flags: Flags, body: bytes) -> DeleteEntities:
    """The command of a DELETE. The body of a collection names the members to delete; without a body, all are deleted.

    The body of a single entity has no meaning.
    """
    targets = _parse_object(body) if body and target.kind in COLLECTION_KINDS else None
    epoch = None if target.kind in COLLECTION_KINDS else flags.epoch
    return DeleteEntities(target.xid, targets, epoch, flags.ignore, flags.setdefaultversionid)


def _document_command(parsed: ParsedRequest, body: bytes) -> WriteTree:
    """A write whose body is the document and whose headers are the metadata."""
    request, target, flags, definitions = parsed
    assert target.resource is not None, "only Resources and Versions have documents"
    headers = xregistry_headers(request.headers)
    tree = definitions.header_codec(target.resource).decode(headers, target.xid)
    url = f"{target.resource.singular}url"
    if body and tree.get(url) is not None:
        raise problems.BadRequest(
            error_detail=f'"{target.xid}" cannot have both a document in the body and "{HEADER_PREFIX}{url}"'
        )
    tree["contenttype"] = request.header(b"content-type")
    return WriteTree(
        target.xid,
        tree,
        WriteMethod(request.method),
        document=body,
        ignore=flags.ignore,
        setdefaultversionid=flags.setdefaultversionid,
    )


def _check_headers(request: Request, target: RequestTarget) -> None:
    for name, _ in xregistry_headers(request.headers) if target.kind in _VERSIONED else ():
        raise problems.ExtraXregistryHeader(name=HEADER_PREFIX + name, error_detail="the metadata is in the body")


def _has_one_entity(target: RequestTarget, method: WriteMethod) -> bool:
    """Whether the body is one entity. A POST has a map of collections, but a POST to a Resource has a Version."""
    return target.kind not in COLLECTION_KINDS and (method is not WriteMethod.POST or target.kind is PathKind.RESOURCE)


def _parse_object(body: bytes) -> dict[str, Json]:
    value = parse_required_json(body)
    if not isinstance(value, dict):
        raise problems.ParsingData(error_detail="a JSON object is needed")
    return value
