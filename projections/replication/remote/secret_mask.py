"""Hides the secrets of a link in texts of the other registry, which may repeat what it was sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from annals.projections.outgoing.secret_encodings import secret_encodings

_MASK: Final = "***"
_SECRET_MEMBERS: Final = ("token", "password")
#: Shorter secrets would be found in ordinary words, which the masks would garble.
_MIN_SECRET_LENGTH: Final = 4


class SecretMask:
    """Masks the secrets of one link. credential: of the link, with its secret values."""

    def __init__(self, credential: Mapping[str, Any] | None) -> None:
        secrets = [secret for secret in _secrets(credential or {}) if len(secret.text) >= _MIN_SECRET_LENGTH]
        encodings = {
            encoding: max(_MIN_SECRET_LENGTH, 2 * secret.public_length)  # a name alone, also as Base64, is shown
            for secret in secrets
            for encoding in secret_encodings(secret.text)
        }
        texts = sorted(encodings, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, texts)), re.IGNORECASE) if texts else None
        self._min_lengths = {encoding.lower(): min_length for encoding, min_length in encodings.items()}

    def hide(self, text: str) -> str:
        """The text with a mask in place of each secret, also of one in another case, in a URL, in HTML or as Base64.

        A text that was cut may end with the beginning of a secret, which is hidden, too.
        """
        if self._pattern is None:
            return text
        hidden = self._pattern.sub(_MASK, text)
        lower = hidden.lower()
        length = max(_length_at_end(lower, *each) for each in self._min_lengths.items())
        return hidden[:-length] + _MASK if length else hidden


class _Secret(NamedTuple):
    """public_length: of its beginning that is no secret, such as the name of a user."""

    text: str
    public_length: int = 0


def _length_at_end(text: str, secret: str, min_length: int) -> int:
    """The length of the longest beginning of a secret with which a text ends; 0 for one below the minimum."""
    lengths = range(min(len(secret), len(text)), min_length - 1, -1)
    return next((length for length in lengths if text.endswith(secret[:length])), 0)


def _secrets(credential: Mapping[str, Any]) -> Iterator[_Secret]:
    yield from map(_Secret, filter(None, map(credential.get, _SECRET_MEMBERS)))
    if password := credential.get("password"):
        user = f"{credential.get('username', '')}:"
        yield _Secret(f"{user}{password}", len(user))
