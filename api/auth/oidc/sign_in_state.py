"""What a sign-in at a provider carries from its beginning to its callback, in a cookie of its browser (ACC-53).

The `nonce` and the verifier of PKCE are derived from `state` with the key of the server: nothing has to be stored
before somebody has signed in, and no browser and no provider can know the verifier before the server sends it.
Spec: OpenID Connect Core 1.0, "Authentication Request"; RFC 7636, "Client Creates a Code Verifier".
"""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Final

from annals.api.auth.sessions.signatures import derived, signed, verified

#: Seconds that a person has for a sign-in.
STATE_SECONDS: Final = 600
#: What the name of its cookie begins with. Characters of `state` follow, so that several tabs can sign in at the same
#: time.
COOKIE_PREFIX: Final = "annals-sign-in-"
_NAME_CHARACTERS: Final = 8
_PURPOSE: Final = "sign-in"


@dataclass(frozen=True, slots=True)
class SignInState:
    """One sign-in. ends: in seconds since 1970. next: the path to go on to."""

    state: str
    ends: int
    next: str

    @property
    def cookie_name(self) -> str:
        """The name of its cookie."""
        return cookie_name(self.state)

    def cookie_value(self, key: bytes) -> str:
        """The value of its cookie."""
        next = urlsafe_b64encode(self.next.encode()).decode().rstrip("=")
        return signed(key, _PURPOSE, f"{self.state}.{self.ends}.{next}")

    def nonce(self, key: bytes) -> str:
        """The `nonce` that the ID token must have."""
        return derived(key, "nonce", self.state)

    def code_verifier(self, key: bytes) -> str:
        """The verifier of PKCE."""
        return derived(key, "code_verifier", self.state)


def new_state(next: str, now: float) -> SignInState:
    """A new sign-in."""
    return SignInState(secrets.token_urlsafe(32), int(now) + STATE_SECONDS, next)


def cookie_name(state: str) -> str:
    """The name of the cookie of a sign-in."""
    return COOKIE_PREFIX + state[:_NAME_CHARACTERS]


def parse_cookie(key: bytes, state: str, value: str | None, now: float) -> SignInState | None:
    """The sign-in of a `state` in the cookie of the same browser; None if they do not belong together, or are old."""
    text = verified(key, _PURPOSE, value) if value else None
    if text is None:
        return None
    known_state, ends, next = text.split(".")
    if known_state != state or int(ends) <= now:
        return None
    return SignInState(state, int(ends), urlsafe_b64decode(next + "=" * (-len(next) % 4)).decode())
