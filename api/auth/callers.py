"""Who calls: one credential of a request decides, by the authenticators that are on (ACC-10 to ACC-18).

Spec: RFC 6750, "Authenticated Requests", "The WWW-Authenticate Response Header Field"; RFC 7617, "The 'charset'
auth-param".
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from annals.api.auth.credentials import MISPLACED, InvalidCredential, RequestCredential, Scheme, find_credential
from annals.api.auth.identity import CredentialVerifier, Identity
from annals.api.auth.limits.failed_attempts import FailedAttempts, network_of
from annals.api.auth.limits.request_rates import RequestRates
from annals.api.http.access_log.access_log import CURRENT_CALLER
from annals.api.http.connections.trusted_proxies import TrustedProxies
from annals.api.http.request import Request
from annals.api.http.response import Headers
from annals.domain.access.grants import subjects_of, with_grants
from annals.domain.access.roles import ANONYMOUS, Caller
from annals.domain.errors.http_errors import Forbidden, Unauthorized
from annals.domain.errors.problems import Problem

if TYPE_CHECKING:
    from annals.api.auth.limits.denials import DenialLog  # with the client of Prometheus, which most verbs do not need
    from annals.projections.access.key_uses import KeyUses
    from annals.projections.access.stored_access import StoredAccess

#: All authenticators, in the order in which they are asked about a credential (ACC-12).
ORDER: Final = ("session", "keys", "tokens", "jwt", "basic", "certificate")

_CHALLENGE: Final = b"www-authenticate"
_BEARER_CHALLENGE: Final = (_CHALLENGE, b'Bearer realm="annals"')
_INVALID_TOKEN_CHALLENGE: Final = (_CHALLENGE, b'Bearer realm="annals", error="invalid_token"')
#: Where the server takes neither tokens nor passwords from `Authorization`; a 401 must have a challenge (RFC 9110).
COOKIE_CHALLENGE: Final = (_CHALLENGE, b'Cookie realm="annals"')
_BASIC_CHALLENGE: Final = (_CHALLENGE, b'Basic realm="annals", charset="UTF-8"')
_NO_CREDENTIAL: Final = "the request has none"
_NOT_VALID: Final = "the one that was sent is not valid"
_MISPLACED_TOKEN: Final = (
    "the password is a token, which only Confluent's API (/compat/confluent) takes in that way; send it as a bearer"
    " token"
)
_NO_PROXIES: Final = TrustedProxies(None)


class Authenticator:
    """Authenticates requests.

    verifiers: in any order; without one, no credential is read, and all callers are anonymous. anonymous: the caller
    without a credential, who has no role where each request needs one. proxies: those whose `Client-Cert` counts.
    rates: of requests; None for no limit. denials: where refusals are counted and logged; None for nowhere. access: has
    the grants that add to the roles of credentials. key_uses: where uses of API keys are noted.
    """

    def __init__(
        self,
        verifiers: Sequence[CredentialVerifier] = (),
        anonymous: Caller = ANONYMOUS,
        proxies: TrustedProxies = _NO_PROXIES,
        rates: RequestRates | None = None,
        denials: DenialLog | None = None,
        access: StoredAccess | None = None,
        key_uses: KeyUses | None = None,
    ) -> None:
        self._verifiers = sorted(verifiers, key=lambda verifier: ORDER.index(verifier.name))
        self._schemes = frozenset(scheme for verifier in verifiers for scheme in verifier.schemes)
        self._anonymous = Identity(anonymous)
        self._proxies = proxies
        self._rates = rates if rates is not None and rates.is_on else None
        self._denials = denials
        self._access = access
        self._key_uses = key_uses
        self._attempts = FailedAttempts()

    async def authenticate(self, request: Request, *, is_token_too: bool = False) -> Request:
        """The request with its caller, whom its log line then names. is_token_too: see `RequestCredential`.

        Raises: Unauthorized, TooManyAttempts, TooManyRequests.
        """
        if not self._verifiers:
            caller = self._anonymous.caller
        else:
            caller = (await self.identify(request, is_token_too=is_token_too)).caller
            if caller is self._anonymous.caller and caller.role is None:
                raise self._missing_credential(request)
        CURRENT_CALLER.set(caller)
        self.count(request, caller)
        return request if caller is request.caller else replace(request, caller=caller)

    def count(self, request: Request, caller: Caller | None = None) -> None:
        """Counts a request of a caller, or of one that is not known yet. Raises: TooManyRequests."""
        if self._rates is not None:
            known = None if caller is self._anonymous.caller else caller
            self._rates.count(f"@{known.name}" if known else network_of(self._address(request)), request.is_read)

    async def identify(self, request: Request, *, is_token_too: bool = False) -> Identity:
        """Who sends a request; the anonymous caller without a credential.

        Raises: Unauthorized for a bad credential; TooManyAttempts.
        """
        if not self._verifiers:
            return self._anonymous
        try:
            credential = find_credential(request, self._schemes, self._proxies, is_token_too=is_token_too)
        except InvalidCredential as error:
            raise self.refused(request, error) from None
        if credential is None:
            return self._anonymous
        return await self._with_grants(await self.identify_sender(request, credential))

    async def identify_sender(self, request: Request, credential: RequestCredential) -> Identity:
        """Who has a credential, which may also come from a form, without the roles of grants.

        Raises: Unauthorized, TooManyAttempts.
        """
        name = credential.name
        try:
            self.check_attempts(request, name)
            if name:  # checks of passwords take long, and wait for each other
                with self._attempts.checking(self._address(request), name, credential):
                    identity = await self._verify(credential)
            else:
                identity = await self._verify(credential)
            self.check_attempts(request, name)  # many guesses may have been sent at the same time
            if identity.key is not None and self._key_uses is not None:
                self._key_uses.note(identity.key, self._address(request))
            return identity
        except InvalidCredential as error:
            if await self._is_misplaced_token(credential):
                error.reason = MISPLACED
            raise self.refused(request, error, credential.name) from None

    async def _is_misplaced_token(self, credential: RequestCredential) -> bool:
        """Whether a refused password is a good token, which clients of Confluent's API send in that way."""
        if credential.scheme is not Scheme.BASIC or credential.is_token_too:
            return False
        try:
            await self._verify(RequestCredential(Scheme.BEARER, credential.secret))
        except InvalidCredential:
            return False
        return True

    def refused(self, request: Request, error: InvalidCredential, name: str = "") -> Unauthorized:
        """The problem of a bad credential, which is counted and logged. name: that the credential claims.

        One that was good once, here or at another registry, counts as no attempt: the sessions of an office end at the
        same time, and it has one address. Nor does a good token in the wrong place.
        Raises: TooManyAttempts.
        """
        self.check_attempts(request, name)
        if error.is_guess:
            self._attempts.add(self._address(request), name)
        if self._denials is not None:
            known_name = name if name and self.callers_named(name) else None
            self._denials.add_failure(request, error.authenticator, error.reason, str(error), known_name)
        return Unauthorized(error_detail=_MISPLACED_TOKEN if error.reason == MISPLACED else _NOT_VALID)

    def _missing_credential(self, request: Request) -> Unauthorized:
        if self._denials is not None:
            self._denials.add_missing(request)
        return Unauthorized(error_detail=_NO_CREDENTIAL)

    def check_attempts(self, request: Request, name: str = "") -> None:
        """Checks that not too many credentials from the address of a request, or with a name, were bad.

        Raises: TooManyAttempts.
        """
        if self._attempts:
            self._attempts.check(self._address(request), name)

    def _address(self, request: Request) -> str:
        return self._proxies.client_address(request.scope)

    async def verify(self, credential: RequestCredential) -> Identity:
        """Who has a credential. Raises: InvalidCredential."""
        return await self._with_grants(await self._verify(credential))

    async def _verify(self, credential: RequestCredential) -> Identity:
        for verifier in self._verifiers:
            if credential.scheme not in verifier.schemes and not (credential.is_token_too and credential.token):
                continue
            try:
                identity = await verifier.identify(credential)
            except InvalidCredential as error:
                error.authenticator = error.authenticator or verifier.name
                raise
            if identity is not None:
                authenticator, keyid = identity.authenticator or "", identity.key or ""
                caller = replace(
                    identity.caller,
                    authenticator=authenticator,
                    keyid=keyid,
                    entry=_digest(identity.entry),
                    claims=tuple(identity.claims),
                )
                return replace(identity, caller=caller)
        raise InvalidCredential(f"no authenticator that is on knows this {credential.scheme} credential", "unknown")

    async def _with_grants(self, identity: Identity) -> Identity:
        if self._access is None:
            return identity
        subjects = subjects_of(identity.caller.name, identity.claims)
        granted = (await self._access.current()).grants_to(subjects, self._access.now())
        caller = with_grants(identity.caller, granted)
        return identity if caller is identity.caller else replace(identity, caller=caller)

    def callers_named(self, name: str, authenticator: str = "") -> list[Caller]:
        """The callers with a name that settings or keys list, for rights of callers who send no request now. Blocks.

        authenticator: the only one whose list counts; empty for all.
        """
        verifiers = (verifier for verifier in self._verifiers if authenticator in ("", verifier.name))
        identities = (identity for verifier in verifiers for identity in verifier.listed())
        return [
            self.with_current_grants(replace(identity.caller, entry=_digest(identity.entry)))
            for identity in identities
            if identity.caller.name == name
        ]

    def with_current_grants(self, caller: Caller) -> Caller:
        """A caller, with the roles of its credential, and those that grants now add to them. Blocks."""
        if self._access is None:
            return caller
        subjects = subjects_of(caller.name, caller.claims)
        return with_grants(caller, self._access.refresh().grants_to(subjects, self._access.now()))

    def listed_callers(self) -> list[tuple[Caller, str]]:
        """The callers that the settings list, each with the setting."""
        listing = (verifier for verifier in self._verifiers if verifier.name != "keys")
        return [(identity.caller, identity.origin) for verifier in listing for identity in verifier.listed()]

    @property
    def names(self) -> tuple[str, ...]:
        """The authenticators that are on, in their order."""
        return tuple(dict.fromkeys(verifier.name for verifier in self._verifiers))

    def challenges(self, request: Request, *, is_token_too: bool = False) -> Headers:
        """The headers of a 401: one for each scheme that is on (ACC-18). is_token_too: Basic is on with Bearer.

        Pages get no challenge of Basic, because the browser would open a dialog. Where no other scheme is left, the
        challenge is that of the cookie that a sign-in sets.
        """
        headers: Headers = []
        if Scheme.BEARER in self._schemes:
            sent = (request.header(b"authorization") or "").lower().startswith("bearer")
            headers.append(_INVALID_TOKEN_CHALLENGE if sent else _BEARER_CHALLENGE)
        has_basic = Scheme.BASIC in self._schemes or (is_token_too and Scheme.BEARER in self._schemes)
        if has_basic and request.header(b"sec-fetch-mode") is None:
            headers.append(_BASIC_CHALLENGE)
        return headers or [COOKIE_CHALLENGE]

    def refusal(self, problem: Problem, request: Request) -> Problem:
        """The problem to answer with: an anonymous caller who is not allowed something needs a credential.

        Denials are counted and logged.
        """
        caller = CURRENT_CALLER.get()
        if self._verifiers and isinstance(problem, Forbidden) and caller is self._anonymous.caller:
            return self._missing_credential(request)
        if self._denials is not None:
            self._denials.add(request, problem)
        return problem


class FixedCallerAuthenticator(Authenticator):
    """Gives every request the same caller, for example that of the command line."""

    def __init__(self, caller: Caller) -> None:
        super().__init__(anonymous=caller)


def _digest(entry: str) -> str:
    """What the log may have of an entry."""
    return hashlib.sha256(entry.encode()).hexdigest()[:32] if entry else ""
