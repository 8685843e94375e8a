"""The ASGI application: it finds the surface of each request and sends the surface's response.

A surface builds responses. The dispatcher does what all requests share: authentication, problems as responses,
compression, security headers, metrics and log lines.

This file is a fast path. With `api/http/request.py` and complete bodies in `api/http/response.py`, it takes the place
of Starlette's Request, Router, middleware and Response. A read of a document takes 125 microseconds of processor time.
Starlette's Request would add 4 %, its Router 5 %, a middleware that wraps `send` 1 % to 8 %, its two error middlewares
3 %, and its Response 1 %, or 10 % with a mapping of headers; all of them together add 30 %.
Starlette does the rest: the lifespan and streams.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from annals.api.auth.callers import Authenticator
from annals.api.auth.certificates import CertificateVerifier
from annals.api.auth.rights_check import RightsCheck
from annals.api.http import conditional
from annals.api.http.access_log.access_log import CURRENT_CALLER, AccessLog
from annals.api.http.browsers.allowed_hosts import AllowedHosts
from annals.api.http.browsers.cors import Cors
from annals.api.http.browsers.cross_origin import check_form, check_origin
from annals.api.http.browsers.stored_content import check_destination
from annals.api.http.caching import has_credential, mark_private
from annals.api.http.compression import compress_response
from annals.api.http.connections.trusted_proxies import TrustedProxies
from annals.api.http.limits import check_path
from annals.api.http.methods import MethodNotAllowed
from annals.api.http.problem_response import OWN_PREFIX, failure_problem, problem_response
from annals.api.http.request import Request, build_request, request_host
from annals.api.http.response import POSITION_HEADER, Headers, Response, buffer_short_body, send_response
from annals.api.http.session_cookie import clear_session_cookie
from annals.api.ops.metrics import ServerMetrics
from annals.api.registry.waitfor import asks_to_wait
from annals.api.ui.home_redirect import HomeRedirect
from annals.commands.store.damage import DamageMonitor
from annals.commands.store.database.outages import describe_outage
from annals.domain.errors import problems
from annals.domain.errors.http_errors import Unauthorized
from annals.domain.errors.problems import Problem
from annals.projections.entities.entity_documents import MissingDocument
from annals.projections.log.answer_position import begin_answer

_STOPPING_MESSAGE: Final = "the server is stopping; the log shows whether a write was carried out"

#: `nosniff`: a browser has to trust the declared media type instead of guessing from the content.
_HEADERS_WITHOUT_TLS: Final[Headers] = [(b"x-content-type-options", b"nosniff")]
_HEADERS_WITH_TLS: Final[Headers] = [*_HEADERS_WITHOUT_TLS, (b"strict-transport-security", b"max-age=31536000")]


class Surface(Protocol):
    """One part of the HTTP API, such as `/subscriptions` or `/-/log`."""

    async def answer(self, request: Request, receive: Receive) -> Response:
        """The response. Raises: Problem, MethodNotAllowed, conditional.NotModified, ClientDisconnect."""


class DefaultSurface(Surface, Protocol):
    """The surface of all paths that no other surface has."""

    def allow(self, request: Request) -> str:
        """The methods that a path accepts, as the value of Allow."""

    def is_free(self, name: str) -> bool:
        """Whether the model leaves a name at the root unused."""


class Mount(NamedTuple):
    """A path with its own surface.

    allows_anonymous: needs no authentication. is_leaf: has no paths below it. accepts_any_host: answers under any host
    name. accepts_documents: accepts bodies of any media type. checks_paths: it answers malformed paths itself.
    show_problem: makes the response to a refused request; None for that of the API. is_alias: the model may use its
    name.
    """

    surface: Surface
    allows_anonymous: bool = False
    is_leaf: bool = False
    accepts_any_host: bool = False
    accepts_documents: bool = False
    checks_paths: bool = False
    show_problem: Callable[[Problem, Request], Response] | None = None
    is_alias: bool = False


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Settings that apply to all requests. public_url: root of the registry; None to derive it from the request."""

    public_url: str | None
    proxies: TrustedProxies
    authenticator: Authenticator
    cors: Cors
    metrics: ServerMetrics
    hosts: AllowedHosts
    access_log: AccessLog


def _keep_request(request: Request, host: str) -> Request:
    return request


async def _without_wait(request: Request, receive: Receive) -> Request:
    return request


class DispatcherApplication(Starlette):
    """Starlette's application for a Dispatcher, which leaves no error to Starlette's two error middlewares."""

    def build_middleware_stack(self) -> ASGIApp:
        return self.router


