"""The tokens of a provider that a session keeps, encrypted under the master key (ACC-56, ACC-57)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Final

from annals.commands.store.secrets import Vault
from annals.domain.decisions.world import Secret
from annals.domain.values.json_text import dumps, loads

_NAME: Final = "provider_tokens"


@dataclass(frozen=True, slots=True)
class ProviderTokens:
    """What a provider has given for one person; each is empty if it was not given.

    confirmed: when it did, in seconds since 1970; 0 if that is not known.
    """

    refresh_token: str = field(default="", repr=False)
    id_token: str = field(default="", repr=False)
    confirmed: int = field(default=0, compare=False)


def seal_tokens(vault: Vault, hash: str, tokens: ProviderTokens) -> tuple[bytes, bytes]:
    """A wrapped data key and the encrypted tokens of a session; both empty without tokens, or without a master key."""
    if tokens == ProviderTokens() or not vault.has_key:
        return b"", b""
    members = asdict(tokens)
    return vault.seal(token_secret(hash), dumps(members).decode())


def unseal_tokens(vault: Vault, hash: str, wrapped: bytes, sealed: bytes) -> ProviderTokens | None:
    """The tokens of a session; None if no master key opens them."""
    if not sealed:
        return ProviderTokens()
    text = vault.unseal(token_secret(hash), wrapped, sealed)
    if text is None:
        return None
    members = loads(text.encode())
    assert isinstance(members, dict), "this program has written it"
    return ProviderTokens(**members)


def token_secret(hash: str) -> Secret:
    """Identifies the tokens of a session, so that those of another one cannot replace them."""
    return Secret(hash, f"session/{hash}", _NAME)
