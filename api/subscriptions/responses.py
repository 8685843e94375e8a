"""Responses about subscriptions. They never show a secret; only the owner sees the queries of URIs."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final

from annals.api.http.conditional import NO_CACHE
from annals.api.http.problem_response import root_link
from annals.api.http.request import Request
from annals.api.http.response import CORRELATION_HEADER, JSON, Headers, Response
from annals.api.subscriptions.context import subscription_xid
from annals.domain.access.roles import Caller
from annals.domain.decisions.world import Secret
from annals.domain.subscriptions.protocol_settings import HEADERS_PREFIX
from annals.domain.subscriptions.subscription import Subscription
from annals.domain.subscriptions.subscription_document import QUERY_SUFFIX
from annals.domain.values.json_text import dumps

#: Returns a secret value; None if it is destroyed or cannot be decrypted.
Reveal = Callable[[Secret], str | None]

_NO_STORE: Final = (b"cache-control", b"no-store")


def subscription_document(subscription: Subscription, caller: Caller, reveal: Reveal) -> dict[str, Any]:
    """The response body of a subscription without its status. Only the owner sees the queries of URIs (SUB-917)."""
    members = {"id": subscription.id, **deepcopy(dict(subscription.attributes))}
    for name, reference in subscription.secrets.items():
        if name.startswith(HEADERS_PREFIX):  # also a header whose name ends like the query of a URI
            # Without this member, a client that sends the response back would remove the secret headers (SUB-915).
            members["protocolsettings"].setdefault("headers", {})
        elif name.endswith(QUERY_SUFFIX) and caller.name == subscription.owner:
            query = reveal(Secret(reference, subscription_xid(subscription.id), name))
            if query is not None:
                _append_query(members, name.removesuffix(QUERY_SUFFIX).split("."), query)
    return members


def entity_tag(subscription: Subscription, caller: Caller) -> bytes:
    """The entity tag. It changes with updates of the subscription only, not with its deliveries (SUB-841)."""
    return b'"%d.%b"' % (subscription.epoch, b"o" if caller.name == subscription.owner else b"a")


def json_response(
    request: Request, status: int, body: Any, headers: Headers | None = None, xregcorrelationid: str | None = None
) -> Response:
    """A response with a JSON body."""
    correlation_headers = [(CORRELATION_HEADER, xregcorrelationid.encode())] if xregcorrelationid is not None else []
    return Response(
        status, [JSON, root_link(request.base), *correlation_headers, *(headers or [_NO_STORE])], dumps(body)
    )


def subscription_headers(subscription: Subscription, caller: Caller) -> Headers:
    """The headers of a response that shows one subscription."""
    return [(b"etag", entity_tag(subscription, caller)), NO_CACHE]


def _append_query(members: dict[str, Any], path: list[str], query: str) -> None:
    parent = members
    for name in path[:-1]:
        parent = parent[name]
    parent[path[-1]] += f"?{query}"
