"""A request together with what it means under the definitions in force."""

from __future__ import annotations

from typing import NamedTuple

from annals.api.http.request import Request
from annals.api.registry.definitions import RegistryDefinitions
from annals.api.xregistry.request.flags import Flags, parse_flags
from annals.api.xregistry.request.inline import InlineTree, parse_inline
from annals.api.xregistry.request.paths import RequestTarget, resolve_path
from annals.api.xregistry.request.request_checks import check_method


class ParsedRequest(NamedTuple):
    """target, flags: of the request under these definitions."""

    request: Request
    target: RequestTarget
    flags: Flags
    definitions: RegistryDefinitions

    @property
    def has_document_body(self) -> bool:
        """Whether the body of the response is a document. With `doc`, it is metadata instead."""
        return self.target.has_document_body and not self.flags.doc

    def inline(self) -> InlineTree:
        """What the response inlines. Raises: as `parse_inline`."""
        return parse_inline(self.flags.inline or (), self.target, self.definitions.model, self.definitions.capabilities)


def parse_request(request: Request, definitions: RegistryDefinitions) -> ParsedRequest:
    """The request under the model and the capabilities. Raises: Problem."""
    target = resolve_path(request.segments, definitions.model, request.details, not request.is_read)
    check_method(request, target, definitions.capabilities)
    flags = parse_flags(request.query, target, request.method, definitions.capabilities)
    return ParsedRequest(request, target, flags, definitions)
