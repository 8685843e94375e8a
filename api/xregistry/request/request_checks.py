"""Checks of a request before anything is read or written: availability and methods."""

from __future__ import annotations

from annals.api.http.methods import MethodNotAllowed
from annals.api.http.request import READ_METHODS, Request
from annals.api.registry.capabilities import Capabilities
from annals.api.xregistry.request.paths import METHODS, RequestTarget, allow_header, availability_name
from annals.domain.errors import problems


def check_method(request: Request, target: RequestTarget, capabilities: Capabilities) -> None:
    """Checks that the path is available and accepts the method.

    Raises: NotAvailable if the path is disabled; MethodNotAllowed if it does not accept the method now.
    """
    capabilities = capabilities.for_caller(request.caller)
    if availability_name(target.kind) not in capabilities.available:
        raise problems.NotAvailable(f"/{availability_name(target.kind)}")
    if request.method in READ_METHODS:
        return
    if request.method not in METHODS[target.kind] or not capabilities.available[availability_name(target.kind)]:
        problem = problems.ActionNotSupported(action=request.method)
        raise MethodNotAllowed(problem, allow_header(target.kind, capabilities, target.has_document_body))
    if request.method == "PATCH" and target.has_document_body:
        raise MethodNotAllowed(
            problems.DetailsRequired(target.xid), allow_header(target.kind, capabilities, target.has_document_body)
        )
