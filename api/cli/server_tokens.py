"""The tokens that the command line sends to servers that its person has signed in to."""

from __future__ import annotations

import time
from typing import Final

from annals.api.cli.outcome import InvalidInput, StoreError, UsageError
from annals.api.cli.sign_ins import SignIn, changing_sign_ins, origin_of, read_sign_ins

#: Seconds before its end from which a token is refreshed.
_REFRESH_SECONDS: Final = 60


def bearer_headers(token: str | None) -> dict[str, str]:
    """The header with a token; none without a token. Raises: UsageError for a token that no header can have."""
    if not token:
        return {}
    if not (token.isascii() and token.isprintable()):
        raise UsageError("the token has characters that a header cannot have.")
    return {"authorization": f"Bearer {token}"}


def token_for(url: str) -> str | None:
    """The ID token for the server of a URL, refreshed if it has expired; None without a sign-in at this origin.

    Raises: UsageError if others can read the file, or it is damaged; StoreError if the provider has ended the sign-in,
    or does not answer, because the server cannot be asked then.
    """
    origin = origin_of(url)
    sign_in = read_sign_ins().get(origin) if origin is not None else None
    if origin is None or sign_in is None:
        return None
    if not _is_due(sign_in):
        return sign_in.id_token
    with changing_sign_ins() as sign_ins:
        current = sign_ins.get(origin)
        if current is None or _is_due(current):  # another process may have refreshed it meanwhile
            current = sign_ins[origin] = _refresh(current or sign_in, url)
    return current.id_token


def _is_due(sign_in: SignIn) -> bool:
    return sign_in.expires - _REFRESH_SECONDS <= time.time()


def _refresh(sign_in: SignIn, url: str) -> SignIn:
    from annals.api.cli.device_sign_in import refresh_sign_in

    try:
        return refresh_sign_in(sign_in)
    except InvalidInput as error:
        raise StoreError(f"{error} Sign in again: annals auth login {url}") from None
