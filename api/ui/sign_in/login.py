"""Sign-in and sign-out of people in browsers (ACC-50 to ACC-59)."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from starlette.types import Receive

from annals.api.auth.callers import COOKIE_CHALLENGE, Authenticator
from annals.api.auth.credentials import InvalidCredential, RequestCredential, Scheme
from annals.api.auth.identity import Identity
from annals.api.auth.oidc.provider import OidcProvider
from annals.api.auth.oidc.sign_in_state import COOKIE_PREFIX, SignInState, cookie_name, new_state, parse_cookie
from annals.api.auth.sessions.provider_tokens import ProviderTokens
from annals.api.auth.sessions.sessions import PROVIDER, Sessions
from annals.api.auth.sessions.signatures import signed, verified
from annals.api.http.methods import options_response
from annals.api.http.query_params import all_query_params
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.http.session_cookie import (
    clear_session_cookie,
    cookie_header,
    cookie_names,
    read_cookie,
    session_cookie,
    set_session_cookie,
)
from annals.api.ui.forms import MAX_KEPT_BYTES, read_upload
from annals.api.ui.pages import Pages
from annals.api.ui.redirect import redirect
from annals.api.ui.sign_in.local_paths import HOME, LOGIN, below_root, local_path
from annals.domain.errors.http_errors import Unauthorized
from annals.domain.errors.problems import ApiNotFound, BadRequest

_LOGIN: Final = ("login",)
_PROVIDER: Final = ("login", "provider")
_CALLBACK: Final = ("login", "callback")
_LOGOUT: Final = ("logout",)
#: The methods of the paths below `/ui/`.
LOGIN_METHODS: Final = {
    _LOGIN: ("GET", "HEAD", "POST"),
    _PROVIDER: ("GET", "HEAD"),
    _CALLBACK: ("GET",),
    _LOGOUT: ("POST",),
}
_BAD_CREDENTIAL: Final = "Check what you have typed."
_ENDED: Final = "The session has ended, and nothing has been saved. After the sign-in, the form is there again."
#: The cookie of browsers that had a session, which is the same for all; also what its signature is for.
_KNOWN: Final = "annals-known"
#: The status of a redirect after which a browser sends the same form again.
_SAME_FORM: Final = 307
_NOTHING: Final[Mapping[str, str]] = {}
_NO_TOKENS: Final = ProviderTokens()
_NOT_SIGNED_IN: Final = "The provider has not signed you in."
_BAD_STATE: Final = (
    "This sign-in was not begun in this browser at this address, has been completed before, or took too long."
)
#: Sign-ins of one browser that may be in progress. More cookies could exceed the limit of headers.
_MAX_SIGN_INS: Final = 4


class LoginRoutes:
    """The paths of sign-in and sign-out. provider: None if people cannot sign in at one."""

    def __init__(
        self, authenticator: Authenticator, sessions: Sessions, pages: Pages, provider: OidcProvider | None = None
    ) -> None:
        self._authenticator = authenticator
        self._sessions = sessions
        self._pages = pages
        self._provider = provider

    async def answer(self, request: Request, receive: Receive, path: tuple[str, ...]) -> Response:
        """The answer of one of the paths. Raises: Problem, MethodNotAllowed."""
        methods = LOGIN_METHODS[path]
        if (options := options_response(request, methods, ", ".join((*methods, "OPTIONS")))) is not None:
            return options
        if path == _LOGOUT:
            return await self.sign_out(request)
        if path == _LOGIN and request.method == "POST":
            return await self.take_form(request, receive)
        if path == _CALLBACK and self._provider is not None:
            return await self.take_callback(request)
        next = local_path(all_query_params(request).get("next", [""])[0])
        if path == _LOGIN:
            return await self.show(request, next)
        if self._provider is None:
            raise ApiNotFound()
        return await self.go_to_provider(request, next)

    def may_keep_form(self, request: Request) -> bool:
        """Whether a request is a form from a browser that had a session. From others nothing is kept: a page with a
        long form takes much memory.
        """
        cookie = read_cookie(request, _KNOWN) if request.method == "POST" else None
        return cookie is not None and verified(self._sessions.key, _KNOWN, cookie) is not None

    async def ask_again(self, request: Request, receive: Receive, secret_fields: Collection[str]) -> Response:
        """The page for a form that was sent after its session had ended; it keeps what the form has (UI-87).

        secret_fields: of the form; their values are not kept.
        """
        form = await read_upload(request, receive, MAX_KEPT_BYTES)
        # A sign-in that failed or took too long keeps the form as it was first sent.
        return await self.show(
            request, local_path(request.raw_path), _ENDED, 401, form.kept or form.to_keep(secret_fields)
        )

    async def show(
        self,
        request: Request,
        next: str,
        message: str = "",
        status: int = 200,
        kept: Mapping[str, str] = _NOTHING,
    ) -> Response:
        """The page with a form for each kind of credential that is on.

        message: why the last one was refused. kept: the fields of a form that goes on to `next` after the sign-in.
        """
        names = self._authenticator.names
        page = self._pages.render_bare(
            request,
            "sign_in/login.html",
            "Sign in",
            status,
            next=next,
            message=message,
            kept=kept,
            has_failed=message != _ENDED,
            provider=self._provider.name if self._provider else "",
            is_available=self._provider is not None and await self._provider.is_available(),
            takes_passwords="basic" in names,
            takes_tokens=not {"keys", "tokens", "jwt"}.isdisjoint(names),
        )
        # A 401 must have a challenge (RFC 9110, 11.6.1). That of the cookie is one that no browser opens a dialog for,
        # as it would for Basic; the form on the page asks for the credential.
        return replace(page, headers=[*page.headers, COOKIE_CHALLENGE]) if status == 401 else page

    async def take_form(self, request: Request, receive: Receive) -> Response:
        """Signs in by a name and a password, or by a token or API key.

        Raises: TooManyAttempts, TooManyRequests, and as `read_upload`.
        """
        self._authenticator.count(request)  # each sign-in is stored
        form = await read_upload(request, receive, MAX_KEPT_BYTES)
        fields, kept = form.fields, form.kept if self.may_keep_form(request) else _NOTHING
        next = local_path(form.get("next"))
        if "token" in fields:
            credential = RequestCredential(Scheme.BEARER, fields["token"].strip())
        elif "name" in fields and "password" in fields:
            credential = RequestCredential(Scheme.BASIC, fields["password"], fields["name"])
        else:
            raise BadRequest(error_detail="the form has neither a token nor a name and a password")
        try:
            identity = await self._authenticator.identify_sender(request, credential)
        except Unauthorized:
            return await self.show(request, next, _BAD_CREDENTIAL, 401, kept)
        response = await self._begin(request, next, identity)
        # The browser sends the same form to the page, which takes what was kept.
        return replace(response, status=_SAME_FORM) if kept else response

    async def go_to_provider(self, request: Request, next: str) -> Response:
        """Sends the browser to the provider. Raises: ProviderUnavailable."""
        assert self._provider is not None, "the route exists with a provider only"
        now = time.time()
        state = new_state(next, now)
        url = await self._provider.sign_in_url(state, self._sessions.key)
        cookie = cookie_header(
            request, state.cookie_name, state.cookie_value(self._sessions.key), state.ends - int(now)
        )
        surplus = cookie_names(request, COOKIE_PREFIX)[: 1 - _MAX_SIGN_INS]
        return redirect(url, [cookie, *(cookie_header(request, name, "", 0) for name in surplus)])

    async def take_callback(self, request: Request) -> Response:
        """Completes a sign-in at the provider. Raises: ProviderUnavailable, TooManyAttempts."""
        assert self._provider is not None, "the route exists with a provider only"
        self._authenticator.check_attempts(request)  # before anything is stored
        params = {name: values[0] for name, values in all_query_params(request).items() if len(values) == 1}
        state = await self._take_state(request, params.get("state", ""))
        if state is None:
            return await self.show(request, HOME, _BAD_STATE, 400)
        cleared = cookie_header(request, state.cookie_name, "", 0)
        try:
            await self._provider.check_issuer(params.get("iss"))
            if "code" not in params:
                raise InvalidCredential(f"the provider answers {params.get('error', '')[:100]}", "provider", PROVIDER)
            identity, tokens = await self._provider.redeem(params["code"], state, self._sessions.key)
        except InvalidCredential as error:
            self._authenticator.refused(request, error)
            page = await self.show(request, state.next, _NOT_SIGNED_IN, 401)
            return Response(page.status, [*page.headers, cleared], page.body)
        return await self._begin(request, state.next, identity, tokens, [cleared])

    async def sign_out(self, request: Request) -> Response:
        """Ends the session, and goes on to the provider's own sign-out."""
        cookie = session_cookie(request)
        ended = await self._sessions.end(cookie) if cookie is not None else None
        url = None
        if self._provider is not None and ended is not None and ended.authenticator == PROVIDER:
            url = await self._provider.sign_out_url(ended.id_token)
        return redirect(url or below_root(request, LOGIN), clear_session_cookie(request))

    async def _take_state(self, request: Request, text: str) -> SignInState | None:
        """The sign-in that a callback completes, which nobody can complete again; None if it is not of this browser."""
        state = parse_cookie(self._sessions.key, text, read_cookie(request, cookie_name(text)), time.time())
        return state if state is not None and await self._sessions.use_state(text, state.ends) else None

    async def _begin(
        self,
        request: Request,
        next: str,
        identity: Identity,
        tokens: ProviderTokens = _NO_TOKENS,
        headers: list[tuple[bytes, bytes]] | None = None,
    ) -> Response:
        cookie = await self._sessions.begin(identity, tokens, session_cookie(request))
        known = cookie_header(request, _KNOWN, signed(self._sessions.key, _KNOWN, ""))
        return redirect(below_root(request, next), [*set_session_cookie(request, cookie), known, *(headers or [])])