class Dispatcher:
    """Answers HTTP requests; see the module.

    own_mounts: mounts by name below `/-/`; that of `/-/` itself has an empty name. aliases: names of `own_mounts` that
    also exist at the root, unless the model uses the name. fixed_mounts: mounts by whole path. tree_mounts: mounts by
    first path segment, or by the first two joined with a slash. mount_request: returns the request with its canonical
    path, given the request and its host. damage: receives errors, and logs those of the store. wait: returns the
    request to answer, once the registry has the state that the request waits for. home: sends browsers from
    the root to the first page.
    """

    def __init__(
        self,
        default_surface: DefaultSurface,
        own_mounts: Mapping[str, Mount],
        aliases: frozenset[str],
        fixed_mounts: Mapping[tuple[str, ...], Mount],
        server_config: ServerConfig,
        tree_mounts: Mapping[str, Mount] | None = None,
        mount_request: Callable[[Request, str], Request] = _keep_request,
        damage: DamageMonitor | None = None,
        wait: Callable[[Request, Receive], Awaitable[Request]] = _without_wait,
        home: HomeRedirect | None = None,
    ) -> None:
        self._damage = damage or DamageMonitor()
        self._default_surface = default_surface
        self._own_mounts = own_mounts
        self._aliases = aliases
        self._fixed_mounts = fixed_mounts
        self._tree_mounts = tree_mounts or {}
        self._config = server_config
        self._mount_request = mount_request
        self._wait = wait
        self._home = home
        authenticators = server_config.authenticator.names
        self._checks_credentials = bool(authenticators)
        self._has_certificates = CertificateVerifier.name in authenticators

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        started_at = time.perf_counter()
        CURRENT_CALLER.set(None)
        answer_position = begin_answer()
        host = request_host(scope, self._config.proxies)
        request = self._request(scope, host)
        try:
            response = await self._finish(await self._answer_or_problem(request, host, scope, receive), request)
        except ClientDisconnect:
            return
        try:
            await send_response(response, scope, receive, send, _common_headers(request, answer_position.position))
        except Exception as error:
            # The status is already sent. Cutting the connection is the only way left to signal that the response is
            # incomplete.
            if isinstance(error, Unauthorized) or self._damage.note(error):
                return
            self._config.access_log.add_failure(request, error)
            raise
        self._config.metrics.count_response(request, response.status, started_at)
        self._config.access_log.add(request, response, started_at)

    def refuse(self, problem: Problem, scope: Scope) -> Response:
        """The response to a request that the server refuses before it has read all of it.

        scope: the part of the request that was read.
        """
        started_at, request = time.perf_counter(), self._request(scope, request_host(scope, self._config.proxies))
        response = self._config.cors.add_headers(problem_response(problem, request), request)
        response = mark_private(response) if self._is_for_one_caller(request) else response
        response = replace(response, headers=[*response.headers, *_common_headers(request)])
        self._config.metrics.count_response(request, response.status, started_at)
        self._config.access_log.add(request, response, started_at)
        return response

    def _request(self, scope: Scope, host: str) -> Request:
        request = build_request(scope, self._config.public_url, self._config.proxies)
        try:
            return self._mount_request(request, host)
        except Exception:  # the model cannot be read; the surface fails for the same reason and reports it
            return request

    async def _answer_or_problem(self, request: Request, host: str, scope: Scope, receive: Receive) -> Response:
        """The response, also if the surface fails. Raises: ClientDisconnect."""
        try:
            self._check_sender(request, host, scope)
            return await self._answer(request, receive)
        except conditional.NotModified as not_modified:
            return conditional.not_modified_response(request, not_modified)
        except MethodNotAllowed as not_allowed:
            return self._problem_response(not_allowed.problem, request, not_allowed.allow)
        except Problem as problem:
            return self._refusal(self._config.authenticator.refusal(problem, request), request)
        except ClientDisconnect:
            raise
        except asyncio.CancelledError:
            # The server is stopping and has waited long enough. The connection still accepts a response.
            return self._problem_response(problems.ServerBusy(detail=_STOPPING_MESSAGE), request)
        except MissingDocument as error:
            self._config.access_log.add_failure(request, error)
            return self._problem_response(problems.DataRetrievalError(request.path), request)
        except Exception as error:
            outage = describe_outage(error)
            if not self._damage.note(error):
                self._config.access_log.add_failure(request, error, outage)
            return self._problem_response(failure_problem(error, outage), request)

    def _refusal(self, problem: Problem, request: Request) -> Response:
        allow = self._default_surface.allow(request) if problem.status == 405 else None
        response = self._problem_response(problem, request, allow)
        if isinstance(problem, Unauthorized):
            challenges = self._config.authenticator.challenges(request) if response.status == 401 else []
            cleared = clear_session_cookie(request) if request.header(b"authorization") is None else []
            return replace(response, headers=[*response.headers, *challenges, *cleared])
        return response

    def _problem_response(self, problem: Problem, request: Request, allow: str | None = None) -> Response:
        """The response to a refused request, in the form of its surface. allow: the Allow header of a 405."""
        mount = self._tree_mount(request.segments)
        if mount is None or mount.show_problem is None:
            return problem_response(problem, request, allow)
        response = mount.show_problem(problem, request)
        return replace(response, headers=[*response.headers, (b"allow", allow.encode())]) if allow else response

    def _check_sender(self, request: Request, host: str, scope: Scope) -> None:
        """Checks that no foreign web page caused the request. Raises: MisdirectedRequest, BadRequest, CrossOrigin."""
        self._config.proxies.check_agreement(scope)
        try:
            self._config.hosts.check(host, scope)
        except Problem:
            if not self._mount(request.segments).accepts_any_host:
                raise
        check_origin(request, host, self._config.cors, checks_credentials=self._checks_credentials)
        check_destination(request)

    async def _answer(self, request: Request, receive: Receive) -> Response:
        if (preflight := self._config.cors.preflight(request)) is not None:
            return preflight
        if self._home is not None and (response := self._home.redirect(request)) is not None:
            return response
        mount = self._mount(request.segments)
        if not mount.checks_paths:
            check_path(request)
        if not mount.allows_anonymous:
            request = await self._config.authenticator.authenticate(request)
        if not mount.accepts_documents:
            check_form(request)
        if request.query and await self._may_wait(request, mount):
            request = await self._wait(request, receive)
        response = await mount.surface.answer(request, receive)
        if not isinstance(response.body, bytes) and not mount.allows_anonymous:
            response = replace(response, check_rights=RightsCheck(self._config.authenticator, request).require)
        return response if request.method == "HEAD" else await buffer_short_body(response)

    async def _may_wait(self, request: Request, mount: Mount) -> bool:
        """Whether a request may wait for a position: a probe waits for nothing, and nobody without a role does.

        Raises: Unauthorized for a bad credential, which the surface would only count again.
        """
        if mount.accepts_any_host or not asks_to_wait(request):
            return False
        if not mount.allows_anonymous:
            return True
        identity = await self._config.authenticator.identify(request, is_token_too=True)
        return identity.caller.sees_something

    async def answer_own(self, request: Request, receive: Receive) -> Response:
        """The answer of a surface to a request of this server's own pages, which has its caller.

        Raises: see `Surface`.
        """
        return await self._mount(request.segments).surface.answer(request, receive)

    def _mount(self, segments: tuple[str, ...]) -> Mount:
        """The mount of a path. Raises: ApiNotFound for an unknown path below `/-/`."""
        if segments[:1] == (OWN_PREFIX,):
            mount = self._own_mounts.get(segments[1] if len(segments) > 1 else "")
            if mount is None or (mount.is_leaf and len(segments) > 2):
                raise problems.ApiNotFound()
            return mount
        if segments in self._fixed_mounts:
            return self._fixed_mounts[segments]
        if (tree_mount := self._tree_mount(segments)) is not None:
            return tree_mount
        if len(segments) == 1 and segments[0] in self._aliases and self._default_surface.is_free(segments[0]):
            return self._own_mounts[segments[0]]
        return Mount(self._default_surface, accepts_documents=True)

    def _tree_mount(self, segments: tuple[str, ...]) -> Mount | None:
        if not segments or segments[0] not in self._tree_mounts:
            return None
        mount = self._tree_mounts.get("/".join(segments[:2])) or self._tree_mounts[segments[0]]
        return None if mount.is_alias and not self._default_surface.is_free(segments[0]) else mount

    async def _finish(self, response: Response, request: Request) -> Response:
        """The response with compression and CORS headers. A response to HEAD is not compressed."""
        accept_encoding = request.header(b"accept-encoding") if request.method != "HEAD" else None
        response = self._config.cors.add_headers(await compress_response(response, accept_encoding), request)
        if self._home is not None and not request.segments:
            response = self._home.add_vary(response, request)
        return mark_private(response) if self._is_for_one_caller(request) else response

    def _is_for_one_caller(self, request: Request) -> bool:
        return self._has_certificates or has_credential(request)


def _common_headers(request: Request, position: int | None = None) -> Headers:
    """The headers that all responses have (ACC-100). position: of the state that the response shows, if any."""
    headers = _HEADERS_WITH_TLS if request.base.startswith("https:") else _HEADERS_WITHOUT_TLS
    return headers if position is None else [*headers, (POSITION_HEADER, b"%d" % position)]
