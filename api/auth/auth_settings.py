"""Which authenticators are on, and what callers without a credential may do."""

from __future__ import annotations

from dataclasses import dataclass, field

from annals.api.auth.jwt_claims import ClaimSettings
from annals.domain.access.roles import ANONYMOUS, ANONYMOUS_READER, NO_CALLER, Caller


@dataclass(frozen=True, slots=True)
class AuthSettings:
    """Which authenticators are on; each is None if it is off.

    tokens: JSON or a path. jwt_keys: a path or a URL. basic_file, tls_clients: a path. api_keys: whether those in the
    log are accepted. anonymous_reads: whether callers without a credential are readers. reads_per_second,
    writes_per_second: limits of one caller; None for none.
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

    @property
    def has_authenticator(self) -> bool:
        """Whether any authenticator is on."""
        return bool(self.tokens or self.jwt_keys or self.basic_file or self.tls_clients or self.api_keys)

    @property
    def anonymous(self) -> Caller:
        """The caller without a credential (ACC-120, ACC-121)."""
        if self.anonymous_reads:
            return ANONYMOUS_READER
        return NO_CALLER if self.has_authenticator else ANONYMOUS
