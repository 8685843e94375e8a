"""Which authenticators are on, and what callers without a credential may do."""

from __future__ import annotations

from dataclasses import dataclass, field

from annals.api.auth.jwt_claims import ClaimSettings
from annals.api.auth.oidc.oidc_settings import OidcSettings
from annals.api.auth.sessions.session_settings import SessionSettings
from annals.domain.access.roles import ANONYMOUS, ANONYMOUS_READER, NO_CALLER, Caller


@dataclass(frozen=True, slots=True)
class AuthSettings:
    """Which authenticators are on; each is None if it is off.

    tokens: JSON or a path. jwt_keys: a path or a URL. basic_file, tls_clients: a path. api_keys: whether those in the
    log are accepted. anonymous_reads: whether callers without a credential are readers. reads_per_second,
    writes_per_second: limits of one caller; None for none. oidc: the provider that people sign in at. sessions: how
    long those of people in browsers last.
    """

    tokens: str | None = None
    jwt_keys: str | None = None
    basic_file: str | None = None
    tls_clients: str | None = None
    api_keys: bool = False
    claims: ClaimSettings = field(default_factory=ClaimSettings)
    anonymous_reads: bool = False
    reads_per_second: float | None = None
    writes_per_second: float | None = None
    oidc: OidcSettings | None = None
    sessions: SessionSettings = field(default_factory=SessionSettings)

    @property
    def has_authenticator(self) -> bool:
        """Whether any authenticator is on."""
        others = self.basic_file or self.tls_clients or self.api_keys or self.oidc
        return bool(self.tokens or self.jwt_keys or others)

    @property
    def anonymous(self) -> Caller:
        """The caller without a credential (ACC-120, ACC-121)."""
        if self.anonymous_reads:
            return ANONYMOUS_READER
        return NO_CALLER if self.has_authenticator else ANONYMOUS
