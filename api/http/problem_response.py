"""The only place that turns problems into responses.

Spec: core 1.0-rc4, "Error Processing"; HTTP binding 1.0-rc4, "Error Processing"; RFC 9457 for paths beyond the spec.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from urllib.parse import quote

from annals.api.http.request import Request
from annals.api.http.response import JSON, Headers, Response
from annals.commands.store.database.outages import CommitUnconfirmed
from annals.domain.errors import problems
from annals.domain.errors.http_errors import DOCS_PATH, StoreUnavailable, WriteUnconfirmed
from annals.domain.errors.problems import Problem, ServerBusy, ServerError
from annals.domain.values.json_text import Json, dumps

PROBLEM_JSON: Final = (b"content-type", b"application/problem+json")
#: Seconds to wait: a command holds the write lock only for a moment.
RETRY_AFTER: Final = (b"retry-after", b"1")
#: The first segment of paths that are not from the spec.
OWN_PREFIX: Final = "-"
SUBSCRIPTIONS: Final = "subscriptions"
COMPAT: Final = "compat"
#: The first segments of paths whose problems follow RFC 9457.
_RFC9457_PREFIXES: Final = frozenset((OWN_PREFIX, SUBSCRIPTIONS, COMPAT))
#: How the media types of Confluent Schema Registry's API begin, and the headers in which its clients name them.
_CONFLUENT_TYPES: Final = "application/vnd.schemaregistry"
_MEDIA_TYPE_HEADERS: Final = (b"accept", b"content-type")


def problem_response(problem: Problem, request: Request, allow: str | None = None) -> Response:
    """The response to a refused request. allow: the Allow header of a 405."""
    is_own_path = bool(request.segments) and request.segments[0] in _RFC9457_PREFIXES
    headers = [PROBLEM_JSON if is_own_path else JSON, root_link(request.base), _help_link(request.base, problem.name)]
    if allow is not None:
        headers.append((b"allow", allow.encode()))
    headers.extend(retry_headers(problem))
    body = problem_body(problem, request)
    if is_own_path:
        body = {"type": body["type"], "status": problem.status, **body}
    elif problem.status == 404 and _is_from_confluent_client(request):
        body = {**body, **_confluent_members(problem, request)}
    if request.segments[:1] == (COMPAT,):
        body = {**body, "detail": problem.detail or body["title"], "instance": _instance_url(request)}
    return Response(problem.status, headers, dumps(body))


def retry_headers(problem: Problem) -> Headers:
    """The header that says when to send the request again, if that makes sense."""
    if (seconds := problem.arguments.get("retry_after")) is not None:
        return [(b"retry-after", seconds.encode())]
    is_passing = problem.status == ServerBusy.status and not isinstance(problem, WriteUnconfirmed)
    return [RETRY_AFTER] if is_passing else []


def failure_problem(error: Exception, outage: str | None) -> Problem:
    """The problem for an error that no caller caused. outage: what `describe_outage` says of it."""
    if isinstance(error, CommitUnconfirmed):
        return WriteUnconfirmed()
    return StoreUnavailable(error_detail=outage) if outage else ServerError()


def problem_body(problem: Problem, request: Request) -> dict[str, Json]:
    """The members of the error; empty ones are left out."""
    subject = _problem_subject(problem, request)
    members: dict[str, Json] = {
        "type": uri if (uri := problem.uri()).startswith("https:") else request.base + uri,
        "title": problem.text(subject),
        "subject": subject,
        "args": problem.arguments,
        "detail": problem.detail,
    }
    return {**problem.extensions, **{name: value for name, value in members.items() if value}}


def _is_from_confluent_client(request: Request) -> bool:
    return any(_CONFLUENT_TYPES in (request.header(name) or "").lower() for name in _MEDIA_TYPE_HEADERS)


def _confluent_members(problem: Problem, request: Request) -> dict[str, Json]:
    """What clients of Confluent's API read of an error. Their URL lacks the path of that API."""
    url = f"{request.base}/{COMPAT}/confluent"
    where = f"Confluent's API is at {url}, and at the root of its own port if ANNALS_CONFLUENT_PORT is set."
    return {"error_code": problem.status, "message": f"{problem.text(_problem_subject(problem, request))} {where}"}


@lru_cache(maxsize=64)
def root_link(base_url: str) -> tuple[bytes, bytes]:
    """The Link header that every response has."""
    return b"link", f"<{base_url}>;rel=xregistry-root".encode("latin-1", "replace")


def _help_link(base_url: str, name: str) -> tuple[bytes, bytes]:
    """The Link header that leads to the explanation of an error type. The `type` of a specification leads elsewhere."""
    return b"link", f"<{base_url}{DOCS_PATH}#{name}>;rel=help".encode("latin-1", "replace")


def _instance_url(request: Request) -> str:
    """The requested URL without its query. Characters that a URL cannot contain are encoded."""
    return request.base + quote(request.raw_path, safe="/%:@!$&'()*+,;=", encoding="latin-1")


def _problem_subject(problem: Problem, request: Request) -> str | None:
    if problem.subject == problems.REQUEST_PATH:
        return request.path
    if problem.subject == problems.REQUEST_URL:
        return request.url
    return problem.subject
