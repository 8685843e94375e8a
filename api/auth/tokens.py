"""Bearer tokens of a fixed list (`ANNALS_TOKENS`)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from annals.api.auth import json_settings
from annals.api.auth.caller_entries import check_members, parse_caller, parse_object
from annals.api.auth.credentials import RequestCredential, Scheme
from annals.api.auth.identity import Identity

_HASHED_TOKEN: Final = re.compile(r"sha256:([0-9a-fA-F]{64})\Z")
_MEMBERS: Final = frozenset(("name", "role", "groups"))

#: Callers by the SHA-256 of their token, so that a look-up reveals nothing about other tokens.
FixedTokens = Mapping[str, Identity]


class FixedTokenVerifier:
    """The tokens of a list. tokens: returns the current list."""

    name: Final = "tokens"
    schemes = frozenset((Scheme.BEARER,))

    def __init__(self, tokens: Callable[[], FixedTokens]) -> None:
        self._tokens = tokens

    async def identify(self, credential: RequestCredential) -> Identity | None:
        """See `CredentialVerifier`. A token that is not in the list may be of another kind."""
        token = credential.token
        return self._tokens().get(_hash_token(token)) if token is not None else None

    def listed(self) -> list[Identity]:
        """See `CredentialVerifier`: one for each token."""
        return list(self._tokens().values())


def parse_fixed_tokens(setting: str) -> FixedTokens:
    """The tokens that a setting lists. setting: JSON text, or the path of a file with it.

    The JSON is an object. Its keys are tokens, or `sha256:` and the token's hash in hex. Its values are objects with
    `name`, `role` and `groups`, where `groups` has further roles by the xid of a Group. Raises: ValueError.
    """
    entries = parse_object(json_settings.load_json_text(setting), "tokens")
    return {(hash := _token_hash(token)): _parse_entry(hash, entry) for token, entry in entries.items()}


def _parse_entry(hash: str, entry: Any) -> Identity:
    members = check_members(entry, "a token", "name", _MEMBERS)
    caller = parse_caller(members["name"], members)
    return Identity(caller, FixedTokenVerifier.name, origin="ANNALS_TOKENS", reference=hash, entry=hash)


def _token_hash(token: str) -> str:
    """Raises: ValueError for a token that no caller can have, or that is the beginning of a hash."""
    match = _HASHED_TOKEN.match(token)
    if match:
        return match[1].lower()
    if not token or token.startswith("sha256:"):
        raise ValueError("a token is empty" if not token else "sha256: has to be followed by 64 digits in hex")
    return _hash_token(token)


def _hash_token(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
