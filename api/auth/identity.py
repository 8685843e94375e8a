"""Who a credential proves to be, and the port of everything that can tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from annals.api.auth.credentials import RequestCredential, Scheme
from annals.domain.access.roles import Caller

#: The authenticators that list their callers. Those of issued tokens know a caller only when it calls.
LISTING: Final = ("tokens", "basic", "keys", "certificate")


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller, and what proved it.

    authenticator: its name in `ORDER`; None without a credential. expires: of the credential, in seconds since 1970;
    None if it has no end. origin: where the caller is listed, for the console. key: id of the API key, if it was one.
    claims: words of a token that grants can name. reference: identifies the entry of the credential in its list, for as
    long as the credential stays the same; empty without a list. entry: the same, also when an API key is rotated; empty
    for a list that has each name once.
    """

    caller: Caller
    authenticator: str | None = None
    expires: float | None = None
    origin: str = ""
    key: str | None = None
    claims: tuple[str, ...] = ()
    reference: str = ""
    entry: str = ""


class CredentialVerifier(Protocol):
    """One kind of credential. name: its name in `ORDER`. schemes: in which requests carry it."""

    @property
    def name(self) -> str: ...
    @property
    def schemes(self) -> frozenset[Scheme]: ...

    async def identify(self, credential: RequestCredential) -> Identity | None:
        """Who has a credential; None for a credential of another kind, which the next verifier may know.

        Raises: InvalidCredential for an invalid one of this kind; then no other verifier is asked.
        """

    def listed(self) -> Sequence[Identity]:
        """The identities that it knows before any of them calls; none if only others have a list of them."""
